package otlp

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// Attributes of the conventions about hardware, version 1.43.0.
const (
	hwID               attribute.Key = "hw.id"
	hwParent           attribute.Key = "hw.parent"
	hwType             attribute.Key = "hw.type"
	hwVendor           attribute.Key = "hw.vendor"
	hwModel            attribute.Key = "hw.model"
	hwDriverVersion    attribute.Key = "hw.driver_version"
	hwState            attribute.Key = "hw.state"
	hwSensorLocation   attribute.Key = "hw.sensor_location"
	hwGPUTask          attribute.Key = "hw.gpu.task"
	networkIODirection attribute.Key = "network.io.direction"
	errorType          attribute.Key = "error.type"
)

// Attributes that no convention has yet.
const (
	draLink attribute.Key = "dra.link" // over which bytes went: pcie, nvlink
	draPort attribute.Key = "dra.port" // of a network device
)

// The families from which more is made than their own points.
const (
	memoryUsedFamily = "dra_device_memory_used_bytes"
	memorySizeFamily = "dra_device_memory_size_bytes"
	healthyFamily    = "dra_device_healthy"
	signalFamily     = "dra_device_health_signal_info"
	linkStateFamily  = "dra_device_network_link_state"
)

// hardwareTargets are the metrics of hw.*, with what is known of a device and
// the conventions list for each.
func hardwareTargets() []target {
	gpu := []attribute.Key{hwVendor, hwModel, hwDriverVersion}
	network := []attribute.Key{hwVendor, hwModel}
	component := []attribute.Key{hwType}
	return []target{
		{"hw.status", upDownCounterInstrument, "1", component, "Operational state of the device as reported by the hardware: 1 for the current state, 0 for the others"},
		{"hw.errors", counterInstrument, "{error}", component, "Errors of the device, by type"},
		{"hw.energy", counterInstrument, "J", component, "Energy drawn by the device"},
		{"hw.power", gaugeInstrument, "W", component, "Power drawn by the device"},
		{"hw.temperature", gaugeInstrument, "Cel", nil, "Temperature at a sensor of the device"},
		{"hw.gpu.utilization", gaugeInstrument, "1", gpu, "Share of time in which the device, or one of its engines, was active"},
		{"hw.gpu.memory.usage", upDownCounterInstrument, "By", gpu, "Device memory in use"},
		{"hw.gpu.memory.limit", upDownCounterInstrument, "By", gpu, "Size of the device memory"},
		{"hw.gpu.memory.utilization", gaugeInstrument, "1", gpu, "Share of the device memory that is in use"},
		{"hw.gpu.io", counterInstrument, "By", gpu, "Bytes that the device received and transmitted"},
		{"hw.network.io", counterInstrument, "By", network, "Bytes that the network device received and transmitted"},
		{"hw.network.up", upDownCounterInstrument, "1", network, "1 if the port's link is active"},
	}
}

// hardwareConventions are the families about devices that the conventions
// have a metric for.
func hardwareConventions() []convention {
	device := func(family, metric string, words ...word) convention {
		return convention{family: family, metric: metric, about: aboutDevice, words: words}
	}
	return []convention{
		device("dra_device_utilization_ratio", "hw.gpu.utilization", word{key: hwGPUTask, constant: generalTask}),
		device("dra_device_engine_active_ratio", "hw.gpu.utilization", taskOfEngine()),
		device(memoryUsedFamily, "hw.gpu.memory.usage"),
		device(memorySizeFamily, "hw.gpu.memory.limit"),
		device("dra_device_power_watts", "hw.power"),
		device("dra_device_energy_joules_total", "hw.energy"),
		device("dra_device_temperature_celsius", "hw.temperature", word{key: hwSensorLocation, label: "sensor"}),
		device("dra_device_pcie_receive_bytes_total", "hw.gpu.io", over("pcie", "receive")...),
		device("dra_device_pcie_transmit_bytes_total", "hw.gpu.io", over("pcie", "transmit")...),
		device("dra_device_nvlink_receive_bytes_total", "hw.gpu.io", over("nvlink", "receive")...),
		device("dra_device_nvlink_transmit_bytes_total", "hw.gpu.io", over("nvlink", "transmit")...),
		device("dra_device_network_receive_bytes_total", "hw.network.io", over("", "receive")...),
		device("dra_device_network_transmit_bytes_total", "hw.network.io", over("", "transmit")...),
		device("dra_device_xid_errors_total", "hw.errors", word{key: errorType, label: "xid", prefix: "xid_"}),
		device("dra_device_ecc_errors_total", "hw.errors", word{key: errorType, label: "severity", prefix: "ecc_"}),
		device("dra_device_pcie_replays_total", "hw.errors", word{key: errorType, constant: "pcie_replay"}),
		device("dra_device_nvlink_errors_total", "hw.errors", word{key: errorType, label: "kind", prefix: "nvlink_"}),
		device("dra_device_xgmi_errors_total", "hw.errors", word{key: errorType, label: "severity", prefix: "xgmi_"}),
		device("dra_device_network_errors_total", "hw.errors", word{key: errorType, label: "kind", prefix: "network_"}),
	}
}

// derivedConventions are the metrics of hw.* that no row is: their families go
// out by themselves as well. First come the states ok, degraded and failed.
func derivedConventions() []convention {
	derived := func(family, metric, madeOf string, words ...word) convention {
		return convention{family: family, metric: metric, about: aboutDevice, words: words, madeOf: madeOf}
	}
	state := func(state, when string) convention {
		return derived(healthyFamily, "hw.status", when, word{label: "by"}, word{key: hwState, constant: state})
	}
	return []convention{
		state("ok", "`dra_device_healthy{by=\"hardware\"}` is 1, and no signal is a warning"),
		state("degraded", "it is 1, and a row of `dra_device_health_signal_info` is a warning"),
		state("failed", "it is 0"),
		derived(linkStateFamily, "hw.network.up", "`dra_device_network_link_state{state=\"active\"}`", word{key: draPort, label: "port"}, word{label: "state"}),
		derived(memoryUsedFamily, "hw.gpu.memory.utilization", "`dra_device_memory_used_bytes` / `dra_device_memory_size_bytes`"),
	}
}

// over is a way of bytes.
func over(link, direction string) []word {
	words := []word{{key: networkIODirection, constant: direction}}
	if link != "" {
		words = append(words, word{key: draLink, constant: link})
	}
	return words
}

// generalTask is the convention's word for all that a GPU does.
const generalTask = "general"

// taskOfEngine is the word that tells the engine. An engine that a source
// calls as the convention calls the whole is not taken for it.
func taskOfEngine() word {
	return word{key: hwGPUTask, label: "engine", mangle: func(engine string) string {
		name := engine
		for strings.HasPrefix(name, "engine_") {
			name = strings.TrimPrefix(name, "engine_")
		}
		if name == generalTask {
			return "engine_" + engine
		}
		return engine
	}}
}

package naming

import (
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// instrument is the kind of a metric.
type instrument uint8

const (
	gaugeInstrument instrument = iota
	counterInstrument
	upDownCounterInstrument
)

func (i instrument) String() string {
	return [...]string{"gauge", "counter", "updowncounter"}[i]
}

func (i instrument) data(points []metricdata.DataPoint[float64]) metricdata.Aggregation {
	if i == gaugeInstrument {
		return metricdata.Gauge[float64]{DataPoints: points}
	}
	return metricdata.Sum[float64]{
		DataPoints:  points,
		Temporality: metricdata.CumulativeTemporality,
		IsMonotonic: i == counterInstrument,
	}
}

// target is one metric by semantic conventions. Several families may have the
// same target; an attribute distinguishes them.
type target struct {
	name  string
	kind  instrument
	unit  string // UCUM
	facts []attribute.Key
	help  string
}

// convention is how the rows of a family are converted.
type convention struct {
	family, metric string
	subject        subjectKind
	rules          []rule // without those of the subject until NewSemConv adds them
	derivedFrom    string // of a derived metric, for the document

	target int // index of the target
}

// rule is one attribute of a point: prefix and value of a label, or, without a
// label, a constant. A label whose rule has no key is not exported.
type rule struct {
	key           attribute.Key
	label, prefix string
	constant      string
	transform     func(string) string
}

// value is empty if the attribute is omitted.
func (r rule) value(label string) string {
	switch {
	case r.transform != nil:
		return r.transform(label)
	case r.prefix != "" && label == "":
		return strings.TrimSuffix(r.prefix, "_")
	default:
		return r.prefix + label
	}
}

// subjectKind is what a row describes. Its labels have the same rules in all
// families.
type subjectKind uint8

const (
	deviceSubject subjectKind = iota
	claimSubject
	podSubject
)

// rules are those of every row about such a subject. The node is a resource
// attribute.
func (k subjectKind) rules() []rule {
	node, device, namespace := rule{label: "node"}, rule{key: hwID, label: "uuid"}, rule{key: k8sNamespaceName, label: "namespace"}
	switch k {
	case deviceSubject:
		return []rule{node, device, {key: hwParent, label: "parent_uuid"}}
	case claimSubject:
		return []rule{node, namespace, {key: claimName, label: "resourceclaim"}, device}
	default:
		return []rule{node, namespace, {key: k8sPodName, label: "pod"}, device}
	}
}

// attributes converts labels. A label without a rule keeps its name, so that two
// rows never become one point; an empty one is omitted, as in Prometheus. wanted
// are the facts that the target has.
func (c *convention) attributes(labels *metric.Labels, wanted []attribute.Key, facts map[attribute.Key]string) attribute.Set {
	var room [16]attribute.KeyValue // beyond that, append allocates
	attributes := room[:0]
	add := func(key attribute.Key, value string) {
		if key != "" && value != "" {
			attributes = append(attributes, key.String(value))
		}
	}
	for name, value := range labels.Each {
		r := c.rule(name)
		add(r.key, r.value(value))
	}
	for _, r := range c.rules {
		if r.label == "" {
			add(r.key, r.constant)
		}
	}
	for _, key := range wanted {
		add(key, facts[key])
	}
	return attribute.NewSet(attributes...)
}

func (c *convention) rule(label string) rule {
	for _, r := range c.rules {
		if r.label == label {
			return r
		}
	}
	return rule{key: attribute.Key(label)}
}

// Attributes of the conventions about hardware, version 1.43.0.
const (
	hwID               attribute.Key = "hw.id"
	hwParent           attribute.Key = "hw.parent"
	hwType             attribute.Key = "hw.type"
	hwVendor           attribute.Key = "hw.vendor"
	hwModel            attribute.Key = "hw.model"
	hwDriverVersion    attribute.Key = "hw.driver_version"
	hwSerialNumber     attribute.Key = "hw.serial_number"
	hwFirmwareVersion  attribute.Key = "hw.firmware_version"
	hwState            attribute.Key = "hw.state"
	hwSensorLocation   attribute.Key = "hw.sensor_location"
	hwGPUTask          attribute.Key = "hw.gpu.task"
	networkIODirection attribute.Key = "network.io.direction"
	errorType          attribute.Key = "error.type"
)

// Attributes that no convention defines yet.
const (
	draLink attribute.Key = "dra.link" // that transferred the bytes: pcie, nvlink
	draPort attribute.Key = "dra.port" // of a network device
)

// hardwareTargets are the metrics of hw.*, with those facts of a device that the
// conventions list for each.
func hardwareTargets() []target {
	gpu := []attribute.Key{hwVendor, hwModel, hwDriverVersion}
	network := []attribute.Key{hwVendor, hwModel}
	component := []attribute.Key{hwType}
	board := append(slices.Clone(gpu), hwSerialNumber, hwFirmwareVersion)
	return []target{
		{"hw.status", upDownCounterInstrument, "1", component, "Operational state of the device as reported by the hardware: 1 for the current state, 0 for the others"},
		{"hw.errors", counterInstrument, "{error}", component, "Errors of the device, by type"},
		{"hw.energy", counterInstrument, "J", component, "Energy drawn by the device"},
		{"hw.power", gaugeInstrument, "W", component, "Power drawn by the device"},
		{"hw.temperature", gaugeInstrument, "Cel", nil, "Temperature at a sensor of the device"},
		{"hw.gpu.utilization", gaugeInstrument, "1", gpu, "Share of time in which the device, or one of its engines, was active"},
		{"hw.gpu.memory.usage", upDownCounterInstrument, "By", gpu, "Device memory in use"},
		{"hw.gpu.memory.limit", upDownCounterInstrument, "By", board, "Size of the device memory"},
		{"hw.gpu.memory.utilization", gaugeInstrument, "1", gpu, "Share of the device memory that is in use"},
		{"hw.gpu.io", counterInstrument, "By", gpu, "Bytes that the device received and transmitted"},
		{"hw.network.io", counterInstrument, "By", network, "Bytes that the network device received and transmitted"},
		{"hw.network.up", upDownCounterInstrument, "1", network, "1 if the port's link is active"},
	}
}

// hardwareConventions are the families about devices that the conventions
// define a metric for.
func hardwareConventions() []convention {
	device := func(family, metric string, rules ...rule) convention {
		return convention{family: family, metric: metric, subject: deviceSubject, rules: rules}
	}
	return []convention{
		device(metric.DeviceUtilizationRatio, "hw.gpu.utilization", rule{key: hwGPUTask, constant: generalTask}),
		device(metric.DeviceEngineActiveRatio, "hw.gpu.utilization", engineTask()),
		device(metric.DeviceMemoryUsedBytes, "hw.gpu.memory.usage"),
		device(metric.DeviceMemorySizeBytes, "hw.gpu.memory.limit"),
		device(metric.DevicePowerWatts, "hw.power"),
		device(metric.DeviceEnergyJoules, "hw.energy"),
		device(metric.DeviceTemperatureCelsius, "hw.temperature", rule{key: hwSensorLocation, label: "sensor"}),
		device(metric.DevicePCIeReceiveBytes, "hw.gpu.io", direction("pcie", "receive")...),
		device(metric.DevicePCIeTransmitBytes, "hw.gpu.io", direction("pcie", "transmit")...),
		device(metric.DeviceNVLinkReceiveBytes, "hw.gpu.io", direction("nvlink", "receive")...),
		device(metric.DeviceNVLinkTransmitBytes, "hw.gpu.io", direction("nvlink", "transmit")...),
		device(metric.DeviceNetworkReceiveBytes, "hw.network.io", direction("", "receive")...),
		device(metric.DeviceNetworkTransmitBytes, "hw.network.io", direction("", "transmit")...),
		device(metric.DeviceXIDErrors, "hw.errors", rule{key: errorType, label: "xid", prefix: "xid_"}),
		device(metric.DeviceECCErrors, "hw.errors", rule{key: errorType, label: "severity", prefix: "ecc_"}),
		device(metric.DevicePCIeReplays, "hw.errors", rule{key: errorType, constant: "pcie_replay"}),
		device(metric.DeviceNVLinkErrors, "hw.errors", rule{key: errorType, label: "kind", prefix: "nvlink_"}),
		device(metric.DeviceXgmiErrors, "hw.errors", rule{key: errorType, label: "severity", prefix: "xgmi_"}),
		device(metric.DeviceNetworkErrors, "hw.errors", rule{key: errorType, label: "kind", prefix: "network_"}),
	}
}

// derivedConventions are the metrics of hw.* that are computed from rows, which
// are exported as well. The states ok, degraded and failed come first.
func derivedConventions() []convention {
	derived := func(family, metric, derivedFrom string, rules ...rule) convention {
		return convention{family: family, metric: metric, subject: deviceSubject, rules: rules, derivedFrom: derivedFrom}
	}
	state := func(state, when string) convention {
		return derived(metric.DeviceHealthy, "hw.status", when, rule{label: "by"}, rule{key: hwState, constant: state})
	}
	return []convention{
		state("ok", "`dra_device_healthy{by=\"hardware\"}` is 1, and no signal is a warning"),
		state("degraded", "it is 1, and a row of `dra_device_health_signal_info` is a warning"),
		state("failed", "it is 0"),
		derived(metric.DeviceNetworkLinkState, "hw.network.up", "`dra_device_network_link_state{state=\"active\"}`", rule{key: draPort, label: "port"}, rule{label: "state"}),
		derived(metric.DeviceMemoryUsedBytes, "hw.gpu.memory.utilization", "`dra_device_memory_used_bytes` / `dra_device_memory_size_bytes`"),
	}
}

// direction are the rules of a counter of transferred bytes.
func direction(link, direction string) []rule {
	rules := []rule{{key: networkIODirection, constant: direction}}
	if link != "" {
		rules = append(rules, rule{key: draLink, constant: link})
	}
	return rules
}

// generalTask is the convention's value for the GPU as a whole.
const generalTask = "general"

// engineTask is the rule of the label engine. An engine named like the
// convention's value for the whole gets a prefix.
func engineTask() rule {
	return rule{key: hwGPUTask, label: "engine", transform: func(engine string) string {
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

// Attributes about Kubernetes. Those of claims are this project's.
const (
	k8sNamespaceName  attribute.Key = "k8s.namespace.name"
	k8sPodName        attribute.Key = "k8s.pod.name"
	claimName         attribute.Key = "k8s.resourceclaim.name"
	claimUID          attribute.Key = "k8s.resourceclaim.uid"
	draAttribution    attribute.Key = "dra.attribution"
	draThrottleReason attribute.Key = "dra.throttle.reason"
)

// claimTargets are the metrics of k8s.*.
func claimTargets() []target {
	claim := []attribute.Key{claimUID}
	return []target{
		{"k8s.resourceclaim.device.count", upDownCounterInstrument, "{device}", claim, "1 while the claim holds the device"},
		{"k8s.resourceclaim.device.bundled.count", upDownCounterInstrument, "{device}", claim, "Devices of a driver that no source reads and that the claim holds as one"},
		{"k8s.resourceclaim.device.held.time", counterInstrument, "s", claim, "Time for which the claim held the device"},
		{"k8s.resourceclaim.device.share.time", counterInstrument, "s", claim, "Time for which the claim held the device, weighted by its share of it"},
		{"k8s.resourceclaim.device.busy.time", counterInstrument, "s", claim, "Integral of the utilization while the claim held the device"},
		{"k8s.resourceclaim.device.execution_idle.time", counterInstrument, "s", claim, "Time in which the device computed nothing and drew more than its idle power, while the claim held it"},
		{"k8s.resourceclaim.device.execution_idle.energy", counterInstrument, "J", claim, "Energy beyond idle power in the time in which the device computed nothing, while the claim held it"},
		{"k8s.resourceclaim.device.throttled.time", counterInstrument, "s", claim, "Time during which the device was throttled while the claim held it, by reason"},
		{"k8s.resourceclaim.device.utilization", gaugeInstrument, "1", claim, "Share of time in which the device, or one of its engines, was active for the claim"},
		{"k8s.resourceclaim.device.memory.usage", upDownCounterInstrument, "By", claim, "Device memory used by the claim"},
		{"k8s.resourceclaim.device.memory.limit", upDownCounterInstrument, "By", claim, "Device memory given to the claim"},
		{"k8s.resourceclaim.device.power", gaugeInstrument, "W", claim, "Power drawn for the claim"},
		{"k8s.resourceclaim.device.energy", counterInstrument, "J", claim, "Energy drawn while the claim held the device"},
		{"k8s.resourceclaim.device.io", counterInstrument, "By", claim, "Bytes that the device received and transmitted while the claim held it"},
		{"k8s.resourceclaim.device.network.io", counterInstrument, "By", claim, "Bytes that the network device received and transmitted while the claim held it"},
		{"k8s.pod.device.utilization", gaugeInstrument, "1", nil, "Utilization of the device by the pod's processes"},
		{"k8s.pod.device.memory.usage", upDownCounterInstrument, "By", nil, "Device memory used by the pod's processes"},
	}
}

// claimConventions are the families about the use of devices by claims and pods.
func claimConventions() []convention {
	const device = "k8s.resourceclaim.device."
	hold := func(family, metric string, rules ...rule) convention {
		return convention{family: family, metric: device + metric, subject: claimSubject, rules: rules}
	}
	account := func(family, metric string, rules ...rule) convention {
		return hold(family, metric, append(rules, rule{key: draAttribution, label: "attribution"})...)
	}
	return []convention{
		hold(metric.ClaimHeld, "count"),
		hold(metric.ClaimBundledDevices, "bundled.count"),
		hold(metric.ClaimHeldSeconds, "held.time"),
		hold(metric.ClaimDeviceSeconds, "share.time"),
		hold(metric.ClaimMemoryAllocatedBytes, "memory.limit"),
		account(metric.ClaimBusySeconds, "busy.time"),
		account(metric.ClaimExecutionIdleSeconds, "execution_idle.time"),
		account(metric.ClaimExecutionIdleJoules, "execution_idle.energy"),
		account(metric.ClaimThrottledSeconds, "throttled.time", rule{key: draThrottleReason, label: "reason"}),
		account(metric.ClaimUtilizationRatio, "utilization", rule{key: hwGPUTask, constant: generalTask}),
		account(metric.ClaimEngineActiveRatio, "utilization", engineTask()),
		account(metric.ClaimMemoryUsedBytes, "memory.usage"),
		account(metric.ClaimPowerWatts, "power"),
		account(metric.ClaimEnergyJoules, "energy"),
		account(metric.ClaimPCIeReceiveBytes, "io", direction("pcie", "receive")...),
		account(metric.ClaimPCIeTransmitBytes, "io", direction("pcie", "transmit")...),
		account(metric.ClaimNVLinkReceiveBytes, "io", direction("nvlink", "receive")...),
		account(metric.ClaimNVLinkTransmitBytes, "io", direction("nvlink", "transmit")...),
		account(metric.ClaimNetworkReceiveBytes, "network.io", direction("", "receive")...),
		account(metric.ClaimNetworkTransmitBytes, "network.io", direction("", "transmit")...),
		{family: metric.PodUtilizationRatio, metric: "k8s.pod.device.utilization", subject: podSubject},
		{family: metric.PodMemoryUsedBytes, metric: "k8s.pod.device.memory.usage", subject: podSubject},
	}
}

func targets() []target { return append(hardwareTargets(), claimTargets()...) }

func conventions() []convention { return append(hardwareConventions(), claimConventions()...) }

// Convention is the metric that a family is exported as by semantic conventions.
// Families without one are exported under the names of the scrape.
type Convention struct {
	Family     string
	Metric     string
	Unit       string // UCUM
	Kind       string // gauge, counter or updowncounter
	Derived    bool   // in addition to the family, which is exported as well
	Attributes []AttributeRule
}

// AttributeRule is one attribute: prefix and value of a label, or, without a label,
// the constant value. A label without an attribute is not exported, and neither
// is an attribute whose label is empty. An engine named "general" becomes
// "engine_general".
type AttributeRule struct {
	Attribute, Label, Prefix, Value string
}

// Conventions lists the conventions, for documents and for tests that compare.
// Points may have more attributes than these: Facts. A derived metric has an
// entry for each of its states.
func Conventions() []Convention {
	byName := map[string]target{}
	for _, t := range targets() {
		byName[t.name] = t
	}
	var all []Convention
	add := func(c convention, derived bool) {
		t := byName[c.metric]
		entry := Convention{Family: c.family, Metric: c.metric, Unit: t.unit, Kind: t.kind.String(), Derived: derived}
		for _, r := range append(c.subject.rules(), c.rules...) {
			entry.Attributes = append(entry.Attributes, AttributeRule{string(r.key), r.label, r.prefix, r.constant})
		}
		all = append(all, entry)
	}
	for _, c := range conventions() {
		add(c, false)
	}
	for _, c := range derivedConventions() {
		add(c, true)
	}
	return all
}

// Facts are the attributes of a metric that come from the model, and are on info rows of
// the scrape.
func Facts(metric string) []string {
	var facts []string
	for _, t := range targets() {
		if t.name == metric {
			for _, key := range t.facts {
				facts = append(facts, string(key))
			}
		}
	}
	return facts
}

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

// semConvMetric is one metric by semantic conventions, with the families that are converted to
// it; an attribute distinguishes several.
type semConvMetric struct {
	name     string
	kind     instrument
	unit     string // UCUM
	facts    []attribute.Key
	help     string
	families []convention
}

// convention is how the rows of a family are converted.
type convention struct {
	family  string
	subject subjectKind
	rules   []attributeRule // without those of the subject until NewSemConv adds them
	target  int             // index of the target, likewise

	// derive computes a value from that of a row, which is exported as well; false if it
	// is unknown. Nil: the value is the row's, which is exported as the target alone.
	derive      func(value float64, device *subject) (float64, bool)
	derivedFrom string // for the document
}

// attributeRule is one attribute of a point: prefix and value of a label, or, without a
// label, a constant. A label whose rule has no key is not exported.
type attributeRule struct {
	key           attribute.Key
	label, prefix string
	constant      string
	only          string // of a derived metric: the value of the label in rows that it is made of; empty: any
	transform     func(string) string
}

// value is empty if the attribute is omitted.
func (r attributeRule) value(label string) string {
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
func (k subjectKind) rules() []attributeRule {
	node, device, namespace := attributeRule{label: "node"}, attributeRule{key: hwID, label: "uuid"}, attributeRule{key: k8sNamespaceName, label: "namespace"}
	switch k {
	case deviceSubject:
		return []attributeRule{node, device, {key: hwParent, label: "parent_uuid"}}
	case claimSubject:
		return []attributeRule{node, namespace, {key: ResourceClaimName, label: "resourceclaim"}, device}
	default:
		return []attributeRule{node, namespace, {key: k8sPodName, label: "pod"}, device}
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

// selects reports whether the metric is derived from a row with the labels.
func (c *convention) selects(labels *metric.Labels) bool {
	for _, r := range c.rules {
		if r.only != "" && labels.Get(r.label) != r.only {
			return false
		}
	}
	return true
}

func (c *convention) rule(label string) attributeRule {
	for _, r := range c.rules {
		if r.label == label {
			return r
		}
	}
	return attributeRule{key: attribute.Key(label)}
}

// Attributes of the conventions.
const (
	k8sNamespaceName   attribute.Key = "k8s.namespace.name"
	k8sPodName         attribute.Key = "k8s.pod.name"
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

// hardwareTargets are the metrics about devices, with those facts of a device that the
// conventions list for each.
func hardwareTargets() []semConvMetric {
	gpu := []attribute.Key{hwVendor, hwModel, hwDriverVersion}
	network := []attribute.Key{hwVendor, hwModel}
	component := []attribute.Key{hwType}
	board := append(slices.Clone(gpu), hwSerialNumber, hwFirmwareVersion)
	device := func(family string, rules ...attributeRule) convention {
		return convention{family: family, rules: rules}
	}
	state := func(name, when string) convention {
		return convention{
			family: metric.DeviceHealthy, derivedFrom: when, rules: []attributeRule{{label: "by", only: "hardware"}, {key: hwState, constant: name}},
			derive: func(healthy float64, d *subject) (float64, bool) {
				if d.state(healthy) == name {
					return 1, true
				}
				return 0, true
			},
		}
	}
	return []semConvMetric{
		{"hw.status", upDownCounterInstrument, "1", component, "Operational state of the device as reported by the hardware: 1 for the current state, 0 for the others", []convention{
			state("ok", "`dra_device_healthy{by=\"hardware\"}` is 1, and no signal is a warning"),
			state("degraded", "it is 1, and a row of `dra_device_health_signal_info` is a warning"),
			state("failed", "it is 0"),
		}},
		{"hw.errors", counterInstrument, "{error}", component, "Errors of the device, by type: of a GPU, corrected or uncorrected", []convention{
			device(metric.DeviceECCErrors, attributeRule{key: errorKind, constant: "ecc"}, attributeRule{key: errorType, label: "severity"}),
			device(metric.DeviceXgmiErrors, attributeRule{key: errorKind, constant: "xgmi"}, attributeRule{key: errorType, label: "severity"}),
			device(metric.DevicePCIeReplays, attributeRule{key: errorKind, constant: "pcie_replay"}, attributeRule{key: errorType, constant: "corrected"}),
			device(metric.DeviceNetworkErrors, attributeRule{key: errorType, label: "kind", prefix: "network_"}),
		}},
		{ownDeviceMetric + "errors", counterInstrument, "{error}", component, "Errors of the device that are not known to be corrected or uncorrected, by kind", []convention{
			device(metric.DeviceXIDErrors, attributeRule{key: errorKind, label: "xid", prefix: "xid_"}),
			device(metric.DeviceNVLinkErrors, attributeRule{key: errorKind, label: "kind", prefix: "nvlink_"}),
		}},
		{"hw.energy", counterInstrument, "J", component, "Energy drawn by the device", []convention{device(metric.DeviceEnergyJoules)}},
		{"hw.power", gaugeInstrument, "W", component, "Power drawn by the device", []convention{device(metric.DevicePowerWatts)}},
		{"hw.temperature", gaugeInstrument, "Cel", nil, "Temperature at a sensor of the device", []convention{
			device(metric.DeviceTemperatureCelsius, attributeRule{key: hwSensorLocation, label: "sensor"}),
		}},
		{"hw.gpu.utilization", gaugeInstrument, "1", gpu, "Share of time in which the device, or one of its engines, was active", []convention{
			device(metric.DeviceUtilizationRatio, attributeRule{key: hwGPUTask, constant: generalTask}),
			device(metric.DeviceEngineActiveRatio, engineTask()),
		}},
		{"hw.gpu.memory.usage", upDownCounterInstrument, "By", gpu, "Device memory in use", []convention{device(metric.DeviceMemoryUsedBytes)}},
		{"hw.gpu.memory.limit", upDownCounterInstrument, "By", board, "Size of the device memory", []convention{device(metric.DeviceMemorySizeBytes)}},
		{"hw.gpu.memory.utilization", gaugeInstrument, "1", gpu, "Share of the device memory that is in use", []convention{{
			family: metric.DeviceMemoryUsedBytes, derivedFrom: "`dra_device_memory_used_bytes` / `dra_device_memory_size_bytes`",
			derive: func(used float64, d *subject) (float64, bool) { return used / d.memorySize, d.memorySize > 0 },
		}}},
		{"hw.gpu.io", counterInstrument, "By", gpu, "Bytes that the device received and transmitted", []convention{
			device(metric.DevicePCIeReceiveBytes, direction("pcie", "receive")...),
			device(metric.DevicePCIeTransmitBytes, direction("pcie", "transmit")...),
			device(metric.DeviceNVLinkReceiveBytes, direction("nvlink", "receive")...),
			device(metric.DeviceNVLinkTransmitBytes, direction("nvlink", "transmit")...),
		}},
		{"hw.network.io", counterInstrument, "By", network, "Bytes that the network device received and transmitted", []convention{
			device(metric.DeviceNetworkReceiveBytes, direction("", "receive")...),
			device(metric.DeviceNetworkTransmitBytes, direction("", "transmit")...),
		}},
		{"hw.network.up", upDownCounterInstrument, "1", network, "1 if the port's link is active", []convention{{
			family: metric.DeviceNetworkLinkState, derivedFrom: "`dra_device_network_link_state{state=\"active\"}`",
			rules:  []attributeRule{{key: port, label: "port"}, {label: "state", only: "active"}},
			derive: func(active float64, _ *subject) (float64, bool) { return active, true },
		}}},
	}
}

// direction are the rules of a counter of transferred bytes.
func direction(medium, direction string) []attributeRule {
	rules := []attributeRule{{key: networkIODirection, constant: direction}}
	if medium != "" {
		rules = append(rules, attributeRule{key: link, constant: medium})
	}
	return rules
}

// generalTask is the convention's value for the GPU as a whole.
const generalTask = "general"

// engineTask is the rule of the label engine. An engine named like the
// convention's value for the whole gets a prefix.
func engineTask() attributeRule {
	return attributeRule{key: hwGPUTask, label: "engine", transform: func(engine string) string {
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

// attributionRule is the rule of the label attribution, which most families of claims have.
func attributionRule() attributeRule { return attributeRule{key: attribution, label: "attribution"} }

// claimTargets are the metrics about the use of devices by claims and pods.
func claimTargets() []semConvMetric {
	hold := func(family string, rules ...attributeRule) convention {
		return convention{family: family, subject: claimSubject, rules: rules}
	}
	account := func(family string, rules ...attributeRule) convention {
		return hold(family, append(rules, attributionRule())...)
	}
	pod := func(family string) convention { return convention{family: family, subject: podSubject} }
	claim := func(name string, kind instrument, unit, help string, families ...convention) semConvMetric {
		return semConvMetric{ownClaimMetric + name, kind, unit, []attribute.Key{ResourceClaimUID}, help, families}
	}
	return []semConvMetric{
		claim("count", upDownCounterInstrument, "{device}", "1 while the claim holds the device", hold(metric.ClaimHeld)),
		claim("bundled.count", upDownCounterInstrument, "{device}", "Devices of a driver that no source reads and that the claim holds as one",
			hold(metric.ClaimBundledDevices)),
		claim("held.time", counterInstrument, "s", "Time for which the claim held the device", hold(metric.ClaimHeldSeconds)),
		claim("share.time", counterInstrument, "s", "Time for which the claim held the device, weighted by its share of it", hold(metric.ClaimDeviceSeconds)),
		claim("busy.time", counterInstrument, "s", "Integral of the utilization while the claim held the device", account(metric.ClaimBusySeconds)),
		claim("execution_idle.time", counterInstrument, "s", "Time in which the device computed nothing and drew more than its idle power, while the claim held it",
			account(metric.ClaimExecutionIdleSeconds)),
		claim("execution_idle.energy", counterInstrument, "J", "Energy beyond idle power in the time in which the device computed nothing, while the claim held it",
			account(metric.ClaimExecutionIdleJoules)),
		claim("throttled.time", counterInstrument, "s", "Time during which the device was throttled while the claim held it, by reason",
			account(metric.ClaimThrottledSeconds, attributeRule{key: throttleReason, label: "reason"})),
		claim("utilization", gaugeInstrument, "1", "Share of time in which the device, or one of its engines, was active for the claim",
			account(metric.ClaimUtilizationRatio, attributeRule{key: hwGPUTask, constant: generalTask}), account(metric.ClaimEngineActiveRatio, engineTask())),
		claim("memory.usage", upDownCounterInstrument, "By", "Device memory used by the claim", account(metric.ClaimMemoryUsedBytes)),
		claim("memory.limit", upDownCounterInstrument, "By", "Device memory given to the claim", hold(metric.ClaimMemoryAllocatedBytes)),
		claim("power", gaugeInstrument, "W", "Power drawn for the claim", account(metric.ClaimPowerWatts)),
		claim("energy", counterInstrument, "J", "Energy drawn while the claim held the device", account(metric.ClaimEnergyJoules)),
		claim("io", counterInstrument, "By", "Bytes that the device received and transmitted while the claim held it",
			account(metric.ClaimPCIeReceiveBytes, direction("pcie", "receive")...), account(metric.ClaimPCIeTransmitBytes, direction("pcie", "transmit")...),
			account(metric.ClaimNVLinkReceiveBytes, direction("nvlink", "receive")...), account(metric.ClaimNVLinkTransmitBytes, direction("nvlink", "transmit")...)),
		claim("network.io", counterInstrument, "By", "Bytes that the network device received and transmitted while the claim held it",
			account(metric.ClaimNetworkReceiveBytes, direction("", "receive")...), account(metric.ClaimNetworkTransmitBytes, direction("", "transmit")...)),
		{ownPodMetric + "utilization", gaugeInstrument, "1", nil, "Utilization of the device by the pod's processes", []convention{pod(metric.PodUtilizationRatio)}},
		{ownPodMetric + "memory.usage", upDownCounterInstrument, "By", nil, "Device memory used by the pod's processes", []convention{pod(metric.PodMemoryUsedBytes)}},
	}
}

func targets() []semConvMetric { return append(hardwareTargets(), claimTargets()...) }

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
	var all []Convention
	for _, t := range targets() {
		for _, c := range t.families {
			entry := Convention{Family: c.family, Metric: t.name, Unit: t.unit, Kind: t.kind.String(), Derived: c.derive != nil}
			for _, r := range append(c.subject.rules(), c.rules...) {
				entry.Attributes = append(entry.Attributes, AttributeRule{string(r.key), r.label, r.prefix, r.constant})
			}
			all = append(all, entry)
		}
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

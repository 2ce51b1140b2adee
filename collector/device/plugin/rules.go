package plugin

import "fmt"

// The limits of devicemetrics.proto.
const (
	maxDevices        = 1024
	maxDeviceReadings = 256
	maxReadings       = 32768
	maxExtensions     = 64
	maxHealth         = 32
	maxProcesses      = 4096
	maxEntries        = 250_000 // of a message: an empty one takes two bytes, and a hundred times that when it is decoded
	maxName           = 63
	maxPool           = 253
	maxIdentity       = 128
	maxDetail         = 64
	maxText           = 256
)

// Violation is something that a server has sent against the specification.
type Violation struct {
	Rule string // the sentence of devicemetrics.proto, or the row of its limits
	Text string // what was sent
}

func (v *Violation) Error() string { return v.Text }

func violate(rule, text string, args ...any) error {
	return &Violation{rule, fmt.Sprintf(text, args...)}
}

// The rules that the decoder checks. A test compares them with devicemetrics.proto.
const (
	ruleFirst         = "The server sends a Description first, within 5 seconds, and then Reports."
	ruleDriver        = `It is equal to the name of the socket's file without ".sock".`
	ruleUnique        = "(pool, name) is unique among them."
	rulePool          = "Pool of the device, as in spec.pool.name of the ResourceSlice. Required."
	ruleName          = "Name of the device, as in spec.devices[].name. Required: a DNS label."
	ruleParent        = "Of a partition: the name of the whole device, in the same pool."
	rulePCI           = "PCI address, as the kernel writes it: 0000:c1:00.0."
	ruleText          = "All strings are valid UTF-8 without control characters."
	ruleExtensions    = "The extensions that readings may use. Their names are unique."
	ruleExtensionName = "Lower-case letters, digits and underscores; begins with a letter; no underscore at the end, and no two in sequence."
	ruleKind          = "Gauge or counter. Required."
	ruleMeasured      = "When the values of this Report were measured, unless a Reading states its own time. Time of the node's clock. Required."
	ruleIndex         = "Index of the device in the newest Description before this message, from 0."
	ruleOnce          = "Each device at most once."
	ruleReadings      = "At most one for each quantity and details, and for each extension."
	ruleQuantity      = "A quantity of the table above. Empty for an extension."
	ruleDeclared      = "The name of an extension of the Description. Empty for a quantity."
	ruleDetails       = "Exactly as many as the table has; none for an extension; none is empty."
	ruleFixed         = "Details are the values of a fixed set in each driver"
	ruleValue         = "A finite number. Counters, ratios and sizes are not negative."
	ruleRatio         = "A ratio is from 0 to 1."
	ruleOwnTime       = "When the value was measured, if not at the time of the Report."
	ruleStart         = "Of a counter only: when it was 0."
	ruleFell          = "A counter that falls without a later start_time is an error of this reading"
	ruleSignal        = "What is checked, a DNS label: memory, link, firmware. Unique for the device."
	ruleState         = "HealthState is the state of a health signal."
	rulePID           = "Process ID in the PID namespace of the host; unique in the list. Not 0."
	ruleShare         = "Share of the time in which work of the process was on the device, from 0 to 1."

	limitDevices        = "devices of a Description 1024"
	limitExtensions     = "extensions of a Description 64"
	limitDeviceReadings = "readings of a device 256"
	limitReadings       = "readings of a Report 32768"
	limitHealth         = "health signals of a device 32"
	limitProcesses      = "processes of a device 4096"
	limitEntries        = "entries of a message 250000"
)

// limitOf returns the row of the limit of a text.
func limitOf(bytes int) string {
	switch bytes {
	case maxName:
		return "driver, device, extension name 63 bytes"
	case maxPool:
		return "pool 253 bytes"
	case maxIdentity:
		return "uuid, model, parent 128 bytes"
	case maxDetail:
		return "vendor, driver version, detail 64 bytes"
	default:
		return "reason, unit, help, error 256 bytes"
	}
}

// The rules of a stream, which take time to check.
const (
	ruleSocket      = "The socket is a file named <driver>.sock in the folder that the agent watches"
	ruleSocketName  = "a DNS subdomain in lower case of at most 63 bytes"
	ruleInterval    = "The server sends a Report about once in the interval that the client requests, and at least once every 10 seconds."
	ruleRate        = "It sends no more than 10 messages in a second."
	ruleStream      = "It never ends the stream while it lives"
	ruleMessageSize = "message 4 MiB"
	ruleService     = "DeviceMetrics describes the devices of one DRA driver on one node and reports readings of them."
)

// rules returns every rule, for the test that compares them with the specification.
func rules() []string {
	return []string{
		ruleFirst, ruleDriver, ruleUnique, rulePool, ruleName, ruleParent, rulePCI, ruleText, ruleExtensions, ruleExtensionName, ruleKind,
		ruleMeasured, ruleIndex, ruleOnce, ruleReadings, ruleQuantity, ruleDeclared, ruleDetails, ruleFixed, ruleValue, ruleRatio,
		ruleOwnTime, ruleStart, ruleFell, ruleSignal, ruleState, rulePID, ruleShare,
		limitDevices, limitExtensions, limitDeviceReadings, limitReadings, limitHealth, limitProcesses, limitEntries,
		limitOf(maxName), limitOf(maxPool), limitOf(maxIdentity), limitOf(maxDetail), limitOf(maxText),
		ruleSocket, ruleSocketName, ruleInterval, ruleRate, ruleStream, ruleMessageSize, ruleService,
	}
}

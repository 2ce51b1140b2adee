package metric

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// Level is how much is exported.
type Level uint8

// The levels, each with more than the one before.
const (
	// LevelLean has what the recording rules, alerts and dashboards of the set core ask
	// for, but for what NotLean names, and the number of series that were left out.
	LevelLean Level = iota
	// LevelDefault has all families but those of OnlyFull, and of the process what is
	// asked for.
	LevelDefault
	// LevelFull has all families with all of their rows.
	LevelFull
)

// Levels returns the names of the levels, in their order.
func Levels() []string { return []string{"lean", "default", "full"} }

func (l Level) String() string { return Levels()[l] }

// ParseLevel returns the level of a name.
func ParseLevel(name string) (Level, error) {
	at := slices.Index(Levels(), name)
	if at < 0 {
		return 0, fmt.Errorf("%q is not one of %s", name, strings.Join(Levels(), ", "))
	}
	return Level(at), nil
}

// has reports whether families of the name are exported at the level. Those of
// dcgm-exporter are enabled by a flag of their own.
func (l Level) has(name string) bool {
	group := GroupOf(name)
	switch {
	case l == LevelFull || group == "dcgm":
		return true
	case OnlyFull()[name] != "":
		return false
	case l == LevelLean:
		return NotLean()[name] == "" && (askedByCore(name) || name == ExporterSeriesDropped)
	case group == "process":
		return askedByQueries(name)
	default:
		return true
	}
}

// OnlyFull returns the families that are exported at the level full only, with the
// reason. Nothing that this project ships asks for them.
func OnlyFull() map[string]string {
	return map[string]string{
		DeviceEngineActiveRatio:   "up to ten rows for each GPU; those of claims are dra_claim_engine_active_ratio",
		DeviceHealthCheck:         "a row for each part of a GPU that DCGM watches; dra_device_health_signal_info has the failed ones",
		DeviceDriverHealth:        "a row for each health signal of a driver; dra_device_health_signal_info has those that are not healthy",
		DevicePartitionInfo:       "ids of instances, for joins with the output of nvidia-smi",
		DeviceSMOccupancyRatio:    "a detail of profiling",
		DeviceMemoryActivityRatio: "a detail of profiling",
		DeviceMemoryReservedBytes: "a constant of the device",
	}
}

// NotLean returns the families that are not exported at the level lean although a
// panel asks for them, with the reason. No recorded claim, device or namespace and no
// alert needs them.
func NotLean() map[string]string {
	const (
		bus  = "traffic of a bus that no rule or alert needs, for one panel"
		link = "a row for each NVLink, for one panel"
	)
	return map[string]string{
		ClaimEngineActiveRatio:            "up to ten rows for each device of a claim, for one panel",
		ClaimThrottledSeconds:             "a row for each reason and device of a claim, for one panel",
		DevicePCIeTransmitBytes:           bus,
		DevicePCIeReceiveBytes:            bus,
		DeviceNetworkTransmitBytes:        bus,
		DeviceNetworkReceiveBytes:         bus,
		DeviceNVLinkTransmitBytes:         "for one panel; that of claims is recorded from dra_claim_nvlink_*",
		DeviceNVLinkReceiveBytes:          "for one panel; that of claims is recorded from dra_claim_nvlink_*",
		DeviceNVLinkLinkTransmitBytes:     link,
		DeviceNVLinkLinkReceiveBytes:      link,
		DeviceClockHertz:                  "a row for each clock, for one panel; dra_device_throttled_seconds_total has the time in which it is lowered",
		DevicePowerLimitWatts:             "rarely changes, for one value of a panel",
		ExporterSourceReadDurationSeconds: "a row for each bucket and source, for the panels about durations of reads",
	}
}

//go:embed asked.txt
var asked string

// Asked returns who asks for each family that something asks for: "rules",
// "alerts", "runbooks", and dashboards by their names; those of another set than core
// with its name before, as in "capacity/alerts". asked.txt is generated from their queries.
func Asked() map[string][]string {
	families := map[string][]string{}
	for line := range strings.Lines(asked) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] != "#" {
			families[fields[0]] = fields[1:]
		}
	}
	return families
}

// askedByQueries reports whether a rule, an alert or a dashboard asks for a family,
// and not only a runbook.
func askedByQueries(name string) bool {
	return slices.ContainsFunc(Asked()[name], func(asker string) bool { return asker != "runbooks" })
}

// askedByCore is askedByQueries for those of the set core.
func askedByCore(name string) bool {
	return slices.ContainsFunc(Asked()[name], func(asker string) bool { return asker != "runbooks" && !strings.Contains(asker, "/") })
}

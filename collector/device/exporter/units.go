package exporter

import (
	"maps"
	"slices"
)

// unit converts a value to the base unit of its quantity: it is multiplied, then
// divided, so that decimal fractions stay exact.
type unit struct{ multiply, divide float64 }

func (u unit) base(value float64) float64 { return value * u.multiply / u.divide }

// baseUnits returns the units in which exporters give a quantity whose base unit is
// base, by their names.
func baseUnits(base string) map[string]unit {
	units := map[string]unit{base: {1, 1}}
	prefixes := map[string]unit{
		"nano": {1, 1e9}, "micro": {1, 1e6}, "milli": {1, 1e3}, "kilo": {1e3, 1}, "mega": {1e6, 1}, "giga": {1e9, 1},
	}
	switch base {
	case "ratio":
		units["percent"] = unit{1, 100}
		return units
	case "bytes":
		prefixes = map[string]unit{
			"kilo": {1e3, 1}, "mega": {1e6, 1}, "giga": {1e9, 1},
			"kibi": {1 << 10, 1}, "mebi": {1 << 20, 1}, "gibi": {1 << 30, 1},
		}
	case "watts", "joules", "hertz", "seconds":
	default: // degrees Celsius and counts have one unit
		return units
	}
	for prefix, factor := range prefixes {
		units[prefix+base] = factor
	}
	return units
}

// unitNames are the names of units, sorted.
func unitNames(units map[string]unit) []string { return slices.Sorted(maps.Keys(units)) }

package smi

import (
	"math"
	"strconv"
	"strings"
)

// Unit is a base unit.
type Unit string

// The units of numbers.
const (
	Count          Unit = ""
	Bytes          Unit = "bytes"
	BytesPerSecond Unit = "bytes per second"
	Watts          Unit = "watts"
	Volts          Unit = "volts"
	Celsius        Unit = "degrees Celsius"
	Hertz          Unit = "hertz"
	Seconds        Unit = "seconds"
	Ratio          Unit = "ratio" // 0 to 1, printed in percent
)

// Number is a quantity as nvidia-smi prints it. The zero value is a quantity
// that is not known: its element is absent, or has no number of a known unit,
// such as "N/A", "[Not Supported]" or "Unknown Error".
type Number struct {
	Value      float64
	Unit       Unit
	Resolution float64 // of the printed text, in Unit: 0.01 of "68.57 W"
	Known      bool
}

// parseNumber reads "81559 MiB", "68.57 W", "-8 C", "16x" or "150".
func parseNumber(text string) Number {
	text = strings.TrimSpace(text)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '-' })
	if end < 0 {
		end = len(text)
	}
	digits := text[:end]
	factor, unit, known := unitOf(strings.TrimSpace(text[end:]))
	// A negative sign before the first digit is all that ParseFloat takes of
	// the letters above.
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil || !known || len(digits) > 32 || strings.HasPrefix(digits, ".") || strings.HasSuffix(digits, ".") {
		return Number{}
	}
	_, fraction, _ := strings.Cut(digits, ".")
	return Number{Value: value * factor, Unit: unit, Resolution: math.Pow10(-len(fraction)) * factor, Known: true}
}

// unitOf returns the base unit of a printed one, and how many of it that is.
// NVML documents the throughput of PCIe in KB/s, which are taken as 1000 bytes.
func unitOf(text string) (factor float64, unit Unit, known bool) {
	switch text {
	case "", "x", "bank(s)":
		return 1, Count, true
	case "B":
		return 1, Bytes, true
	case "KiB":
		return 1 << 10, Bytes, true
	case "MiB":
		return 1 << 20, Bytes, true
	case "GiB":
		return 1 << 30, Bytes, true
	case "KB/s":
		return 1e3, BytesPerSecond, true
	case "MB/s":
		return 1e6, BytesPerSecond, true
	case "GB/s":
		return 1e9, BytesPerSecond, true
	case "W":
		return 1, Watts, true
	case "mW":
		return 1e-3, Watts, true
	case "mV":
		return 1e-3, Volts, true
	case "C":
		return 1, Celsius, true
	case "MHz":
		return 1e6, Hertz, true
	case "us":
		return 1e-6, Seconds, true
	case "ms":
		return 1e-3, Seconds, true
	case "s":
		return 1, Seconds, true
	case "%":
		return 0.01, Ratio, true
	default:
		return 0, Count, false
	}
}

// Flag is a yes or no as nvidia-smi prints it. The zero value is not known.
type Flag struct {
	Value bool
	Known bool
}

func parseFlag(text string) Flag {
	switch strings.TrimSpace(text) {
	case "Yes", "Active", "Enabled", "True":
		return Flag{Value: true, Known: true}
	case "No", "Not Active", "Disabled", "False":
		return Flag{Known: true}
	default:
		return Flag{}
	}
}

// parseText returns a text, or "" for one that says that there is none.
func parseText(text string) string {
	text = strings.TrimSpace(text)
	switch strings.Trim(text, "[]") {
	case "N/A", "Not Supported", "Unknown Error", "Requested functionality has been deprecated", "GPU is lost",
		"Insufficient Permissions", "GPU requires reset", "Not Found", "Function Not Found", "GPU access blocked by the operating system":
		return ""
	}
	return text
}

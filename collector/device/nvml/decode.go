package nvml

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// characters is the text in an array of C characters, up to the first zero.
func characters(array []int8) string {
	var b strings.Builder
	for _, c := range array {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return text(b.String())
}

// text is a string of the library as valid UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// profileOfName is the profile at the end of the name that the library gives
// a MIG device, such as "NVIDIA H100 80GB HBM3 MIG 1g.10gb"; empty where
// there is none.
func profileOfName(name string) string {
	_, profile, _ := strings.Cut(name, " MIG ")
	return strings.TrimSpace(profile)
}

// profileOfSize names a MIG profile by what it consists of: compute slices of
// a GPU instance with so many slices, and its memory in GB, which counts in
// eighths of the whole GPU's.
func profileOfSize(computeSlices, instanceSlices uint32, memory, whole uint64) string {
	if instanceSlices == 0 || memory == 0 || whole == 0 {
		return ""
	}
	const gib = 1 << 30
	eighths := math.Ceil(float64(memory) / float64(whole) * 8)
	size := math.Round(eighths / 8 * math.Ceil(float64(whole)/gib))
	if computeSlices != 0 && computeSlices != instanceSlices {
		return fmt.Sprintf("%dc.%dg.%.0fgb", computeSlices, instanceSlices, size)
	}
	return fmt.Sprintf("%dg.%.0fgb", instanceSlices, size)
}

// number is the value of a field, whose type is one of nvmlValueType_t. It is
// false for a type that is not known.
func number(valueType uint32, raw [8]byte) (float64, bool) {
	bits := binary.NativeEndian.Uint64(raw[:])
	short := binary.NativeEndian.Uint32(raw[:4])
	switch valueType {
	case 0: // double
		value := math.Float64frombits(bits)
		return value, !math.IsNaN(value) && !math.IsInf(value, 0)
	case 1: // unsigned int
		return float64(short), true
	case 2, 3: // unsigned long, unsigned long long
		return float64(bits), true
	case 4: // signed long long
		return float64(int64(bits)), true
	case 5: // signed int
		return float64(int32(short)), true
	case 6: // unsigned short
		return float64(binary.NativeEndian.Uint16(raw[:2])), true
	default:
		return 0, false
	}
}

package device

import (
	"regexp"
	"testing"
)

func TestPCIAddress(t *testing.T) {
	for spelled, want := range map[string]string{
		"0000:c1:00.0":     "0000:c1:00.0",
		"0000:C1:1F.7":     "0000:c1:1f.7",
		"00000000:1A:00.0": "0000:1a:00.0",
		"00010000:0B:00.1": "10000:0b:00.1",
		"10000:e1:00.0":    "10000:e1:00.0", // behind a volume management device
		"ffff:ff:1f.7":     "ffff:ff:1f.7",
		"":                 "",
		"module":           "",
		"mlx5_core.sf.4":   "",
		"1a:00.0":          "",
		"0000:1a:00":       "",
		"0000:1a:0g.0":     "",
		"0000:1a:20.0":     "",
		"0000:1a:00.8":     "",
		"0000:1a:00.0 ":    "",
		"0000:1a:00.0:1":   "",
		"0000:1a:0:0.0":    "",
		"100000000:1a:0.0": "",
	} {
		if got := PCIAddress(spelled); got != want {
			t.Errorf("%q is %q, want %q", spelled, got, want)
		}
	}
}

func FuzzPCIAddress(f *testing.F) {
	f.Add("00000000:1A:00.0")
	f.Add("::.")
	address := regexp.MustCompile(`^([0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7])?$`)
	f.Fuzz(func(t *testing.T, spelled string) {
		if got := PCIAddress(spelled); !address.MatchString(got) || PCIAddress(got) != got {
			t.Errorf("%q is the address %q", spelled, got)
		}
	})
}

package vendors

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestPCIAddress(t *testing.T) {
	for given, want := range map[string]string{
		"0000:c1:00.0":     "0000:c1:00.0",
		"0000:CA:00.0":     "0000:ca:00.0",
		"00000000:C1:00.0": "0000:c1:00.0",
		"c1:1f.7":          "0000:c1:1f.7",
		"10000:e1:00.0":    "10000:e1:00.0",
		"0001:0a:00.1":     "0001:0a:00.1",
		"0000:c1:00":       "",
		"0000:c1:20.0":     "",
		"0000:c1:00.8":     "",
		"0000:c1:00.00":    "",
		"1:2:3:4.0":        "",
		"0000:+1:00.0":     "",
		"":                 "",
	} {
		if got := PCIAddress(given); got != want {
			t.Errorf("%q becomes %q, want %q", given, got, want)
		}
	}
}

func TestDecodeMIGName(t *testing.T) {
	none := dra.PlacementUnknown
	for given, want := range map[string]struct {
		profile   string
		placement int
	}{
		"gpu-0-mig-1g10gb-19-4":         {"1g.10gb", 4},
		"gpu-12-mig-7g80gb-0-0":         {"7g.80gb", 0},
		"gpu-1-mig-1c2g20gb-14-2":       {"1c.2g.20gb", 2},
		"gpu-1-mig-1g10gb-me-20-6":      {"1g.10gb+me", 6},
		"gpu-1-mig-1g24gb-me-all-20-6":  {"1g.24gb+me+all", 6},
		"gpu-0":                         {"", none},
		"gpu-vfio-1":                    {"", none},
		"gpu-x-mig-1g10gb-19-4":         {"", none},
		"gpu-0-mig-19-4":                {"", none},
		"gpu-0-mig-1g10gb-19":           {"", none},
		"gpu-0-mig-1g10gb-19-99999999":  {"", none},
		"gpu-0-mig-1g10gb-nineteen-4":   {"", none},
		"gpu-0-partition-3":             {"", none},
		"other-gpu-0-mig-1g10gb-19-4":   {"", none},
		"gpu-0-mig-1g10gb-19-4-trailer": {"", none},
	} {
		if profile, placement := decodeMIGName(given); profile != want.profile || placement != want.placement {
			t.Errorf("%q has %q at %d, want %q at %d", given, profile, placement, want.profile, want.placement)
		}
	}
}

// TestNUMANode has the attributes of the drivers of CPUs and network adapters.
func TestNUMANode(t *testing.T) {
	for name, test := range map[string]struct {
		attributes map[string]string
		want       string
	}{
		"Kubernetes":    {map[string]string{"resource.kubernetes.io/numaNode": "1", "dra.net/numaNode": "0"}, "1"},
		"dra.net":       {map[string]string{"numaNode": "1"}, "1"},
		"dra.cpu":       {map[string]string{"numaNodeID": "1"}, "1"},
		"SR-IOV":        {map[string]string{"dra.net/numaNode": "1"}, "1"},
		"none":          {map[string]string{"resource.kubernetes.io/numaNode": "-1"}, ""},
		"not a number":  {map[string]string{"numaNode": "first"}, ""},
		"no attributes": {nil, ""},
	} {
		lookup := Lookup(func(name string) (string, bool) { text, ok := test.attributes[name]; return text, ok })
		if got := lookup.NUMANode(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, seed := range []string{"0000:c1:00.0", "00000000:CA:1f.7", "gpu-0-mig-1g10gb-19-4", "gpu-1-mig-1c2g20gb-me-14-2", "gpu-"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if address := PCIAddress(name); address != "" && PCIAddress(address) != address {
			t.Errorf("address %q becomes %q, which is not stable", name, address)
		}
		profile, placement := decodeMIGName(name)
		if placement < -1 || placement == -1 && profile != "" {
			t.Errorf("%q has profile %q and placement %d", name, profile, placement)
		}
	})
}

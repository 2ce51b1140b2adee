package dra

import "testing"

func TestAlignment(t *testing.T) {
	at := func(root, numa string) Location { return Location{Root: root, NUMA: numa} }
	linked := func(domain, numa string) Location { return Location{Link: domain, Root: "pci0000:" + numa, NUMA: numa} }
	for name, test := range map[string]struct {
		devices, adapters []Location
		among, network    string
	}{
		"one root":              {[]Location{at("pci0000:10", "0"), at("pci0000:10", "0")}, []Location{at("pci0000:10", "0")}, "pcie_root", "pcie_root"},
		"one NUMA node":         {[]Location{at("pci0000:10", "0"), at("pci0000:20", "0")}, []Location{at("pci0000:20", "0")}, "numa_node", "numa_node"},
		"an adapter for each":   {[]Location{at("pci0000:10", "0"), at("pci0000:80", "1")}, []Location{at("pci0000:80", "1"), at("pci0000:10", "0")}, "crossing", "pcie_root"},
		"an adapter for one":    {[]Location{at("pci0000:10", "0"), at("pci0000:80", "1")}, []Location{at("pci0000:80", "1")}, "crossing", "crossing"},
		"roots alone":           {[]Location{at("pci0000:10", ""), at("pci0000:20", "")}, []Location{at("pci0000:20", "")}, "unknown", "unknown"},
		"one is not known":      {[]Location{at("pci0000:10", "0"), {}}, nil, "unknown", ""},
		"one is not, two cross": {[]Location{at("pci0000:10", "0"), {}, at("pci0000:80", "1")}, nil, "crossing", ""},
		"linked":                {[]Location{linked("a", "0"), linked("a", "1")}, []Location{linked("", "0")}, "link", "crossing"},
		"of two domains":        {[]Location{linked("a", "0"), linked("b", "0")}, nil, "pcie_root", ""},
		"linked, unknown whom":  {[]Location{linked("unknown", "0"), linked("unknown", "1")}, []Location{linked("", "0")}, "unknown", "crossing"},
		"the same, near":        {[]Location{linked("unknown", "0"), linked("unknown", "0")}, nil, "pcie_root", ""},
		"one is not linked":     {[]Location{linked("a", "0"), linked("a", "1"), linked("", "1")}, nil, "crossing", ""},
	} {
		if got := AlignmentOf(test.devices).String(); got != test.among {
			t.Errorf("%s: with each other %s, want %s", name, got, test.among)
		}
		if len(test.adapters) > 0 {
			if got := AlignmentWithNearest(test.devices, test.adapters).String(); got != test.network {
				t.Errorf("%s: with the network %s, want %s", name, got, test.network)
			}
		}
	}
}

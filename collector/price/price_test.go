package price

import "testing"

func TestFirstMatchingRule(t *testing.T) {
	prices := &Prices{Currency: "EUR", Rules: []Rule{
		{DeviceClass: "gold", Model: "NVIDIA H100*", PerHour: 9},
		{DeviceClass: "mig.nvidia.com", Profile: "1g.10gb", PerHour: 0.5},
		{DeviceClass: "mig.nvidia.com", PerHour: 0.7},
		{Profile: "2g.*", PerHour: 1},
		{Model: "NVIDIA H100*", PerHour: 4},
		{Model: "AMD Instinct [MI300X]", PerHour: 3},
		{Model: "a/*/c", PerHour: 2},
		{Driver: "dra.cpu", PerHour: 0.1},
		{Driver: "gpu.nvidia.com", Model: "NVIDIA L4", PerHour: 0.8},
		{PerHour: 0},
	}}
	none := -1.0
	for name, c := range map[string]struct {
		device PricedDevice
		want   float64
	}{
		"by class and model":                           {PricedDevice{DeviceClass: "gold", Model: "NVIDIA H100 80GB HBM3"}, 9},
		"by model, held through another class":         {PricedDevice{DeviceClass: "gpu.nvidia.com", Model: "NVIDIA H100 PCIe"}, 4},
		"by driver":                                    {PricedDevice{Driver: "dra.cpu", NamedOnly: true}, 0.1},
		"by driver and model":                          {PricedDevice{Driver: "gpu.nvidia.com", Model: "NVIDIA L4"}, 0.8},
		"by model, of another driver":                  {PricedDevice{Driver: "other", Model: "NVIDIA L4"}, 0},
		"that needs a name, by class":                  {PricedDevice{DeviceClass: "gold", Model: "NVIDIA H100", NamedOnly: true}, 9},
		"that needs a name, by model":                  {PricedDevice{Driver: "other", Model: "NVIDIA H100", NamedOnly: true}, 4},
		"that needs a name, and has none":              {PricedDevice{DeviceClass: "cpu", Driver: "other", Model: "CPU", NamedOnly: true}, none},
		"by model, while it is free":                   {PricedDevice{Model: "NVIDIA H100"}, 4},
		"by class, of another model":                   {PricedDevice{DeviceClass: "gold", Model: "NVIDIA B200"}, 0},
		"of a model in brackets":                       {PricedDevice{Model: "AMD Instinct [MI300X]"}, 3},
		"a bracket is no set of letters":               {PricedDevice{Model: "AMD Instinct M"}, 0},
		"a slash is text":                              {PricedDevice{Model: "a/b/b/c"}, 2},
		"of an unknown model":                          {PricedDevice{}, 0},
		"a partition by class and profile":             {PricedDevice{DeviceClass: "mig.nvidia.com", Model: "NVIDIA H100", Profile: "1g.10gb", Partition: true}, 0.5},
		"a partition by class alone":                   {PricedDevice{DeviceClass: "mig.nvidia.com", Model: "NVIDIA H100", Profile: "7g.80gb", Partition: true}, 0.7},
		"a partition by class, of unknown profile":     {PricedDevice{DeviceClass: "mig.nvidia.com", Partition: true}, 0.7},
		"a partition by profile, through any class":    {PricedDevice{DeviceClass: "other", Profile: "2g.20gb", Partition: true}, 1},
		"a partition by profile, while it is free":     {PricedDevice{Profile: "2g.20gb", Partition: true}, 1},
		"a partition has no price of the whole device": {PricedDevice{Model: "NVIDIA H100", Profile: "1g.10gb", Partition: true}, none},
		"nor if its profile is unknown":                {PricedDevice{Model: "NVIDIA H100", Partition: true}, none},
		"nor if only its profile shows that it is one": {PricedDevice{Model: "NVIDIA H100", Profile: "1g.10gb"}, none},
	} {
		got, known := prices.PerHour(c.device)
		if known != (c.want >= 0) || known && got != c.want {
			t.Errorf("%s: %v (known: %v), want %v", name, got, known, c.want)
		}
	}
}

func TestWithoutList(t *testing.T) {
	var prices *Prices
	if got, known := prices.PerHour(PricedDevice{Model: "NVIDIA H100"}); known {
		t.Errorf("without a list the price is %v", got)
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		text, pattern string
		want          bool
	}{
		{"NVIDIA H100", "", true}, {"", "", true},
		{"NVIDIA H100", "NVIDIA H100", true}, {"NVIDIA H100 PCIe", "NVIDIA H100", false}, {"nvidia h100", "NVIDIA H100", false},
		{"NVIDIA H100", "NVIDIA H100*", true}, {"NVIDIA H100 PCIe", "NVIDIA H100*", true}, {"NVIDIA H200", "NVIDIA H100*", false},
		{"NVIDIA H100 PCIe", "*H100*", true}, {"NVIDIA H100 PCIe", "*PCIe", true}, {"NVIDIA H100 SXM", "*PCIe", false},
		{"ab", "ab*b", false}, {"abb", "ab*b", true}, {"axbxc", "a*b*c", true}, {"axcxb", "a*b*c", false}, {"abcbc", "a*bc", true},
		{"anything", "*", true}, {"", "*", false}, {"", "a*", false}, {"anything", "**", true},
	} {
		if got := isLike(c.text, c.pattern); got != c.want {
			t.Errorf("%q is like %q: %v", c.text, c.pattern, got)
		}
	}
}

// TestCovering compares covers with all devices of a small set: a rule is covered if and
// only if no device matches it that does not match the other.
func TestCovering(t *testing.T) {
	classes, drivers, models, profiles := []string{"", "a", "b"}, []string{"", "d"}, []string{"", "h", "hx", "h*", "*", "*x"}, []string{"", "1g", "2g", "*g"}
	var devices []PricedDevice
	for _, class := range []string{"", "a", "b", "c"} {
		for _, model := range []string{"", "h", "hx", "h1x", "q", "qx", "h1"} {
			for _, driver := range []string{"", "d", "e"} {
				devices = append(devices, PricedDevice{DeviceClass: class, Driver: driver, Model: model, NamedOnly: driver != ""})
				for _, profile := range []string{"", "1g", "2g", "3g", "q"} {
					devices = append(devices, PricedDevice{DeviceClass: class, Driver: driver, Model: model, Profile: profile, Partition: true})
				}
			}
		}
	}
	var rules []Rule
	for _, class := range classes {
		for _, model := range models {
			for _, profile := range profiles {
				for _, driver := range drivers {
					rules = append(rules, Rule{DeviceClass: class, Driver: driver, Model: model, Profile: profile})
				}
			}
		}
	}
	covered := 0
	for _, first := range rules {
		for _, second := range rules {
			want := true
			for _, device := range devices {
				few := device.NamedOnly && !first.isNamed() && second.Driver == "" // see covers
				want = want && (few || first.fits(device) || !second.fits(device))
			}
			if got := first.covers(second); got != want {
				t.Fatalf("%+v covers %+v: %v, want %v", first, second, got, want)
			}
			if want {
				covered++
			}
		}
	}
	if covered <= len(rules) || covered == len(rules)*len(rules) {
		t.Errorf("%d of %d pairs are covered: the set is too small", covered, len(rules)*len(rules))
	}
}

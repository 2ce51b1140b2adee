package price

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

const example = `# prices of 2026
currency: EUR
prices:
  - deviceclass: gold.example.com
    perHour: 12
  - {model: "NVIDIA H100*", perHour: 4.10}
  - model: NVIDIA A100*
    profile: 1g.10gb
    perHour: 0.35
  - perHour: -0
`

func TestParse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	want := &Prices{Currency: "EUR", Rules: []Rule{
		{DeviceClass: "gold.example.com", PerHour: 12},
		{Model: "NVIDIA H100*", PerHour: 4.1},
		{Model: "NVIDIA A100*", Profile: "1g.10gb", PerHour: 0.35},
		{PerHour: 0},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v; want %+v", got, err, want)
	}
	if math.Signbit(got.Rules[3].PerHour) {
		t.Error("minus zero is no price")
	}
}

func TestMissingFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nowhere.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("the error does not name the file: %v", err)
	}
	if _, err := Load(filepath.Dir(path)); err == nil {
		t.Error("a folder is read as a price list")
	}
}

// TestParseErrors checks that errors name the file and, if there are any, the line and
// the key.
func TestParseErrors(t *testing.T) {
	prices := func(rule string) string { return "currency: EUR\nprices:\n  - " + rule + "\n" }
	for name, c := range map[string]struct{ text, want string }{
		"nothing":              {"", "prices.yaml: it is empty"},
		"comments alone":       {"# later\n", "prices.yaml: it is empty"},
		"no YAML":              {"currency: [EUR\n", "prices.yaml: yaml: line 1"},
		"bytes that are none":  {"currency: \xff\n", "prices.yaml: yaml:"},
		"a list":               {"- perHour: 3\n", "prices.yaml:1: the price list is a list, want keys and values (currency, prices)"},
		"text":                 {"free\n", `prices.yaml:1: the price list is the text "free"`},
		"two documents":        {example + "---\ncurrency: USD\n", "a second document begins here"},
		"broken second":        {example + "---\n[", "prices.yaml: yaml:"},
		"no currency":          {"prices:\n  - perHour: 3\n", "prices.yaml:1: currency is missing"},
		"no name of currency":  {"\ncurrency:\nprices:\n  - perHour: 3\n", "prices.yaml:2: currency is empty"},
		"a blank currency":     {"currency: '  '\nprices:\n  - perHour: 3\n", "prices.yaml:1: currency is empty"},
		"a currency of number": {"currency: 978\nprices:\n  - perHour: 3\n", `prices.yaml:1: currency is "978", want text`},
		"a long currency":      {"currency: the money of our own house\nprices:\n  - perHour: 3\n", "prices.yaml:1: currency is longer than 16 bytes"},
		"no prices":            {"currency: EUR\n", "prices.yaml:1: prices is missing"},
		"empty prices":         {"currency: EUR\nprices: []\n", "prices.yaml:2: prices has no entries"},
		"null for prices":      {"currency: EUR\nprices:\n", "prices.yaml:2: prices is empty, want a list"},
		"prices of another type": {
			"currency: EUR\nprices: {model: x, perHour: 1}\n", "prices.yaml:2: prices is a mapping, want a list"},
		"an unknown key":        {"currency: EUR\nprice: []\n", `prices.yaml:2: unknown key "price", want one of currency, prices`},
		"a key twice":           {"currency: EUR\nprices: []\ncurrency: USD\n", "prices.yaml:3: currency is set twice, first in line 1"},
		"a price that is none":  {prices("3"), `prices.yaml:3: a price is "3", want keys and values (deviceclass, driver, model, profile, perHour)`},
		"an unknown key below":  {prices("model: x\n    perhour: 3"), `prices.yaml:4: unknown key "perhour", want one of deviceclass, driver, model, profile, perHour`},
		"a list as a key":       {prices("? [model]\n    : x"), `prices.yaml:3: unknown key ""`},
		"a merged key":          {"currency: EUR\nprices:\n  - &a {model: x, perHour: 1}\n  - {<<: *a, profile: y}\n", `prices.yaml:4: unknown key "<<"`},
		"an alias":              {"currency: EUR\nprices:\n  - &a {model: x, perHour: 1}\n  - *a\n", "prices.yaml:4: a price is an alias"},
		"a key below twice":     {prices("model: x\n    model: y\n    perHour: 3"), "prices.yaml:4: model is set twice, first in line 3"},
		"no perHour":            {prices("model: x"), "prices.yaml:3: perHour is missing"},
		"a negative price":      {prices("model: x\n    perHour: -0.5"), "prices.yaml:4: perHour: -0.5 is negative"},
		"no number":             {prices("perHour: .nan"), `prices.yaml:3: perHour: ".nan" is not a finite decimal number`},
		"endless":               {prices("perHour: .inf"), `prices.yaml:3: perHour: ".inf" is not a finite decimal number`},
		"no number, by its tag": {prices("perHour: !!float nan"), `prices.yaml:3: perHour: "nan" is not a finite decimal number`},
		"endless, by its tag":   {prices("perHour: !!float infinity"), `prices.yaml:3: perHour: "infinity" is not a finite decimal number`},
		"too large to write":    {prices("perHour: 1e400"), `perHour is the text "1e400", want a number`},
		"too large":             {prices("perHour: 2e12"), "prices.yaml:3: perHour: 2e12 is more than 1e+12"},
		"hexadecimal":           {prices("perHour: 0x10"), `perHour: "0x10" is not a finite decimal number`},
		"a comma":               {prices("perHour: 4,10"), `prices.yaml:3: perHour is the text "4,10", want a number`},
		"a number as text":      {prices("perHour: '4'"), `prices.yaml:3: perHour is the text "4", want a number`},
		"nothing as a number":   {prices("perHour:"), "prices.yaml:3: perHour is empty, want a number"},
		"a list as a number":    {prices("perHour: [4]"), "prices.yaml:3: perHour is a list, want a number"},
		"a model of numbers":    {prices("model: 4090\n    perHour: 3"), `prices.yaml:3: model is "4090", want text (in quotes`},
		"an empty model":        {prices("model: ''\n    perHour: 3"), "prices.yaml:3: model is empty"},
		"a model with a tab":    {prices("model: \"a\\tb\"\n    perHour: 3"), "prices.yaml:3: model has control characters"},
		"a long profile":        {prices("profile: " + strings.Repeat("g", 254) + "\n    perHour: 3"), "prices.yaml:3: profile is longer than 253 bytes"},
		"a star in a class":     {prices("deviceclass: gpu*\n    perHour: 3"), "prices.yaml:3: deviceclass: * is a wildcard only in model and profile"},
		"a star in a driver":    {prices("driver: dra*\n    perHour: 3"), "prices.yaml:3: driver: * is a wildcard only in model and profile"},
		"the same twice":        {prices("model: x\n    perHour: 3\n  - perHour: 4\n    model: x"), "prices.yaml:5: this price is never used: line 3 comes first"},
		"the wider first":       {prices("model: NVIDIA*\n    perHour: 3\n  - {model: NVIDIA H*, deviceclass: gold, perHour: 4}\n  - {model: NVIDIA H100, perHour: 4}"), "prices.yaml:6: this price is never used: line 3 comes first"},
		"too many prices":       {"currency: EUR\nprices:" + strings.Repeat("\n- perHour: 1", 1001), "prices.yaml:3: prices has more than 1000 entries"},
		"a large file":          {strings.Repeat("#", 1<<20+1), "prices.yaml: it has more than 1048576 bytes"},
	} {
		got, err := Parse("prices.yaml", []byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "decode the price list: prices.yaml:") {
			t.Errorf("%s: got %+v and error %q, want %q", name, got, err, c.want)
		}
	}
}

func TestDecimalNumbers(t *testing.T) {
	for text, want := range map[string]float64{"010": 10, "1e2": 100, "+3": 3, "0.1": 0.1, ".5": 0.5, "0": 0, "1000000000000": 1e12} {
		got, err := Parse("p", []byte("currency: EUR\nprices: [{perHour: "+text+"}]"))
		if err != nil || got.Rules[0].PerHour != want {
			t.Errorf("%s is %+v, %v; want %v", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	for _, text := range []string{"", "currency: EUR\nprices:\n  - *a\n", "currency: EUR\nprices: [{perHour: .inf}]", "currency: EUR\nprices: [{perHour: !!float 1}]", "? [a]\n: {b: &c c}\n", "a: !!binary x", "%YAML 1.1\n---\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		prices, err := Parse("prices.yaml", []byte(text))
		if err != nil {
			if prices != nil || !utf8.ValidString(err.Error()) {
				t.Errorf("prices %+v and error %q", prices, err)
			}
			return
		}
		if prices.Currency == "" || len(prices.Rules) == 0 {
			t.Errorf("a list without currency or prices: %+v", prices)
		}
		for i, rule := range prices.Rules {
			if rule.PerHour < 0 || math.IsNaN(rule.PerHour) || math.IsInf(rule.PerHour, 0) {
				t.Errorf("the price is %v", rule.PerHour)
			}
			for _, word := range []string{prices.Currency, rule.DeviceClass, rule.Model, rule.Profile} {
				if !utf8.ValidString(word) {
					t.Errorf("%q is not UTF-8", word)
				}
			}
			for _, earlier := range prices.Rules[:i] {
				if earlier.covers(rule) {
					t.Errorf("%+v makes %+v unreachable", earlier, rule)
				}
			}
		}
	})
}

// TestDocumentedList checks the example of docs/cost.md.
func TestDocumentedList(t *testing.T) {
	document, err := os.ReadFile("../../docs/cost.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "```yaml\n")
	text, _, closed := strings.Cut(rest, "```\n")
	prices, err := Parse("docs/cost.md", []byte(text))
	if !closed || err != nil {
		t.Fatalf("the example is none: %v", err)
	}
	for device, want := range map[PricedDevice]float64{
		{DeviceClass: "reserved.example.com", Model: "NVIDIA A100-SXM4-40GB"}: 5.5,
		{DeviceClass: "gpu.nvidia.com", Model: "NVIDIA H100 80GB HBM3"}:       4.1,
		{Model: "NVIDIA A100-SXM4-40GB"}:                                      1.8,
		{Model: "NVIDIA H100 80GB HBM3", Profile: "1g.10gb", Partition: true}: 0.65,
		{Model: "NVIDIA B200", Profile: "3g.90gb", Partition: true}:           2.2,
		{Model: "NVIDIA L4"}: 0.3,
		{Model: "NVIDIA A100-SXM4-40GB", Profile: "1g.5gb", Partition: true}:       -1,
		{DeviceClass: "mig.nvidia.com", Model: "NVIDIA L4", Partition: true}:       -1,
		{DeviceClass: "reserved.example.com", Profile: "1g.10gb", Partition: true}: 5.5,
	} {
		if got, known := prices.PerHour(device); known != (want >= 0) || known && got != want {
			t.Errorf("%+v costs %v (known: %v), want %v", device, got, known, want)
		}
	}
	misspelt := strings.Replace(text, "perHour: 1.80", "perHour: -1.8", 1)
	_, wrong := Parse("prices.yaml", []byte(misspelt))
	if wrong == nil || !strings.Contains(string(document), wrong.Error()) {
		t.Errorf("the document does not show the error %q", wrong)
	}
}

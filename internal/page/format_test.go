package page

import (
	"testing"
	"time"
)

func TestFormats(t *testing.T) {
	for _, test := range []struct {
		show  func(*float64) string
		value float64
		want  string
	}{
		{percent, 0, "0%"}, {percent, 0.425, "42%"}, {percent, 1, "100%"},
		{size, 0, "0 B"}, {size, 1023, "1023 B"}, {size, 1536, "1.5 KiB"}, {size, 80 << 30, "80 GiB"},
		{size, 141.3 * (1 << 30), "141 GiB"}, {size, 1 << 60, "1024 PiB"},
		{watts, 689.4, "689 W"}, {celsius, 71, "71 °C"},
		{energy, 1800, "0.5 Wh"}, {energy, 7_920_000, "2.2 kWh"},
		{seconds, 0.25, "0.2 s"}, {seconds, 55, "55 s"}, {seconds, 150, "2 min"}, {seconds, 11712, "3 h 15 min"},
		{seconds, 200_000, "2 d 7 h"},
		{exact, 0.42, "0.42"}, {exact, 76235669504, "7.6235669504e+10"},
	} {
		if got := test.show(&test.value); got != test.want {
			t.Errorf("%v is shown as %q, want %q", test.value, got, test.want)
		}
	}
	for name, show := range map[string]func(*float64) string{
		"percent": percent, "size": size, "watts": watts, "celsius": celsius, "energy": energy, "seconds": seconds,
	} {
		if got := show(nil); got != absent {
			t.Errorf("%s shows the unknown as %q", name, got)
		}
	}
	if got := exact(nil); got != "" {
		t.Errorf("the unknown has the value %q", got)
	}
	if got := duration(9999 * time.Millisecond); got != "10.0 s" {
		t.Errorf("a span is %q", got)
	}
}

func TestShare(t *testing.T) {
	zero, one, two := 0.0, 1.0, 2.0
	for _, test := range []struct {
		part, whole *float64
		want        string
	}{
		{&one, &two, "50.0%"}, {&zero, &two, "0.0%"}, {&two, &one, "100.0%"},
	} {
		if got := newBar("memory", share(test.part, test.whole)); got.Width != test.want {
			t.Errorf("%v of %v is drawn as %s, want %s", *test.part, *test.whole, got.Width, test.want)
		}
	}
	for _, unknown := range []*bar{newBar("memory", share(nil, &one)), newBar("memory", share(&one, nil)), newBar("memory", share(&one, &zero))} {
		if unknown != nil {
			t.Errorf("the unknown is drawn as %+v", unknown)
		}
	}
}

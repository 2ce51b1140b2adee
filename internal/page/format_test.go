package page

import "testing"

func TestUnknownNumbers(t *testing.T) {
	for name, show := range map[string]func(*float64) string{"percent": percent, "size": size, "seconds": seconds, "whole": whole} {
		if got := show(nil); got != absent {
			t.Errorf("%s shows the unknown as %q", name, got)
		}
	}
	for value, want := range map[float64]string{0.42: "0.42", 76235669504: "7.6235669504e+10"} {
		if got := exact(&value); got != want {
			t.Errorf("%v is written as %q, want %q", value, got, want)
		}
	}
	if got := exact(nil); got != "" {
		t.Errorf("the unknown has the value %q", got)
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

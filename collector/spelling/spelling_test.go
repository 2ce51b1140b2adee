package spelling

import "testing"

func TestNearest(t *testing.T) {
	for _, c := range []struct {
		a, b     string
		distance int
	}{
		{"", "", 0}, {"unit", "unit", 0}, {"unitt", "unit", 1}, {"", "unit", 4}, {"kitten", "sitting", 3},
	} {
		if there, back := Distance(c.a, c.b), Distance(c.b, c.a); there != c.distance || back != c.distance {
			t.Errorf("%q to %q: %d, and back: %d; want %d", c.a, c.b, there, back, c.distance)
		}
	}
	if got := Nearest("quantiy", []string{"unit", "quantity", "quantum"}); got != "quantity" {
		t.Errorf("got %q", got)
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("got %q of no names", got)
	}
}

package thresholds

import (
	"strings"
	"testing"
)

// TestPlaces: a duration is in its own form and in seconds, and no other number is
// taken for it.
func TestPlaces(t *testing.T) {
	for name, test := range map[string]struct{ mark, expr, want string }{
		"duration":          {`after=15m in "> 900", "[15m]": time`, `a > 900 and b{}[15m] and c{}[115m]`, `a > <<seconds Waits after>> and b{}[<<value Waits after>>] and c{}[115m]`},
		"days":              {`after=1d in "> 86400": time`, `a > 86400 or b > 864000`, `a > <<seconds Waits after>> or b > 864000`},
		"share":             {`share=0.9 in "> 0.9": share`, `a > 0.9 or b > 0.95`, `a > <<value Waits share>> or b > 0.95`},
		"of an earlier one": {`count=3 in ">= 3"`, `a >= 3`, `a >= <<value Waits count>>`},
	} {
		rules, err := Read(alerts(test.mark, test.expr))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := WithPlaces(rules)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if want := alerts(test.mark, test.want); got != want {
			t.Errorf("%s:\n%s\nnot\n%s", name, got, want)
		}
	}
}

// TestWrongMarks: the error names the alert.
func TestWrongMarks(t *testing.T) {
	for words, test := range map[string]struct{ mark, expr string }{
		"Waits: a mark is not of the form":                          {`after 15m: time`, `a > 900`},
		`Waits: "> 900" of the threshold after is not in the rule`:  {`after=15m in "> 900": time`, `a > 9000`},
		`Waits: "> 800" has not the default of after, 15m`:          {`after=15m in "> 800": time`, `a > 800`},
		`Waits: "> 0.95" of the threshold share is not in the rule`: {`share=0.95 in "> 0.95": share`, `a > 0.955`},
		`Waits: "> 15" has not the default of count, 3`:             {`count=3 in "> 15": count`, `a > 15`},
	} {
		rules, err := Read(alerts(test.mark, test.expr))
		if err == nil {
			_, err = WithPlaces(rules)
		}
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v, not %s", err, words)
		}
	}
	if _, err := Read("groups: []\n"); err == nil {
		t.Error("a file without alerts is taken")
	}
}

// alerts returns a file with a rule before and after one that has a mark.
func alerts(mark, expr string) string {
	return "groups:\n  - name: one\n    rules:\n      - alert: Before\n        expr: a > 900\n      # Threshold " + mark +
		".\n      - alert: Waits\n        expr: " + expr + "\n      - alert: After\n        expr: a > 900\n"
}

package metric

import "testing"

func TestRuns(t *testing.T) {
	a, b := &Family{Name: "a"}, &Family{Name: "b"}
	rows := []Row{{Family: a}, {Family: a}, {Family: b}, {Family: a}}
	text := ""
	for family, run := range Runs(rows) {
		text += family.Name + string(rune('0'+len(run)))
	}
	if text != "a2b1a1" {
		t.Errorf("runs are %s", text)
	}
	for range Runs(rows) {
		break
	}
	for range Runs(nil) {
		t.Error("no rows have a run")
	}
}

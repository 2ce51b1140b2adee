package node

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A mutation breaks the reducer in one place.
type mutation struct {
	name, file, old, new string
}

// trapMutations take the countermeasure against one trap of TestTraps away.
func trapMutations() []mutation {
	return []mutation{
		{"init_containers", "join.go", "if use.Claim == v.ref.Name {", "if use.Claim == v.ref.Name && container.Name != \"warm\" {"},
		{"every_device", "claim.go", "if use.Covers(d.request) {", "if true {"},
		{"empty_after_restart", "listing.go", "const absenceSpan = 5 * time.Second", "const absenceSpan = 0 * time.Second"},
		{"before_preparation", "join.go", "case known && claim.Allocated && claim.HeldBy(pod.UID):", "case known && claim.Allocated && false:"},
		{"two_shares", "holders.go", "if u.holders.shares[i].claim == claim {", "if false {"},
		{"driver_dies", "devices.go", "s.known[id] = uuids[i]", "defer delete(s.known, id)"},
	}
}

// ledgerMutations are the ways to count something twice.
func ledgerMutations() []mutation {
	return []mutation{
		{"no deduplication", "claim.go",
			"return a.id == b.id && a.request == b.request && a.shareID == b.shareID", "return false"},
		{"admin access holds", "step.go",
			"if d.admin || held[key] {", "if held[key] {"},
		{"an account moved", "ledger.go",
			"} else if t.attribution != now {\n", "} else if t.attribution != now {\n\t\tt.accounts[now], t.accounts[t.attribution] = t.accounts[t.attribution], account{}\n\t\tt.accounts[now].labels = nil\n"},
		{"a reset ignored", "unit.go",
			"g.amount, g.since, reset = value, g.step, true", "g.amount, g.since, reset = value-g.value, g.step, true"},
		{"a gap credited", "ledger.go",
			"if g.since == 0 || activeSince > g.since {", "if g.since == 0 {"},
		{"a parent counted with its partitions", "unit.go",
			" || u.holders.related > 0", ""},
	}
}

// healthMutations break the judgement of health, each noticed by the test
// that is named.
func healthMutations() []struct{ test, name, file, old, new string } {
	return []struct{ test, name, file, old, new string }{
		{"TestXIDCounts", "an Xid retold is counted", "xid_log.go",
			"case is.Last.After(was.Last):", "case true:"},
		{"TestXIDCounts", "a takeover counts all", "xid_log.go",
			"case before.IsZero():", "case true:"},
		{"TestXIDOfLongAgo", "old Xids make sick", "health.go",
			"now.Wall.Sub(a.last) <= recent", "now.Wall.Sub(a.last) <= 100*recent"},
		{"TestHealthOfALostGPU", "the hold runs while nothing can be read", "health.go",
			"waits := !u.fresh || ", "waits := "},
		{"TestHealthOfALostGPU", "the hold ends between reads", "health.go",
			"u.at.Since(r.last) < hold", "now.Since(r.last) < hold"},
		{"TestHealthWaitsForRecovery", "the hold runs while recovery is asked for", "health.go",
			"waits := !u.fresh || u.waitsForRecovery()", "waits := !u.fresh"},
		{"TestHealthOfALostGPU", "every signal is an onset", "violations.go",
			"onsets := begun &^ u.health.violated", "onsets := begun"},
		{"TestViolationsBeforeTheFirstLook", "what was there before is an onset", "violations.go",
			"if !r.inherited {", "if true {"},
		{"TestHealthWaitsForAPendingRemap", "a pending remap decides beside a recovery action", "health_signals.go",
			"return asks || !told && ", "return asks || (told || !told) && "},
		{"TestWordOfTheDriverWhileSlicesAreStale", "stale slices are believed", "health.go",
			"!u.inSlice || !cluster.SlicesFresh", "!u.inSlice"},
		{"TestPortsOfPods", "a change of holders is not noticed", "health.go",
			"if u.holders.haveChanged() {", "if false {"},
		{"TestLinksThatComeBack", "samples far apart are one downtime", "health_watch.go",
			"d.last.IsZero() || at.Since(d.last) > limit", "d.last.IsZero()"},
		{"TestXIDCounts", "who sees is taken for who hears", "xid_log.go",
			"x.source == sample.XIDSource", "x.source == sample.Source"},
		{"TestHealthOfPartitions", "holders of partitions do not count", "violations.go",
			"on == u || on.device.ParentUUID == u.uuid", "on == u"},
		{"TestHealthOfPartitions", "partitions are judged first", "health.go",
			"[]bool{false, true}", "[]bool{true, false}"},
		{"TestHealthIsUnknown", "well without testimony", "health.go",
			"	if !u.fresh {\n		return false\n	}\n	return u.xids", "	return true || u.xids"},
		{"TestAilments", "the minute never ends", "health_watch.go",
			"w.slots[(slot-passed+1)%throttleSlots] = 0", "_ = slot"},
		{"TestWordOfTheKubelet", "an ambiguous id is believed", "health_kubelet.go",
			"	if several {\n", "	if several && false {\n"},
	}
}

// TestHealthNoticesMutations expects the test that is named beside each
// mutation to fail.
func TestHealthNoticesMutations(t *testing.T) {
	for _, m := range healthMutations() {
		t.Run(m.name, func(t *testing.T) { expectFailure(t, mutation{m.name, m.file, m.old, m.new}, m.test) })
	}
}

// TestHistoriesNoticeMutations breaks the reducer six times, each time in a
// copy that the compiler sees in the place of the file, and expects
// TestHistories to fail.
func TestHistoriesNoticeMutations(t *testing.T) {
	for _, m := range ledgerMutations() {
		t.Run(m.name, func(t *testing.T) { expectFailure(t, m, "TestHistories") })
	}
}

// TestTrapsNoticeMutations does the same with each countermeasure.
func TestTrapsNoticeMutations(t *testing.T) {
	for _, m := range trapMutations() {
		t.Run(m.name, func(t *testing.T) { expectFailure(t, m, "TestTraps/"+m.name) })
	}
}

func expectFailure(t *testing.T, m mutation, test string) {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles the package anew")
	}
	pattern := "^" + strings.ReplaceAll(test, "/", "$/^") + "$"
	command := exec.Command("go", "test", "-vet=off", "-count=1", "-overlay", overlay(t, m), "-run", pattern, ".")
	output, err := command.CombinedOutput()
	if err == nil {
		t.Fatalf("%s passes with %s", test, m.name)
	}
	if !strings.Contains(string(output), "--- FAIL: "+test) {
		t.Fatalf("%s did not run: %v\n%s", test, err, output)
	}
	for line := range strings.Lines(string(output)) {
		if strings.Contains(line, "_test.go:") {
			t.Log(strings.TrimSpace(line))
			break
		}
	}
}

// overlay writes the mutated file and the description that go test reads.
func overlay(t *testing.T, m mutation) string {
	t.Helper()
	original, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	if count := strings.Count(string(source), m.old); count != 1 {
		t.Fatalf("%s has %d places to mutate, want 1: %q", m.file, count, m.old)
	}
	mutated := filepath.Join(t.TempDir(), m.file)
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), m.old, m.new, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	description, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(path, description, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

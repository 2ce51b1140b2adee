package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/phases"
)

// sessionOptions are those of the phase of sessions over a node's stub.
func sessionOptions(t *testing.T, node *stubs.Node) phases.Options {
	t.Helper()
	variables := append(node.Env(), asProgram+"="+asGPUKit, "GORACE=atexit_sleep_ms=0")
	return phases.Options{Program: script(t, "gpukit", os.Args[0], variables...), Library: stubs.Build(t).NVML}
}

// The rows are those of docs/release.md: without NO_ATTACH a session opens each
// GPU's file.
func TestSessions(t *testing.T) {
	node := stubs.NewNode(t, 2)
	section := phases.TrySessions(t.Context(), sessionOptions(t, node))
	const references = "references of the driver: "
	want := [][2]string{
		{"none", "opens nvidia0, nvidia1, nvidiactl"},
		{"NO_ATTACH", "opens nvidiactl"},
		{"NO_GPUS", "opens nvidia0, nvidia1, nvidiactl"},
		{"NO_ATTACH, NO_GPUS", "opens nvidiactl"},
	}
	if len(section.Results) != len(want) {
		t.Fatalf("the section is %+v", section)
	}
	for i, r := range section.Results {
		detail, _, ok := strings.Cut(r.Detail, references)
		if r.Row != want[i][0] || r.Other != want[i][1] || r.Status != compare.Passed || r.Against != compare.Library || !ok ||
			detail != "nvmlInitWithFlags: 0; nvmlDeviceGetCount_v2: 0, 2 GPUs; nvmlShutdown: 0; open after it: no /dev/nvidia*; " {
			t.Errorf("row %d is %+v", i, r)
		}
	}
	if live, settings := node.Live(), node.Settings(); live != (stubs.Live{}) || len(settings) > 0 {
		t.Errorf("%+v is open, and %v is set", live, settings)
	}
}

// Without GPUs a session needs NO_GPUS. A session that fails has no number of GPUs.
func TestSessionsWithoutGPUs(t *testing.T) {
	section := phases.TrySessions(t.Context(), sessionOptions(t, stubs.NewNode(t, 0)))
	var statuses []compare.Status
	for _, r := range section.Results {
		statuses = append(statuses, r.Status)
	}
	if !slices.Equal(statuses, []compare.Status{compare.NotReported, compare.NotReported, compare.Passed, compare.Passed}) {
		t.Fatalf("the section is %+v", section)
	}
	for i, want := range map[int]string{0: "nvmlInitWithFlags: 28 (No GPUs found); open after it: no", 3: "nvmlDeviceGetCount_v2: 0, 0 GPUs; "} {
		if !strings.Contains(section.Results[i].Detail, want) {
			t.Errorf("row %d is %+v", i, section.Results[i])
		}
	}
}

// A session that cannot be tried is a failed row, with what the program has said.
func TestSessionsFail(t *testing.T) {
	o := sessionOptions(t, stubs.NewNode(t, 1))
	o.Library = "/none"
	for _, r := range phases.TrySessions(t.Context(), o).Results {
		if r.Status != compare.Failed || !strings.Contains(r.Detail, "gpukit: open NVIDIA's management library") {
			t.Errorf("%+v", r)
		}
	}
}

// A session that is interrupted has no row.
func TestSessionsAreInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if section := phases.TrySessions(ctx, sessionOptions(t, stubs.NewNode(t, 1))); len(section.Results) > 0 {
		t.Errorf("the section is %+v", section)
	}
}

// The driver's references are read at each moment.
func TestSessionReadsReferences(t *testing.T) {
	file := filepath.Join(t.TempDir(), "refcnt")
	if err := os.WriteFile(file, []byte("3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	node := stubs.NewNode(t, 1)
	p := start(t, program(node, nil, "session", "--flags=2", "--library="+stubs.Build(t).NVML, "--references="+file))
	line, err := p.out.ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.succeeds()
	var s direct.Session
	if err := json.Unmarshal(line, &s); err != nil {
		t.Fatal(err)
	}
	for i, m := range []direct.Moment{s.Before, s.During, s.After} {
		if m.References == nil || *m.References != 3 || (len(m.Files) > 0) != (i == 1) {
			t.Errorf("moment %d of %s", i, line)
		}
	}
	if s.Flags != direct.NoAttach || s.GPUs != 1 {
		t.Errorf("it is %s", line)
	}
}

func TestSessionFails(t *testing.T) {
	for want, argument := range map[string]string{
		"--flags=4: must be 0 to 3":        "--flags=4",
		"--library: must be a path":        "--library=",
		"open NVIDIA's management library": "--library=/none",
		`unexpected argument "x"`:          "x",
	} {
		err := run(t.Context(), []string{"session", argument}, nil, nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v", argument, err)
		}
	}
}

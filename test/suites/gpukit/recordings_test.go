package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/agenttest"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
)

// recordingsFolder has recordings of real hardware: testdata/recordings/README.md.
const recordingsFolder = "testdata/recordings"

// TestRecordings plays each recording of recordingsFolder to the agent, to
// `gpukit direct` and to nvidia-smi's imitation, and runs the phase without a load
// over them.
func TestRecordings(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(recordingsFolder, "*.txt*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			path := unpacked(t, file)
			attempt(t, func(t *testing.T, scale string) (problems []string) {
				t.Helper()
				failed, passed, problems := outcomes(play(t, path, scale))
				if len(failed) > 0 || len(passed) == 0 {
					problems = append(problems, fmt.Sprintf("these rows have failed: %v; of %d devices some have passed", failed, len(passed)))
				}
				return problems
			})
		})
	}
}

// TestRecordingOfTheStubs runs the phase without a load over a GPU and a MIG
// device, and again over the recording of it: no row fails, and each row that has
// passed passes again, but for what the agent did not ask for.
func TestRecordingOfTheStubs(t *testing.T) {
	t.Parallel()
	stub := stubs.NewNode(t, 2)
	for gpu := range 2 {
		stub.Script(gpu, actual(gpu))
	}
	if gi, _ := stub.CreateMIG(1, "3g.40gb", 4); gi != 2 {
		t.Fatalf("the GPU instance is %d: actual says 2", gi)
	}
	recording := filepath.Join(t.TempDir(), "recording.txt")
	// The recording is longer than what is played: after its end counters stand still.
	attempt(t, func(t *testing.T, _ string) []string {
		t.Helper()
		run := newKitRun(t, stub, agenttest.Build(t), kitOptions{arguments: []string{"--only=idle", "--scale=0.7", "--simulated-procfs", "--record=" + recording}})
		return stubProblems("over the stubs", run.finish(t, 0, 1))
	})
	attempt(t, func(t *testing.T, _ string) []string {
		t.Helper()
		return stubProblems("over the recording", play(t, recording, scales()[0]))
	})
}

// stubProblems are the rows of a report over the stubs that have failed, and the
// devices of which too few have passed.
func stubProblems(over string, r report.Report) []string {
	failed, passed, problems := outcomes(r)
	if len(failed) > 0 || len(passed[gpuUUID(0)]) < 40 || len(passed[gpuUUID(1)]) < 30 {
		problems = append(problems, fmt.Sprintf("%s these rows have failed: %v; %d and %d rows of the GPUs have passed", over, failed, len(passed[gpuUUID(0)]), len(passed[gpuUUID(1)])))
	}
	mig := 0
	for device, rows := range passed {
		if strings.HasPrefix(device, "MIG-") {
			mig += len(rows)
		}
	}
	if mig < 8 {
		problems = append(problems, fmt.Sprintf("%s %d rows of the MIG device have passed", over, mig))
	}
	if err := costComplete(r); err != nil {
		problems = append(problems, err.Error())
	}
	return problems
}

// costComplete returns an error if a report lacks a part of the agent's cost.
func costComplete(r report.Report) error {
	if r.Cost == nil || r.Cost.Problem != "" || len(r.Cost.Phases) == 0 || r.Cost.Phases[0].Memory < 1<<20 || r.Cost.Phases[0].Processor <= 0 {
		return fmt.Errorf("the cost is %+v", r.Cost)
	}
	tiers := make(map[string]int)
	for _, read := range r.Cost.Reads {
		tiers[string(read.Tier)] += read.Count
	}
	calls := make(map[string]int)
	for _, c := range r.Cost.Calls {
		calls[c.Function] = c.Count
	}
	if tiers["fast"] < 5 || tiers["fast and slow"] < 1 || tiers["fast"] < tiers["fast and slow"] ||
		calls["nvmlDeviceGetPowerUsage"] < 5 || calls["nvmlDeviceGetFieldValues"] < 5 {
		return fmt.Errorf("the reads are %v, the calls %v", tiers, calls)
	}
	return nil
}

// play runs the phase without a load over a recording.
func play(t *testing.T, recording, scale string) report.Report {
	t.Helper()
	start := fmt.Sprint(time.Now().UnixMicro())
	r := newKitRun(t, stubs.NewNode(t, 0), agenttest.Build(t), kitOptions{
		library:   stubs.Build(t).Player,
		variables: []string{"DRA_PLAYER_RECORDING=" + recording, "DRA_PLAYER_START=" + start},
		arguments: []string{"--only=idle", "--scale=" + scale, "--simulated-procfs"},
	})
	return r.finish(t, 0, 1)
}

// finish runs a run to its end, whose exit status must be one of some.
func (r *kitRun) finish(t *testing.T, statuses ...int) report.Report {
	t.Helper()
	if err := r.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.command.Process.Kill() })
	if status := r.status(t); !slices.Contains(statuses, status) {
		t.Errorf("exit status %d", status)
	}
	return r.report(t)
}

// unpacked is the path of a recording without compression.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	if !strings.HasSuffix(path, ".gz") {
		return path
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "recording.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	const most = 256 << 20
	if n, err := io.Copy(out, io.LimitReader(text, most+1)); err != nil || n > most {
		t.Fatalf("unpack %s: %d bytes, %v", path, n, err)
	}
	return out.Name()
}

package stubs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recordingClient is the client in C, with a node of two GPUs and the path of a
// recording.
type recordingClient struct {
	t                  *testing.T
	libraries          Libraries
	node               *Node
	program, recording string
}

func newRecordingClient(t *testing.T) *recordingClient {
	t.Helper()
	headers, err := headerFolders(".")
	if err != nil {
		t.Fatal(err)
	}
	c := &recordingClient{
		t: t, libraries: Build(t), node: NewNode(t, 2),
		program: filepath.Join(t.TempDir(), "client"), recording: filepath.Join(t.TempDir(), "recording"),
	}
	compiler := exec.Command("gcc", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-pthread",
		"-isystem", headers.Replace("$NVML"), "-o", c.program, "testdata/nvml_client.c", "-ldl")
	if output, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("compile the client: %v\n%s", err, output)
	}
	c.node.Set(0, "utilization.gpu", "87")
	c.node.Set(0, "utilization.memory", "41")
	c.node.Set(0, "profiling.sm", "0.5")
	c.node.SetProcesses(0, Process{PID: os.Getpid(), Memory: 1 << 30, Utilization: 30}, Process{PID: os.Getppid(), Memory: 1 << 20})
	c.node.CreateMIG(1, "3g.40gb", 4)
	return c
}

// run runs the client over a library, and returns what it prints to standard
// output, and to standard error.
func (c *recordingClient) run(library, what string, environment ...string) (printed, complaints string) {
	c.t.Helper()
	client := exec.Command(c.program, library, what)
	client.Env = append(append(os.Environ(), c.node.Env()...), "DRA_RECORDING="+c.recording, "DRA_RECORDER_LIBRARY="+c.libraries.NVML)
	client.Env = append(client.Env, environment...)
	var stderr strings.Builder
	client.Stderr = &stderr
	out, err := client.Output()
	if err != nil {
		c.t.Errorf("the client: %v\n%s%s", err, out, stderr.String())
	}
	return string(out), stderr.String()
}

// lines are those of the recording, each of which must be whole.
func (c *recordingClient) lines() []string {
	c.t.Helper()
	text, err := os.ReadFile(c.recording)
	if err != nil {
		c.t.Fatal(err)
	}
	whole := regexp.MustCompile(`^(dra-recording 1 \d+|\d+ \d+ nvml\w+( [!-~]+)* = \d+( [!-~]+)*|lacks nvml\w+|stopped \w+)$`)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		if !whole.MatchString(line) {
			c.t.Errorf("recorded %q", line)
		}
	}
	return lines
}

// Every answer through the recorder, and out of its recording, is that of the
// library: also to calls with arguments that are missing, too small or wrong.
func TestRecorderAndPlayerAnswerAsTheLibrary(t *testing.T) {
	c := newRecordingClient(t)
	want, _ := c.run(c.libraries.NVML, "calls")
	if strings.Count(want, "\n") < 90 || strings.Contains(want, "missing") {
		t.Fatalf("the library answers\n%s", want)
	}
	for _, library := range []string{c.libraries.Recorder, c.libraries.Player} {
		got, complaints := c.run(library, "calls")
		if got != want || complaints != "" {
			t.Errorf("%s: %s\n%s", filepath.Base(library), complaints, difference(got, want))
		}
	}
	if live := c.node.Live(); live != (Live{}) {
		t.Errorf("in the end there are %+v", live)
	}
}

// difference are the lines that two texts do not have in common.
func difference(got, want string) string {
	var b strings.Builder
	wanted := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(wanted) || line != wanted[i] {
			fmt.Fprintf(&b, "line %d: %s, want %s\n", i, line, strings.Join(wanted[min(i, len(wanted)):min(i+1, len(wanted))], ""))
		}
	}
	return b.String()
}

// Threads are recorded line by line, and their recording is played to as many.
func TestRecordingFromThreads(t *testing.T) {
	c := newRecordingClient(t)
	if _, complaints := c.run(c.libraries.Recorder, "threads"); complaints != "" {
		t.Error(complaints)
	}
	calls := 0
	for _, line := range c.lines() {
		if strings.Contains(line, " nvmlGpmSampleGet d0 ~s") && strings.HasSuffix(line, " = 0") {
			calls++
		}
	}
	if calls != 8*200 {
		t.Errorf("%d samples were recorded", calls)
	}
	if _, complaints := c.run(c.libraries.Player, "threads"); complaints != "" {
		t.Error(complaints)
	}
}

// A recording ends at its limit, and the calls after it are answered.
func TestRecordingEndsAtItsLimit(t *testing.T) {
	c := newRecordingClient(t)
	c.run(c.libraries.Recorder, "threads", "DRA_RECORDING_LIMIT=20000")
	lines := c.lines()
	if last := lines[len(lines)-1]; last != "stopped limit" || slices.Index(lines, last) != len(lines)-1 {
		t.Errorf("the recording ends with %q", last)
	}
	if info, err := os.Stat(c.recording); err != nil || info.Size() > 20000 || info.Size() < 19000 {
		t.Errorf("the recording is %d bytes long, and %v", info.Size(), err)
	}
	c.run(c.libraries.Player, "threads")
}

// What the recorder cannot do is one line on standard error, and changes no
// answer.
func TestRecorderWithoutAFileOrALibrary(t *testing.T) {
	c := newRecordingClient(t)
	want, _ := c.run(c.libraries.NVML, "calls")
	for name, path := range map[string]string{"it names no file": "", "No such file or directory": "/nonexistent/recording", "Is a directory": t.TempDir()} {
		got, complaints := c.run(c.libraries.Recorder, "calls", "DRA_RECORDING="+path)
		if got != want || !strings.Contains(complaints, name) || strings.Count(complaints, "\n") != 1 {
			t.Errorf("DRA_RECORDING=%q: %s\n%s", path, complaints, difference(got, want))
		}
	}
	for name, path := range map[string]string{"cannot open shared object file": "/nonexistent/library.so", "it is this one": c.libraries.Recorder} {
		got, complaints := c.run(c.libraries.Recorder, "calls", "DRA_RECORDER_LIBRARY="+path)
		if !strings.Contains(got, "nvmlInit_v2() 12\n") || !strings.Contains(complaints, name) {
			t.Errorf("DRA_RECORDER_LIBRARY=%s: %s\n%s", path, complaints, got)
		}
	}
}

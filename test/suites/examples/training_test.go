package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	training = repository + "/examples/training"

	// The pod of the demo whose claim has two GPUs to itself.
	namespace, pod = "ml-training", "llama-pretrain-mlttn"
)

// record is a line that train.py prints.
type record struct {
	Done           bool
	Step, Steps    int
	Loss           float64
	StepsPerSecond float64 `json:"steps_per_second"`
	Claim          claim
}

// claim is the claim's part of such a line; nil for missing values.
type claim struct {
	Unknown       string
	Devices       *int
	SharedDevices *int     `json:"shared_devices"`
	Utilization   *float64 `json:"utilization"`
	MemoryUsed    *float64 `json:"memory_used_bytes"`
	Allocated     *float64 `json:"memory_allocated_bytes"`
	Power         *float64 `json:"power_watts"`
	BusyShare     *float64 `json:"busy_share"`
	JoulesPerStep *float64 `json:"joules_per_step"`
	HeldSeconds   *float64 `json:"held_seconds"`
	DeviceSeconds *float64 `json:"device_seconds"`
	BusySeconds   *float64 `json:"busy_seconds"`
	Joules        *float64
	Cost          *float64
	Currency      string
	Hint          string
}

// runTraining runs the example as its pod does, with the standard library
// only, and returns its output.
func runTraining(t *testing.T, environment []string, arguments ...string) (lines []record, log string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "python3", append([]string{"-S", "-E", "-B", "train.py"}, arguments...)...)
	command.Dir = training
	command.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "POD_NAMESPACE=" + namespace, "POD_NAME=" + pod}, environment...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	for line := range strings.Lines(stdout.String()) {
		var found record
		if err := json.Unmarshal([]byte(line), &found); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		lines = append(lines, found)
	}
	if len(lines) < 2 || !lines[len(lines)-1].Done {
		t.Fatalf("it did not come to its end:\n%s%s", stdout.String(), stderr.String())
	}
	return lines, stderr.String()
}

// TestUnits runs the unit tests of claimwatch.py.
func TestUnits(t *testing.T) {
	command := exec.Command("python3", "-S", "-E", "-B", "-m", "unittest", "claimwatch_test")
	command.Dir = training
	if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), "\nOK\n") {
		t.Fatalf("%v\n%s", err, output)
	}
}

// accounting is what the agent reports of the pod's claim, summed over its
// devices.
type accounting struct{ held, busy, joules float64 }

func accountOf(t *testing.T, agent string) accounting {
	t.Helper()
	sum, err := readAccount(agent)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// readAccount fails as long as the claim has not been held for a moment.
func readAccount(agent string) (sum accounting, err error) {
	var document struct {
		Claims []struct {
			Consumers []struct{ Pod string }
			Devices   []struct {
				HeldSeconds float64
				Accounts    []struct{ BusySeconds, EnergyJoules float64 }
			}
		}
	}
	if err := get(agent+"/api/v1/claims?namespace="+namespace, &document); err != nil {
		return sum, err
	}
	for _, claim := range document.Claims {
		if claim.Consumers[0].Pod != pod {
			continue
		}
		for _, device := range claim.Devices {
			sum.held += device.HeldSeconds
			for _, account := range device.Accounts {
				sum.busy += account.BusySeconds
				sum.joules += account.EnergyJoules
			}
		}
	}
	if sum.held == 0 {
		return sum, fmt.Errorf("the demo has no claim of %s/%s", namespace, pod)
	}
	return sum, nil
}

// TestSummaryMatchesAgent: the summary is a part of the increase of the
// agent's and Prometheus' counters around the run, and the lines have every
// quantity.
func TestSummaryMatchesAgent(t *testing.T) {
	agent, _ := startDemo(t)
	eventually(t, "the claim to be held", func() error {
		_, err := readAccount(agent)
		return err
	})
	for _, source := range []string{"DRA_EXPORTER_URL", "PROMETHEUS_URL"} {
		t.Run(source, func(t *testing.T) {
			before, url := accountOf(t, agent), agent
			if source == "PROMETHEUS_URL" {
				url = startPrometheus(t, "", map[string]string{agent: "gpu-node-1"})
				eventually(t, "two scrapes of the claim", func() error { return scraped(url) })
			}
			lines, log := runTraining(t, []string{source + "=" + url, "CLAIMWATCH_INTERVAL=1"}, "--steps=1600", "--log-every=400", "--input-pause=0.005")
			after, last := accountOf(t, agent), lines[len(lines)-1]
			if log != "" {
				t.Errorf("it complains: %s", log)
			}
			if first := lines[0]; last.Loss > first.Loss/2 || last.Steps != 1600 {
				t.Errorf("the loss went from %v to %v in %d steps", first.Loss, last.Loss, last.Steps)
			}
			within(t, "held_seconds", last.Claim.HeldSeconds, 2, after.held-before.held)
			within(t, "device_seconds", last.Claim.DeviceSeconds, *last.Claim.HeldSeconds-0.2, *last.Claim.HeldSeconds+0.2)
			within(t, "busy_seconds", last.Claim.BusySeconds, 1, after.busy-before.busy)
			within(t, "joules", last.Claim.Joules, 100, after.joules-before.joules)
			within(t, "cost", last.Claim.Cost, 1e-6, 1)
			// The mean of a part is close to that of the whole, because the
			// demo's load changes slowly.
			mean := (after.busy - before.busy) / (after.held - before.held)
			within(t, "busy_share", last.Claim.BusyShare, mean*0.7, mean*1.3)
			checkQuantities(t, lines)
		})
	}
}

// scraped returns an error unless the counters have increased between two
// scrapes.
func scraped(url string) error {
	rows, err := queryValues(url, fmt.Sprintf(`delta(dra_claim_held_seconds_total{namespace=%q}[1m]) > 0`, namespace))
	if err == nil && len(rows) == 0 {
		return fmt.Errorf("nothing yet")
	}
	return err
}

// checkQuantities fails the test unless, for each quantity, a line before the
// last has a value in its range.
func checkQuantities(t *testing.T, lines []record) {
	t.Helper()
	for _, line := range lines[:len(lines)-1] {
		c := line.Claim
		if c.Devices == nil || c.BusyShare == nil || c.JoulesPerStep == nil {
			continue
		}
		within(t, "devices", ptr(float64(*c.Devices)), 2, 2)
		within(t, "utilization", c.Utilization, 0.05, 1)
		within(t, "busy_share", c.BusyShare, 0.05, 1)
		within(t, "memory_allocated_bytes", c.Allocated, 2*79e9, 2*90e9)
		within(t, "memory_used_bytes", c.MemoryUsed, 1e9, *c.Allocated)
		within(t, "power_watts", c.Power, 100, 2000)
		within(t, "joules_per_step", c.JoulesPerStep, 0.1, 1e4)
		if c.Unknown != "" || c.SharedDevices != nil {
			t.Errorf("the devices are the claim's alone, and all is known: %+v", c)
		}
		return
	}
	t.Errorf("no line has all: %+v", lines)
}

func ptr[T any](value T) *T { return &value }

func within(t *testing.T, name string, got *float64, low, high float64) {
	t.Helper()
	const rounded = 0.11 // the last printed digit
	if got == nil {
		t.Errorf("there is no %s", name)
	} else if *got < low-rounded || *got > high+rounded {
		t.Errorf("%s is %v, not from %v to %v", name, *got, low, high)
	}
}

// TestDocumentedVariables: README.md documents each variable that is read, and
// the manifest sets no other.
func TestDocumentedVariables(t *testing.T) {
	code, readme, job := read(t, training, "claimwatch.py"), read(t, training, "README.md"), read(t, training, "job.yaml")
	reads := map[string]bool{}
	for _, name := range names(code, `"([A-Z]+_[A-Z_]+)"`) {
		reads[name] = true
	}
	if len(reads) < 10 {
		t.Fatalf("claimwatch.py reads %v", reads)
	}
	for name := range reads {
		if !strings.Contains(readme, "`"+name+"`") {
			t.Errorf("README.md does not mention %s", name)
		}
	}
	for _, name := range append(names(job, `- name: ([A-Z]+_[A-Z_]+)`), names(readme, "(?m)^\\| `([A-Z]+_[A-Z_]+)`")...) {
		if !reads[name] {
			t.Errorf("nothing reads %s", name)
		}
	}
	for _, file := range names(read(t, training, "kustomization.yaml"), `- (\w+\.(?:py|yaml))`) {
		if _, err := os.Stat(filepath.Join(training, file)); err != nil {
			t.Error(err)
		}
	}
}

package node

import (
	"context"
	"fmt"

	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/agenttest"
)

const uuid = "GPU-00000000-aaaa-bbbb-cccc-111111111111"

// fixture is options for a node with one scripted GPU.
func fixture(t *testing.T, agent string) (*stubs.Node, Options) {
	t.Helper()
	stub := stubs.NewNode(t, 1)
	stub.Set(0, "uuid", uuid)
	dir := t.TempDir()
	return stub, Options{
		Agent: agent, Recorder: stubs.Build(t).Recorder, Library: stubs.Build(t).NVML,
		Recording: filepath.Join(dir, "recording.txt"), Log: filepath.Join(dir, "agent.log"),
		Devices:     []Device{{UUID: uuid, ProductName: "NVIDIA H100 80GB HBM3", PCIBusID: "00000000:53:00.0", DriverVersion: "580.65.06", MemoryBytes: 80 << 30}},
		Environment: stub.Env(), SlowInterval: time.Second,
	}
}

// page is the agent's page now.
func page(t *testing.T, n *Node) map[string]*dto.MetricFamily {
	t.Helper()
	response, err := http.Get(n.URL() + "/metrics") //nolint:noctx // the test's deadline ends it
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	families, err := parser().TextToMetricFamilies(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

func parser() *expfmt.TextParser {
	p := expfmt.NewTextParser(model.UTF8Validation)
	return &p
}

// series returns the value of the first series of a family with these labels.
func series(families map[string]*dto.MetricFamily, family string, labels ...string) (float64, bool) {
	for _, m := range families[family].GetMetric() {
		text := m.String()
		matches := true
		for _, label := range labels {
			name, value, _ := strings.Cut(label, "=")
			found := false
			for _, l := range m.GetLabel() {
				found = found || l.GetName() == name && l.GetValue() == value
			}
			matches = matches && found && text != ""
		}
		if matches {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue(), true
		}
	}
	return 0, false
}

// until waits for a condition of the agent's page.
func until(t *testing.T, n *Node, what string, condition func(map[string]*dto.MetricFamily) bool) {
	t.Helper()
	for {
		if condition(page(t, n)) {
			return
		}
		select {
		case <-n.AgentDone():
			t.Fatalf("the agent has ended before %s", what)
		case <-t.Context().Done():
			t.Fatalf("the test has ended before %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sleeper is a process that does nothing until the test ends.
func sleeper(t *testing.T) int {
	t.Helper()
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	return command.Process.Pid
}

// TestAgent runs the agent, which is built once.
func TestAgent(t *testing.T) {
	agent := agenttest.Build(t)
	t.Run("claims", func(t *testing.T) { testClaims(t, agent) })
	t.Run("missing library", func(t *testing.T) { testMissingLibrary(t, agent) })
	t.Run("context ends", func(t *testing.T) { testContextEnds(t, agent) })
}

// testClaims has claims come, share a device and go, with either placement of
// their processes.
func testClaims(t *testing.T, agent string) {
	t.Parallel()
	for _, simulated := range []bool{false, true} {
		t.Run(fmt.Sprintf("simulated=%t", simulated), func(t *testing.T) {
			t.Parallel()
			stub, o := fixture(t, agent)
			o.Simulated = simulated
			n, err := Start(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closed(t, n, o) })
			t.Log(n.Placement())
			must(t, n.Claim("one", uuid))
			until(t, n, "the claim is held", func(page map[string]*dto.MetricFamily) bool {
				_, held := series(page, "dra_claim_held", "resourceclaim=one", "uuid="+uuid, "namespace="+Namespace)
				return held
			})
			must(t, n.Claim("two", uuid))
			one, two, host := sleeper(t), sleeper(t), sleeper(t)
			must(t, n.Place(one, "one"))
			must(t, n.Place(two, "two"))
			must(t, n.Place(host, ""))
			stub.Set(0, "memory.used", fmt.Sprint(8<<30))
			stub.SetProcesses(0, stubs.Process{PID: one, Memory: 1 << 30, Utilization: 10},
				stubs.Process{PID: two, Memory: 2 << 30, Utilization: 20}, stubs.Process{PID: host, Memory: 4 << 30, Utilization: 5})
			for claim, memory := range map[string]float64{"one": 1 << 30, "two": 2 << 30} {
				until(t, n, "memory is split", func(page map[string]*dto.MetricFamily) bool {
					used, there := series(page, "dra_claim_memory_used_bytes", "resourceclaim="+claim, "attribution=process")
					return there && used == memory
				})
			}
			until(t, n, "memory is unattributed", func(page map[string]*dto.MetricFamily) bool {
				used, _ := series(page, "dra_device_unattributed_memory_bytes", "uuid="+uuid)
				return used == 4<<30
			})
			must(t, n.EndClaim("two"))
			until(t, n, "the claim has ended", func(page map[string]*dto.MetricFamily) bool {
				_, held := series(page, "dra_claim_held", "resourceclaim=two")
				return !held
			})
			if err := n.Claim("one", uuid); err == nil {
				t.Error("a claim can be created twice")
			}
			if err := n.Claim("other", "GPU-other"); err == nil {
				t.Error("a claim can have a device that is not published")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// closed closes a node, whose processes have ended, and finds nothing left.
func closed(t *testing.T, n *Node, o Options) {
	t.Helper()
	must(t, n.Close())
	must(t, n.Close())
	if _, err := os.Stat(n.folder); err == nil {
		t.Errorf("%s is left", n.folder)
	}
	if c, real := n.placement.(*cgroups); real {
		if _, err := os.Stat(c.root); err == nil {
			t.Errorf("%s is left", c.root)
		}
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", n.AgentPID())); err == nil {
		t.Error("the agent is left")
	}
	recording, err := os.ReadFile(o.Recording)
	if err != nil || !strings.HasPrefix(string(recording), "dra-recording 1 ") || !strings.Contains(string(recording), " nvmlInit_v2 = 0\n") {
		t.Errorf("the recording begins with %.50q (%v)", recording, err)
	}
}

func TestWithoutParts(t *testing.T) {
	_, o := fixture(t, "/no/such/agent")
	o.Recorder, o.Devices = "/no/such/recorder", nil
	_, err := Start(t.Context(), o)
	if err == nil {
		t.Fatal("it starts")
	}
	for _, text := range []string{"--agent=/no/such/agent: ", "--recorder=/no/such/recorder: ", "lists no GPU"} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %v", err)
		}
	}
}

// An agent that ends, or never becomes ready, is an error with the last lines of
// its log.
func TestAgentIsNotReady(t *testing.T) {
	for text, want := range map[string]string{
		"echo one; echo two >&2; exit 3":      "exit status 3",
		"echo one; echo two; exec sleep 1000": "not ready within",
	} {
		script := filepath.Join(t.TempDir(), "agent")
		must(t, os.WriteFile(script, []byte("#!/bin/sh\n"+text+"\n"), 0o755))
		_, o := fixture(t, script)
		o.Timeout = time.Second
		_, err := Start(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "one\ntwo") {
			t.Errorf("the error is %v", err)
		}
	}
}

// A library that cannot be opened does not end the agent: its page says that the
// source is down.
func testMissingLibrary(t *testing.T, agent string) {
	t.Parallel()
	_, o := fixture(t, agent)
	o.Library = "/no/such/library.so"
	n, err := Start(t.Context(), o)
	must(t, err)
	defer n.Close()
	until(t, n, "the source is down", func(page map[string]*dto.MetricFamily) bool {
		up, there := series(page, "dra_exporter_source_up", "source=nvml")
		return there && up == 0
	})
}

// Everything ends with the context.
func testContextEnds(t *testing.T, agent string) {
	t.Parallel()
	_, o := fixture(t, agent)
	ctx, cancel := context.WithCancel(t.Context())
	n, err := Start(ctx, o)
	must(t, err)
	cancel()
	<-n.AgentDone()
	closed(t, n, o)
}

func TestPublish(t *testing.T) {
	devices := publish([]Device{
		{UUID: "GPU-a", ProductName: "NVIDIA A100", PCIBusID: "00000000:53:00.0", DriverVersion: "535.04"},
		{UUID: "MIG-b", ParentUUID: "GPU-a", ProductName: "NVIDIA A100 MIG 1g.10gb", GPUInstance: 7},
		{UUID: "GPU-c"},
	})
	var names []string
	for _, d := range slice(devices).Spec.Devices {
		text := d.Name
		for _, name := range []string{"type", "uuid", "parentUUID", "profile", "resource.kubernetes.io/pciBusID"} {
			if value := d.Attributes[resourcev1.QualifiedName(name)].StringValue; value != nil {
				text += " " + *value
			}
		}
		if value := d.Attributes["driverVersion"].VersionValue; value != nil {
			text += " " + *value
		}
		names = append(names, text)
	}
	want := "gpu-0 gpu GPU-a 0000:53:00.0 535.4.0\ngpu-0-mig-7-0 mig MIG-b GPU-a 1g.10gb\ngpu-1 gpu GPU-c"
	if got := strings.Join(names, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

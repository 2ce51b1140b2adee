package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/topology"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// runTopologyProgram runs the subcommand and returns what it prints together.
func runTopologyProgram(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	text, err := program(ctx, append([]string{"topology"}, args...)...).CombinedOutput()
	return string(text), err
}

// The devices of a workload of the demo, whose names end at random.
func TestTopologyOfTheDemo(t *testing.T) {
	node, _ := runningDemo(t)
	output, err := "", error(nil)
	for patience := 0; patience < 100; patience++ {
		if output, err = runTopologyProgram(t, "workload", "ml-training/llama", "--url="+node); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	metrictest.CompareGolden(t, "testdata/topology.txt", regexp.MustCompile(`(llama-pretrain-|-gpus-)[a-z0-9]{5}`).ReplaceAllString(output, "${1}xxxxx"))
	output, err = runTopologyProgram(t, "node", "--url="+node, "-o", "json")
	var document topology.Document
	if failed := json.Unmarshal([]byte(output), &document); err != nil || failed != nil || len(document.Nodes) != 1 || len(document.Nodes[0].Devices) != 14 {
		t.Errorf("%v %v\n%s", err, failed, output)
	}
}

func TestTopologyErrors(t *testing.T) {
	agent := serveAgent(t, "")
	for want, args := range map[string][]string{
		"no device of pod team-ml/none is known; agents that answered: 1": {"pod", "team-ml/none", "--url=" + agent},
		"no device of pod default/none is known; agents that answered: 1": {"pod", "none", "--url=" + agent},
		"no device of node other is known; agents that answered: 1":       {"node", "other", "--url=" + agent},
		`"a/b/c" is not NAMESPACE/NAME, nor the NAME of a workload`:       {"workload", "a/b/c", "--url=" + agent},
		"no agent has answered":                         {"node", "--url=127.0.0.1:1"},
		"this is the cluster role, not a node agent":    {"node", "--url=" + serveRole(t, "pending")},
		"--timeout=0s is too short for a request":       {"node", "--url=" + agent, "--timeout=0s"},
		"set --url to read agents directly":             {"node"},
		"required argument 'NAME' not provided":         {"pod"},
		"--kubeconfig is for the API server":            {"node", "--url=" + agent, "--kubeconfig=x"},
		"--output: enum value must be one of text,json": {"node", "--url=" + agent, "-o", "yaml"},
	} {
		if output, err := runTopologyProgram(t, args...); err == nil || !strings.Contains(output, want) {
			t.Errorf("%q: %v\n%s\nwant %s", args, err, output, want)
		}
	}
}

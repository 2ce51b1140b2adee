package topology

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/top"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != string(want) {
		t.Errorf("%s (%v):\n%s", path, err, got)
	}
}

func device(node, name, root, numa, domain string) *top.Device {
	driver, model := "gpu.nvidia.com", "NVIDIA H100"
	if strings.HasPrefix(name, "nic") {
		driver, model = "dra.net", ""
	}
	return &top.Device{Node: node, NodeDevice: page.NodeDevice{
		UUID: node + "/" + name, Driver: driver, Pool: node, Device: name, Model: model, PCIeRoot: root, NUMANode: numa, LinkDomain: domain,
	}}
}

func row(node, claim, name string, users ...top.User) *top.Row {
	return &top.Row{Node: node, Namespace: "ml", Claim: claim, UUID: node + "/" + name, Users: users}
}

// twoNodes are nodes of one NVLink domain: a job of two pods, one of which has a network
// adapter at the other processor; a notebook with a partition; and devices of which
// little is known.
func twoNodes() top.FleetState {
	crossing := []page.Alignment{{Between: "devices", Is: "link", Best: "link"}, {Between: "network", Is: "crossing", Best: "pcie_root"}}
	first := top.User{Pod: "train-0", Kind: "JobSet", Workload: "train", Place: "worker · rank 0", Topology: crossing}
	second := top.User{Pod: "train-1", Kind: "JobSet", Workload: "train", Place: "worker · rank 1"}
	other := top.User{Pod: "train", Kind: "Job", Workload: "eval"}
	part := device("node-b", "gpu-1-mig-1g10gb-19-0", "pci0000:80", "1", "")
	part.ParentUUID = "node-b/gpu-1"
	held := row("node-b", "notebook", "gpu-1-mig-1g10gb-19-0", top.User{Pod: "notebook-0", Kind: "StatefulSet", Workload: "notebook"})
	held.ParentUUID = "node-b/gpu-1"
	return top.FleetState{
		At: time.Unix(1795168800, 0), Agents: 3, Answered: 2,
		All: []*top.Device{
			device("node-b", "gpu-0", "pci0000:10", "0", "c.1"), device("node-b", "gpu-1", "", "", ""), part,
			device("node-a", "gpu-0", "pci0000:10", "0", "c.1"), device("node-a", "gpu-1", "pci0000:20", "0", "c.1"),
			device("node-a", "gpu-2", "pci0000:10", "0", ""), device("node-a", "nic-0", "pci0000:80", "1", ""), device("node-a", "fpga\x1b[31m", "", "", ""),
		},
		Rows: []*top.Row{
			row("node-a", "train-0-gpus", "gpu-0", first), row("node-a", "train-0-gpus", "gpu-1", first), row("node-a", "train-0-nic", "nic-0", first),
			row("node-b", "train-1-gpus", "gpu-0", second), row("node-a", "eval", "gpu-2", other), held,
		},
		Failures: []top.AgentFailure{{Agent: "monitoring/dra-exporter-c", Node: "node-c", Error: "no answer in time"}},
	}
}

func TestText(t *testing.T) {
	for name, subject := range map[string]clusterread.Subject{
		"nodes.txt": {Kind: clusterread.KindNode},
		"pod.txt":   {Kind: clusterread.KindPod, Namespace: "ml", Name: "train-0"},
		"job.txt":   {Kind: clusterread.KindWorkload, Namespace: "ml", Name: "train"},
		"part.txt":  {Kind: clusterread.KindPod, Namespace: "ml", Name: "notebook-0"},
	} {
		document, err := Of(twoNodes(), subject)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name, document.Text())
	}
	document, err := Of(twoNodes(), clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: "ml", Name: "train", WorkloadKind: "jobset"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "job.json", string(text)+"\n")
}

func TestAbsent(t *testing.T) {
	several := twoNodes()
	several.Rows = append(several.Rows, row("node-a", "x", "gpu-2", top.User{Pod: "y", Kind: "Job", Workload: "train"}))
	answered := twoNodes()
	answered.Failures = nil
	old := twoNodes()
	old.All, old.Unlisted = nil, 2
	for want, test := range map[string]struct {
		reading top.FleetState
		subject clusterread.Subject
	}{
		"several workloads are named ml/train: choose one with --workload-kind: Job, JobSet":                            {several, clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: "ml", Name: "train"}},
		"no device of pod ml/none is known; 1 of 3 agents did not answer: monitoring/dra-exporter-c: no answer in time": {twoNodes(), clusterread.Subject{Kind: clusterread.KindPod, Namespace: "ml", Name: "none"}},
		"no device of pod other/train-0 is known; agents that answered: 2":                                              {answered, clusterread.Subject{Kind: clusterread.KindPod, Namespace: "other", Name: "train-0"}},
		"no device of Job ml/train is known; agents that answered: 2":                                                   {answered, clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: "ml", Name: "train", WorkloadKind: "Job"}},
		"the agents do not report their devices: they are older than this program":                                      {old, clusterread.Subject{Kind: clusterread.KindNode}},
	} {
		if document, err := Of(test.reading, test.subject); err == nil || err.Error() != want || len(document.Nodes) > 0 {
			t.Errorf("%s: %v, want %s", test.subject, err, want)
		}
	}
}

func TestDomainNames(t *testing.T) {
	if got := domainName(0) + domainName(25) + domainName(26) + domainName(53); got != "AZA1B2" {
		t.Errorf("the names are %s", got)
	}
}

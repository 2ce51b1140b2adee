package cluster

import (
	"strings"
	"testing"
)

// The messages are those of real schedulers, or made of the format strings of
// their sources.
func TestUnderstand(t *testing.T) {
	const preemption = ". preemption: 0/3 nodes are available: 2 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
	for _, test := range []struct {
		name, message, extended string
		nodes                   int
		want                    map[subject]int
		words                   map[subject]string
	}{
		{name: "nothing"},
		{name: "devices", message: "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			nodes: 1, want: map[subject]int{aboutDevices: 1}, words: map[subject]string{aboutDevices: "cannot allocate all claims"}},
		{name: "1.34 to 1.36 say more", message: "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
			nodes: 2, want: map[subject]int{aboutDevices: 2}},
		{name: "1.34 to 1.36 on others", message: "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
			nodes: 2, want: map[subject]int{aboutOthers: 2}, words: map[subject]string{aboutOthers: "Insufficient cpu"}},
		{name: "no class", message: "0/1 nodes are available: request gpu: device class gpu.acme.com does not exist. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			nodes: 1, want: map[subject]int{aboutClass: 1}, words: map[subject]string{aboutClass: "request gpu: device class gpu.acme.com does not exist"}},
		{name: "both", message: "0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims" + preemption,
			nodes: 3, want: map[subject]int{aboutOthers: 1, aboutDevices: 2}},
		{name: "several others", message: "0/5 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 3 node(s) didn't match Pod's node affinity/selector" + preemption,
			nodes: 5, want: map[subject]int{aboutOthers: 5},
			words: map[subject]string{aboutOthers: "node(s) had untolerated taint(s), node(s) were unschedulable, node(s) didn't match Pod's node affinity/selector"}},
		{name: "a reason with a comma", message: "0/4 nodes are available: 1 claim a/b, request gpu: asks for all devices, but resource pool d/p is currently being updated, 3 Insufficient memory.",
			nodes: 4, want: map[subject]int{aboutDevices: 1, aboutOthers: 3}},
		{name: "volumes", message: "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims" + preemption,
			nodes: 2, want: map[subject]int{aboutOthers: 2}},
		{name: "a gang", message: "waiting for minCount pods from a gang to appear in scheduling queue", want: map[subject]int{aboutOthers: 1}},
		{name: "a claim elsewhere", message: "0/2 nodes are available: 1 cannot allocate all claims, 1 resourceclaim not available on the node" + preemption,
			nodes: 2, want: map[subject]int{aboutDevices: 1, aboutOthers: 1}},
		{name: "no claim", message: `could not find v1.ResourceClaim "a/b"`, want: map[subject]int{aboutClaim: 1}},
		{name: "no claim yet", message: `0/1 nodes are available: pod "a/b": ResourceClaim not created yet.`, nodes: 1, want: map[subject]int{aboutClaim: 1}},
		{name: "a claim that goes", message: `resourceclaim "b" is being deleted`, want: map[subject]int{aboutClaim: 1}},
		{name: "in flight", message: "0/1 nodes are available: resource claim a/b is in the process of being allocated.", nodes: 1, want: map[subject]int{aboutNothing: 1}},
		{name: "a gate", message: "Scheduling is blocked due to non-empty scheduling gates", want: map[subject]int{aboutNothing: 1}},
		{name: "CEL", message: `running "DynamicResources" filter plugin: class gpu: selector #0: CEL compile error: ERROR: <input>:1:1: undeclared reference to 'x'`, want: map[subject]int{aboutDevices: 1}},
		{name: "time", message: "0/1 nodes are available: 1 timed out trying to allocate devices.", nodes: 1, want: map[subject]int{aboutDevices: 1}},
		{name: "binding", message: `running PreBind plugin "DynamicResources": device binding timeout: claim=b`, want: map[subject]int{aboutBinding: 1}},
		{name: "an extended resource", message: "0/1 nodes are available: 1 Insufficient example.com/gpu.", extended: "example.com/gpu", nodes: 1, want: map[subject]int{aboutDevices: 1}},
		{name: "somebody else's", message: "0/1 nodes are available: 1 Insufficient example.com/gpu.", extended: "example.com/nic", nodes: 1, want: map[subject]int{aboutOthers: 1}},
		{name: "more nodes than an int has", message: "0/99999999999999999999 nodes are available: 1 Insufficient cpu.", want: map[subject]int{aboutOthers: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			said := newListener().understand(test.message, test.extended)
			if said.nodes != test.nodes {
				t.Errorf("of %d nodes, want %d", said.nodes, test.nodes)
			}
			for about := range subject(subjects) {
				if said.count[about] != test.want[about] {
					t.Errorf("%d say %q of subject %d, want %d", said.count[about], said.words[about], about, test.want[about])
				}
				if want, asked := test.words[about]; asked && said.words[about] != want {
					t.Errorf("words %q, want %q", said.words[about], want)
				}
			}
		})
	}
}

// FuzzUnderstand: whatever a scheduler, or somebody in its name, writes, is
// understood without trouble, and nothing is said of more than it says.
func FuzzUnderstand(f *testing.F) {
	for _, seed := range []string{"", "0/", "0/3 nodes are available:", "0/3 nodes are available: 1 a, 2 b. preemption: x", ", 1 , 1 ", "0/1 nodes are available: 1 "} {
		f.Add(seed, "example.com/gpu")
	}
	listener := newListener()
	f.Fuzz(func(t *testing.T, message, extended string) {
		said := listener.understand(message, extended)
		for about := range subject(subjects) {
			if said.count[about] < 0 || said.count[about] == 0 != (said.words[about] == "") {
				t.Errorf("%q: %d, but %q", message, said.count[about], said.words[about])
			}
			for words := range strings.SplitSeq(said.words[about], ", ") {
				if !strings.Contains(message, words) {
					t.Errorf("%q says %q", message, words)
				}
			}
		}
	})
}

package cluster

import (
	"strings"
	"testing"
)

// The messages are those of real schedulers, or built from the format strings
// in their sources.
func TestParseSchedulerMessage(t *testing.T) {
	const preemption = ". preemption: 0/3 nodes are available: 2 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
	for _, test := range []struct {
		name, message, extended string
		nodes                   int
		want                    map[topic]int
		text                    map[topic]string
	}{
		{name: "nothing"},
		{name: "devices", message: "0/1 nodes are available: 1 cannot allocate all claims. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			nodes: 1, want: map[topic]int{topicDevices: 1}, text: map[topic]string{topicDevices: "cannot allocate all claims"}},
		{name: "1.34 to 1.36 with more text", message: "0/2 nodes are available: 2 cannot allocate all claims. still not schedulable, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
			nodes: 2, want: map[topic]int{topicDevices: 2}},
		{name: "1.34 to 1.36, other obstacles", message: "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.",
			nodes: 2, want: map[topic]int{topicOther: 2}, text: map[topic]string{topicOther: "Insufficient cpu"}},
		{name: "no class", message: "0/1 nodes are available: request gpu: device class gpu.acme.com does not exist. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
			nodes: 1, want: map[topic]int{topicClass: 1}, text: map[topic]string{topicClass: "request gpu: device class gpu.acme.com does not exist"}},
		{name: "both", message: "0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims" + preemption,
			nodes: 3, want: map[topic]int{topicOther: 1, topicDevices: 2}},
		{name: "several others", message: "0/5 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 3 node(s) didn't match Pod's node affinity/selector" + preemption,
			nodes: 5, want: map[topic]int{topicOther: 5},
			text: map[topic]string{topicOther: "node(s) had untolerated taint(s), node(s) were unschedulable, node(s) didn't match Pod's node affinity/selector"}},
		{name: "a reason with a comma", message: "0/4 nodes are available: 1 claim a/b, request gpu: asks for all devices, but resource pool d/p is currently being updated, 3 Insufficient memory.",
			nodes: 4, want: map[topic]int{topicDevices: 1, topicOther: 3}},
		{name: "volumes", message: "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims" + preemption,
			nodes: 2, want: map[topic]int{topicOther: 2}},
		{name: "a gang", message: "waiting for minCount pods from a gang to appear in scheduling queue", want: map[topic]int{topicGang: 1}},
		{name: "too few of a gang", message: "minCount (8) cannot be satisfied: 7 scheduled, 0 remaining", want: map[topic]int{topicGang: 1},
			text: map[topic]string{topicGang: "minCount (8) cannot be satisfied: 7 scheduled, 0 remaining"}},
		{name: "placements of a group", message: "0/2 placements are available, first placement status: 0/3 nodes are available: 1 Insufficient cpu, 2 cannot allocate all claims.",
			nodes: 3, want: map[topic]int{topicOther: 1, topicDevices: 2}},
		{name: "a claim elsewhere", message: "0/2 nodes are available: 1 cannot allocate all claims, 1 resourceclaim not available on the node" + preemption,
			nodes: 2, want: map[topic]int{topicDevices: 1, topicOther: 1}},
		{name: "no claim", message: `could not find v1.ResourceClaim "a/b"`, want: map[topic]int{topicClaim: 1}},
		{name: "no claim yet", message: `0/1 nodes are available: pod "a/b": ResourceClaim not created yet.`, nodes: 1, want: map[topic]int{topicClaim: 1}},
		{name: "a claim being deleted", message: `resourceclaim "b" is being deleted`, want: map[topic]int{topicClaim: 1}},
		{name: "in flight", message: "0/1 nodes are available: resource claim a/b is in the process of being allocated.", nodes: 1, want: map[topic]int{topicNone: 1}},
		{name: "a gate", message: "Scheduling is blocked due to non-empty scheduling gates", want: map[topic]int{topicNone: 1}},
		{name: "CEL", message: `running "DynamicResources" filter plugin: class gpu: selector #0: CEL compile error: ERROR: <input>:1:1: undeclared reference to 'x'`, want: map[topic]int{topicDevices: 1}},
		{name: "time", message: "0/1 nodes are available: 1 timed out trying to allocate devices.", nodes: 1, want: map[topic]int{topicDevices: 1}},
		{name: "binding", message: `running PreBind plugin "DynamicResources": device binding timeout: claim=b`, want: map[topic]int{topicBinding: 1}},
		{name: "an extended resource", message: "0/1 nodes are available: 1 Insufficient example.com/gpu.", extended: "example.com/gpu", nodes: 1, want: map[topic]int{topicDevices: 1}},
		{name: "another plugin's", message: "0/1 nodes are available: 1 Insufficient example.com/gpu.", extended: "example.com/nic", nodes: 1, want: map[topic]int{topicOther: 1}},
		{name: "more nodes than an int has", message: "0/99999999999999999999 nodes are available: 1 Insufficient cpu.", want: map[topic]int{topicOther: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newMessageParser().parse(test.message, test.extended)
			if m.nodes != test.nodes {
				t.Errorf("%d nodes, want %d", m.nodes, test.nodes)
			}
			for topic := range topic(topics) {
				if m.count[topic] != test.want[topic] {
					t.Errorf("%d nodes, text %q for topic %d, want %d nodes", m.count[topic], m.text[topic], topic, test.want[topic])
				}
				if want, checked := test.text[topic]; checked && m.text[topic] != want {
					t.Errorf("text %q, want %q", m.text[topic], want)
				}
			}
		})
	}
}

// FuzzParseSchedulerMessage checks that the result of any message contains
// nothing but parts of it.
func FuzzParseSchedulerMessage(f *testing.F) {
	for _, seed := range []string{"", "0/", "0/3 nodes are available:", "0/3 nodes are available: 1 a, 2 b. preemption: x", ", 1 , 1 ", "0/1 nodes are available: 1 "} {
		f.Add(seed, "example.com/gpu")
	}
	parser := newMessageParser()
	f.Fuzz(func(t *testing.T, message, extended string) {
		m := parser.parse(message, extended)
		for topic := range topic(topics) {
			if m.count[topic] < 0 || m.count[topic] == 0 != (m.text[topic] == "") {
				t.Errorf("%q: %d, but %q", message, m.count[topic], m.text[topic])
			}
			for part := range strings.SplitSeq(m.text[topic], ", ") {
				if !strings.Contains(message, part) {
					t.Errorf("%q does not contain %q", message, part)
				}
			}
		}
	})
}

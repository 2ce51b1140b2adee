package cluster

import (
	"strconv"
	"strings"
)

// subject is what a part of the scheduler's message speaks of.
type subject uint8

const (
	aboutNothing subject = iota // of what it does next, not of what is in the way
	aboutOthers                 // of what is no device's fault: processor, memory, affinity, volumes, a gang
	aboutDevices
	aboutClass
	aboutClaim // that it does not exist, yet or any more
	aboutBinding
	subjects = iota
)

// saying is a text of the scheduler and what it speaks of.
type saying struct {
	text    string
	subject subject
	since   string // Kubernetes version; all have it from then on unless it says otherwise
}

// sayings are the texts of the scheduler's plugin for devices, of the parts
// of upstream's allocator whose errors it passes on, and of the API server's
// gates, read in k8s.io/kubernetes v1.34.4, v1.35.4, v1.36.3 and v1.37.1
// (pkg/scheduler/framework/plugins/dynamicresources,
// k8s.io/dynamic-resource-allocation/structured and .../resourceclaim,
// pkg/scheduler/util/assumecache, pkg/registry/core/pod). The first that a
// part of a message contains counts; what none matches is another plugin's.
func sayings() []saying {
	return []saying{
		{"non-empty scheduling gates", aboutNothing, "1.34"},
		{"is in the process of being allocated", aboutNothing, "1.34"},
		{"asked by caller to stop allocating devices", aboutNothing, "1.34"},

		{"device binding timeout", aboutBinding, "1.34"},
		{"device binding failed", aboutBinding, "1.34"},

		{": device class ", aboutClass, "1.34"}, // request main: device class x does not exist
		{"could not retrieve device class", aboutClass, "1.34"},

		{"ResourceClaim not created yet", aboutClaim, "1.34"},
		{" was not created for Pod", aboutClaim, "1.34"},
		{"could not find v1.ResourceClaim", aboutClaim, "1.34"},
		{"resourceclaims.resource.k8s.io", aboutClaim, "1.34"}, // … "x" not found
		{"is being deleted", aboutClaim, "1.34"},

		{"resourceclaim not available on the node", aboutOthers, "1.34"}, // it is allocated, for another node
		{"resourceclaim in use", aboutOthers, "1.34"},
		{"allocation requires DRAOptionalNodeOperations", aboutOthers, "1.37"},
		{"node allocatable resource claim ", aboutOthers, "1.37"},

		{"cannot allocate all claims", aboutDevices, "1.34"},
		{"timed out trying to allocate devices", aboutDevices, "1.34"}, // a reason until 1.36, an error from 1.37 on
		{"invalid resource pools were encountered", aboutDevices, "1.35"},
		{"cannot schedule extended resource claim", aboutDevices, "1.34"},
		{"cannot fit resource", aboutDevices, "1.34"},
		{"asks for all devices, but resource pool", aboutDevices, "1.34"},
		{"exceeds the claim limit", aboutDevices, "1.34"},
		{"cannot add device", aboutDevices, "1.34"},
		{"CEL compile error", aboutDevices, "1.34"},
		{"CEL runtime error", aboutDevices, "1.34"},
		{"DRAPrioritizedList feature is disabled", aboutDevices, "1.34"},
		{"unknown request type", aboutDevices, "1.34"},
		{`"DynamicResources"`, aboutDevices, "1.34"}, // running "DynamicResources" filter plugin: …
	}
}

// asides begin what PostFilter plugins add: whether evicting pods would help,
// and which allocations they have undone. The plugin for devices has its own
// until 1.36 and no longer from 1.37 on, but for those of groups of pods.
func asides() []string {
	return []string{
		" preemption: ", " pod group preemption: ",
		" still not schedulable", " no new claims to deallocate", " plugin disabled",
		" deallocation of ResourceClaim completed", " deletion of ResourceClaim completed",
		" deallocation and deletion of ResourceClaims completed",
		" deallocation of PodGroup ResourceClaim completed", " ResourceClaim unreserved for PodGroup",
	}
}

// statement is what the scheduler said of a pod.
type statement struct {
	nodes int              // of how many nodes it speaks; 0: of none in particular
	count [subjects]int    // how many of them each subject was in the way of
	words [subjects]string // what it said of the subject first, and so on
}

// speaks reports whether it says anything of what is in the way.
func (s *statement) speaks() bool {
	return s.about(aboutOthers) || s.aboutDRA()
}

func (s *statement) about(subject subject) bool { return s.count[subject] > 0 }

// ofOthersAlone reports whether it speaks of what is no device's fault, and of
// nothing else.
func (s *statement) ofOthersAlone() bool { return s.about(aboutOthers) && !s.aboutDRA() }

// aboutDRA reports whether it speaks of devices, classes, claims or bindings.
func (s *statement) aboutDRA() bool {
	return s.about(aboutDevices) || s.about(aboutClass) || s.about(aboutClaim) || s.about(aboutBinding)
}

// listener understands messages. Extended names the extended resource that is
// asked for: that a node has not enough of it is about devices then, while it
// is another plugin's text.
type listener struct {
	sayings []saying
	asides  []string
}

func newListener() listener { return listener{sayings(), asides()} }

// understand reads a message of the form
//
//	0/5 nodes are available: 2 Insufficient cpu, 3 cannot allocate all claims. preemption: 0/5 nodes are …
//	0/5 nodes are available: request gpu: device class x does not exist. preemption: …
//
// where the second is of all nodes, or any other text.
func (l listener) understand(message, extended string) statement {
	var said statement
	body := message
	if rest, found := strings.CutPrefix(message, "0/"); found {
		nodes, reasons, found := strings.Cut(rest, " nodes are available:")
		if n, err := strconv.Atoi(nodes); found && err == nil && n >= 0 && n < mostNodes {
			said.nodes, body = n, reasons
		}
	}
	for _, aside := range l.asides {
		if before, _, found := strings.Cut(body, aside); found {
			body = before
		}
	}
	for _, part := range reasonsOf(strings.TrimRight(strings.TrimSpace(body), ".")) {
		count, text := countOf(part)
		if count == 0 {
			count = max(said.nodes, 1)
		}
		if text != "" {
			said.note(l.subjectOf(text, extended), count, text)
		}
	}
	return said
}

func (s *statement) note(subject subject, count int, text string) {
	s.count[subject] += count
	if s.words[subject] != "" {
		s.words[subject] += ", "
	}
	s.words[subject] += text
}

func (l listener) subjectOf(text, extended string) subject {
	for _, saying := range l.sayings {
		if strings.Contains(text, saying.text) {
			return saying.subject
		}
	}
	if extended != "" && text == "Insufficient "+extended {
		return aboutDevices
	}
	return aboutOthers
}

// reasonsOf splits "2 this, 3 that" before its numbers: a reason may have
// commas of its own.
func reasonsOf(body string) []string {
	var parts []string
	begin := 0
	for i := 0; ; {
		comma := strings.Index(body[i:], ", ")
		if comma < 0 {
			return append(parts, body[begin:])
		}
		i += comma + 2
		if count, _ := countOf(body[i:]); count > 0 {
			parts, begin = append(parts, body[begin:i-2]), i
		}
	}
}

// mostNodes is more than any cluster has: a greater number counts no nodes.
const mostNodes = 10_000_000

// countOf takes the number of nodes off a reason; 0 if it has none.
func countOf(part string) (count int, text string) {
	number, rest, found := strings.Cut(part, " ")
	if n, err := strconv.Atoi(number); found && err == nil && n > 0 && n < mostNodes {
		return n, rest
	}
	return 0, part
}

package cluster

import (
	"strconv"
	"strings"
)

// topic is what a part of the scheduler's message is about.
type topic uint8

const (
	topicNone  topic = iota // the scheduler's next action, not an obstacle
	topicOther              // obstacles other than devices: CPU, memory, affinity, volumes
	topicGang               // too few pods of the pod's gang can be placed
	topicDevices
	topicClass
	topicClaim // a claim that does not exist, or is being deleted
	topicBinding
	topics = iota
)

// phrase is a text of the scheduler and its topic.
type phrase struct {
	text  string
	topic topic
	since string // Kubernetes version; all later versions have it unless noted
}

// schedulerPhrases returns the texts of the scheduler's DynamicResources
// plugin, of the parts of upstream's allocator whose errors it passes on, and
// of the API server's scheduling gates, read in k8s.io/kubernetes v1.34.4,
// v1.35.4, v1.36.3 and v1.37.1
// (pkg/scheduler/framework/plugins/dynamicresources, .../gangscheduling,
// k8s.io/dynamic-resource-allocation/structured and .../resourceclaim,
// pkg/scheduler/util/assumecache, pkg/registry/core/pod). The first phrase that
// a part of a message contains decides; a part without one is another
// plugin's.
func schedulerPhrases() []phrase {
	return []phrase{
		{"non-empty scheduling gates", topicNone, "1.34"},
		{"is in the process of being allocated", topicNone, "1.34"},
		{"asked by caller to stop allocating devices", topicNone, "1.34"},

		{"device binding timeout", topicBinding, "1.34"},
		{"device binding failed", topicBinding, "1.34"},

		{": device class ", topicClass, "1.34"}, // request main: device class x does not exist
		{"could not retrieve device class", topicClass, "1.34"},

		{"ResourceClaim not created yet", topicClaim, "1.34"},
		{" was not created for Pod", topicClaim, "1.34"},
		{"could not find v1.ResourceClaim", topicClaim, "1.34"},
		{"resourceclaims.resource.k8s.io", topicClaim, "1.34"}, // … "x" not found
		{"is being deleted", topicClaim, "1.34"},

		{"resourceclaim not available on the node", topicOther, "1.34"}, // it is allocated, for another node
		{"resourceclaim in use", topicOther, "1.34"},
		{"allocation requires DRAOptionalNodeOperations", topicOther, "1.37"},
		{"node allocatable resource claim ", topicOther, "1.37"},

		{"minCount (", topicGang, "1.37"}, // minCount (8) cannot be satisfied: 7 scheduled, 0 remaining
		{"waiting for minCount pods from a gang", topicGang, "1.36"},

		{"cannot allocate all claims", topicDevices, "1.34"},
		{"timed out trying to allocate devices", topicDevices, "1.34"}, // a reason until 1.36, an error from 1.37 on
		{"invalid resource pools were encountered", topicDevices, "1.35"},
		{"cannot schedule extended resource claim", topicDevices, "1.34"},
		{"cannot fit resource", topicDevices, "1.34"},
		{"asks for all devices, but resource pool", topicDevices, "1.34"},
		{"exceeds the claim limit", topicDevices, "1.34"},
		{"cannot add device", topicDevices, "1.34"},
		{"CEL compile error", topicDevices, "1.34"},
		{"CEL runtime error", topicDevices, "1.34"},
		{"DRAPrioritizedList feature is disabled", topicDevices, "1.34"},
		{"unknown request type", topicDevices, "1.34"},
		{`"DynamicResources"`, topicDevices, "1.34"}, // running "DynamicResources" filter plugin: …
	}
}

// postFilterPhrases returns the beginnings of what PostFilter plugins append:
// whether evicting pods would help, and which allocations they have undone.
// The DynamicResources plugin has its own until 1.36; from 1.37 on, only those
// of pod groups remain.
func postFilterPhrases() []string {
	return []string{
		" preemption: ", " pod group preemption: ",
		" still not schedulable", " no new claims to deallocate", " plugin disabled",
		" deallocation of ResourceClaim completed", " deletion of ResourceClaim completed",
		" deallocation and deletion of ResourceClaims completed",
		" deallocation of PodGroup ResourceClaim completed", " ResourceClaim unreserved for PodGroup",
	}
}

// schedulerMessage is the scheduler's message about a pod, by topic.
type schedulerMessage struct {
	nodes int            // number of nodes that it is about; 0: no number
	count [topics]int    // nodes by topic
	text  [topics]string // the parts about the topic, joined by commas
}

// hasObstacle reports whether the message names any obstacle.
func (m *schedulerMessage) hasObstacle() bool {
	return m.about(topicOther) || m.about(topicGang) || m.aboutDRA()
}

func (m *schedulerMessage) about(t topic) bool { return m.count[t] > 0 }

// onlyOther reports whether all obstacles are other than devices.
func (m *schedulerMessage) onlyOther() bool { return m.about(topicOther) && !m.aboutDRA() }

// onlyGang reports whether the only obstacle is that too few pods of the gang can
// be placed.
func (m *schedulerMessage) onlyGang() bool {
	return m.about(topicGang) && !m.about(topicOther) && !m.aboutDRA()
}

// aboutDRA reports whether the message is about devices, classes, claims or
// binding conditions.
func (m *schedulerMessage) aboutDRA() bool {
	return m.about(topicDevices) || m.about(topicClass) || m.about(topicClaim) || m.about(topicBinding)
}

func (m *schedulerMessage) add(t topic, count int, text string) {
	m.count[t] += count
	if m.text[t] != "" {
		m.text[t] += ", "
	}
	m.text[t] += text
}

// messageParser parses messages of the scheduler.
type messageParser struct {
	phrases    []phrase
	postFilter []string
}

func newMessageParser() messageParser { return messageParser{schedulerPhrases(), postFilterPhrases()} }

// parse parses a message of the form
//
//	0/5 nodes are available: 2 Insufficient cpu, 3 cannot allocate all claims. preemption: 0/5 nodes are …
//	0/5 nodes are available: request gpu: device class x does not exist. preemption: …
//
// where the second is about all nodes, or any other text. extended is the name
// of the requested extended resource, or empty: that a node has too little of
// it is about devices.
func (p messageParser) parse(message, extended string) schedulerMessage {
	var m schedulerMessage
	message = withoutPlacements(message)
	body := message
	if rest, ok := strings.CutPrefix(message, "0/"); ok {
		nodes, reasons, found := strings.Cut(rest, " nodes are available:")
		if n, err := strconv.Atoi(nodes); found && err == nil && n >= 0 && n < maxNodes {
			m.nodes, body = n, reasons
		}
	}
	for _, text := range p.postFilter {
		body, _, _ = strings.Cut(body, text)
	}
	for _, part := range splitReasons(strings.TrimRight(strings.TrimSpace(body), ".")) {
		count, text := cutCount(part)
		if count == 0 {
			count = max(m.nodes, 1)
		}
		if text != "" {
			m.add(p.parseTopic(text, extended), count, text)
		}
	}
	return m
}

// withoutPlacements cuts off that none of the placements of a pod group is
// available (pkg/scheduler/schedule_one_podgroup.go from 1.37 on): what follows
// is the message about the first of them.
func withoutPlacements(message string) string {
	rest, ok := strings.CutPrefix(message, "0/")
	number, status, placements := strings.Cut(rest, " placements are available, first placement status: ")
	if _, err := strconv.Atoi(number); !ok || !placements || err != nil {
		return message
	}
	return status
}

func (p messageParser) parseTopic(text, extended string) topic {
	for _, phrase := range p.phrases {
		if strings.Contains(text, phrase.text) {
			return phrase.topic
		}
	}
	if extended != "" && text == "Insufficient "+extended {
		return topicDevices
	}
	return topicOther
}

// splitReasons splits "2 this, 3 that" before its numbers: a reason may contain
// commas.
func splitReasons(body string) []string {
	var parts []string
	begin := 0
	for i := 0; ; {
		comma := strings.Index(body[i:], ", ")
		if comma < 0 {
			return append(parts, body[begin:])
		}
		i += comma + 2
		if count, _ := cutCount(body[i:]); count > 0 {
			parts, begin = append(parts, body[begin:i-2]), i
		}
	}
}

// maxNodes is more than any cluster has: a greater number is no node count.
const maxNodes = 10_000_000

// cutCount cuts the number of nodes off a reason; 0 if it has none.
func cutCount(part string) (count int, text string) {
	number, rest, found := strings.Cut(part, " ")
	if n, err := strconv.Atoi(number); found && err == nil && n > 0 && n < maxNodes {
		return n, rest
	}
	return 0, part
}

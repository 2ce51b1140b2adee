package clusterread

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Gap is a collection that could not be read, or not of all namespaces.
type Gap struct {
	Source      string `json:"source"`
	Reason      string `json:"reason"`
	Message     string `json:"message,omitempty"`
	Only        string `json:"onlyNamespace,omitempty"` // the one that could be read
	Consequence string `json:"consequence"`
}

// Gaps are the collections that could not be read.
type Gaps []Gap

// The sources on which a diagnosis depends.
const (
	SourcePods      = "pods"
	SourceClaims    = "resourceclaims"
	SourceSlices    = "resourceslices"
	SourceClasses   = "deviceclasses"
	SourceNodes     = "nodes"
	SourceTemplates = "resourceclaimtemplates"
	SourceRules     = "devicetaintrules"
	SourceGroups    = "podgroups"
	SourceEvents    = "events"
	SourceKueue     = "workloads"
	SourceDomains   = "computedomains"
	SourceVolcano   = "podgroups.scheduling.volcano.sh"
	SourceKAI       = "podgroups.scheduling.run.ai"
)

// NewGaps finds what could not be read. Where reading all namespaces was not
// allowed and one was read instead, everywhere is how the first attempt went;
// else it is nil.
func NewGaps(statuses, everywhere []source.Status, namespace string) Gaps {
	gaps := Gaps{}
	for _, status := range statuses {
		if missing(status) {
			row, _ := find(status.Name)
			gaps = append(gaps, newGap(status, row.lost))
		}
	}
	for _, status := range everywhere {
		if missing(status) && !gaps.Lack(status.Name) && namespaced(status.Name) {
			row, _ := find(status.Name)
			gap := newGap(status, row.lostElsewhere)
			gap.Only = namespace
			gaps = append(gaps, gap)
		}
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return rank(a) - rank(b) })
	return gaps
}

// collection is what is known of a source: what is unknown without it, and, of one with
// objects in namespaces, what is unknown if only one of them was read.
type collection struct{ name, lost, lostElsewhere string }

// collections are the sources, those on which most depends first.
func collections() []collection {
	const elsewhere, other = "those of other namespaces are unknown", "what depends on it is unknown"
	return []collection{
		{SourceClaims, "whether a claim exists, is allocated and holds devices is unknown", "devices held by claims of other namespaces count as free here, and those holders are not listed"},
		{SourcePods, "the users of a claim, and whether it is pending, are unknown", "pods of other namespaces are unknown"},
		{SourceSlices, "the published devices are unknown: no stage is diagnosed", ""},
		{SourceClasses, "the device classes and their selectors are unknown: no stage is diagnosed", ""},
		{SourceNodes, "which devices one node can use together is not diagnosed", ""},
		{SourceTemplates, "the requests of claims that are not created yet are unknown", elsewhere},
		{SourceRules, "taints of DeviceTaintRules are unknown: fewer devices may be usable than reported here", ""},
		{SourceGroups, "the claims that a pod shares with its PodGroup are unknown", elsewhere},
		{SourceEvents, "why a claim could not be created, or its devices could not be prepared, is unknown", elsewhere},
		{SourceKueue, other, elsewhere},
		{SourceDomains, other, elsewhere},
	}
}

// find returns the collection with a name, and its place among them.
func find(name string) (collection, int) {
	all := collections()
	i := slices.IndexFunc(all, func(c collection) bool { return c.name == name })
	if i < 0 {
		return collection{lost: "what depends on it is unknown"}, len(all)
	}
	return all[i], i
}

// custom reports whether a source has custom resources. Without the permission to list
// them it is not known whether there are any, and most clusters have none: that is not
// reported.
func custom(name string) bool {
	return slices.Contains([]string{SourceKueue, SourceDomains, SourceVolcano, SourceKAI}, name)
}

// missing reports whether nothing is known of a collection that there is.
// Groups of pods and taint rules are not served everywhere: then there are
// none.
func missing(status source.Status) bool {
	if status.Up || !status.LastSuccess.IsZero() || custom(status.Name) {
		return false
	}
	optional := status.Name == SourceGroups || status.Name == SourceRules
	return !optional || status.Reason != source.ReasonUnsupported && status.Reason != source.ReasonNotFound
}

func newGap(status source.Status, consequence string) Gap {
	gap := Gap{Source: status.Name, Reason: string(status.Reason), Message: status.Message, Consequence: consequence}
	if status.Reason == source.ReasonNone {
		gap.Reason, gap.Message = string(source.ReasonTimeout), "no answer in time"
	}
	return gap
}

// namespaced reports whether a source has its objects in namespaces, so that
// one of these can be read alone.
func namespaced(name string) bool {
	row, _ := find(name)
	return row.lostElsewhere != ""
}

// rank orders gaps by how much depends on them.
func rank(gap Gap) int {
	_, i := find(gap.Source)
	return i
}

// Denied returns what this identity must be allowed to list to see more; empty
// if nothing was denied.
func (g Gaps) Denied() string {
	var global, local, parts []string
	for _, gap := range g {
		switch {
		case gap.Reason != string(source.ReasonPermission):
		case namespaced(gap.Source):
			local = append(local, gap.Source)
		default:
			global = append(global, gap.Source)
		}
	}
	if len(global) > 0 {
		parts = append(parts, words.Join(global, "and"))
	}
	if len(local) > 0 {
		parts = append(parts, words.Join(local, "and")+" in all namespaces")
	}
	return strings.Join(parts, ", and ")
}

// Lack reports whether nothing at all of the collection could be read.
func (g Gaps) Lack(name string) bool {
	return slices.ContainsFunc(g, func(gap Gap) bool { return gap.Source == name && gap.Only == "" })
}

// See reports whether the collection could be read in the namespace.
func (g Gaps) See(name, namespace string) bool {
	return !slices.ContainsFunc(g, func(gap Gap) bool {
		return gap.Source == name && (gap.Only == "" || gap.Only != namespace)
	})
}

// blind reports whether claims of other namespaces could not be seen.
func (g Gaps) blind() bool {
	return slices.ContainsFunc(g, func(gap Gap) bool { return gap.Source == SourceClaims && gap.Only != "" })
}

// doubt returns why a diagnosis with the reason is uncertain with these gaps;
// empty if it is certain.
func (g Gaps) doubt(reason dra.PendingReason) string {
	enough := reason == dra.ReasonNone
	oneNode := enough || reason == dra.ReasonFragmented || reason == dra.ReasonConstraints
	switch {
	case g.Lack(SourceNodes) && oneNode:
		return "the nodes could not be read, so it is unknown which devices one node can reach"
	case g.blind() && enough:
		return "the claims of other namespaces could not be read, so it is unknown which of the matching devices are free"
	case g.Lack(SourceRules) && enough:
		return "the DeviceTaintRules could not be read, so it is unknown whether one of them taints the matching devices"
	default:
		return ""
	}
}

// Diagnosable returns what can be diagnosed of the questions with these gaps.
func Diagnosable(questions []dra.Question, gaps Gaps) []dra.Question {
	if gaps.Lack(SourceSlices) || gaps.Lack(SourceClasses) || gaps.Lack(SourceClaims) {
		return nil
	}
	if !gaps.Lack(SourceTemplates) {
		return questions
	}
	var diagnosable []dra.Question
	for _, question := range questions {
		question.Refs = slices.DeleteFunc(slices.Clone(question.Refs), func(asked dra.PendingRef) bool {
			return asked.Claim == "" && asked.Extended == 0
		})
		if len(question.Refs) > 0 {
			diagnosable = append(diagnosable, question)
		}
	}
	return diagnosable
}

// SplitByGaps separates the diagnoses that hold in spite of the gaps from those
// of which only the counts do. With less known, more devices seem usable than
// are: too few are certainly too few, but whether there are enough is unknown.
func SplitByGaps(diagnoses []dra.Diagnosis, gaps Gaps) (sure, unsure []dra.Diagnosis) {
	for _, diagnosis := range diagnoses {
		doubt := gaps.doubt(diagnosis.Reason)
		if doubt == "" {
			sure = append(sure, diagnosis)
			continue
		}
		diagnosis.Reason, diagnosis.Message = dra.ReasonUnknown, doubt
		if diagnosis.Detail != nil {
			detail := *diagnosis.Detail
			detail.Fits, diagnosis.Detail = "", &detail
		}
		unsure = append(unsure, diagnosis)
	}
	return sure, unsure
}

// AddUncertain gives the references without a diagnosis the counts of an uncertain
// one, and adds why it is uncertain to the message.
func AddUncertain(references []cluster.PendingRef, unsure []dra.Diagnosis) {
	for i := range references {
		w := &references[i]
		for j := range unsure {
			v := &unsure[j]
			if w.Diagnosis == nil && v.PodUID == w.PodUID && v.Pod == w.Pod && v.PodClaim == w.PodClaim {
				w.Diagnosis = v
				w.Message = strings.TrimPrefix(w.Message+"; "+v.Message, "; ")
			}
		}
	}
}

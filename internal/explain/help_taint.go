package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func (a account) helpTainted(told *Waiting) []string {
	var help []string
	removals := told.taints()
	for _, removal := range removals {
		because := removal.Because
		if because == "" {
			because = "a taint"
		}
		help = append(help, fmt.Sprintf("%s keeps %d of %s from request %s: have whoever set it take it off when its cause has gone", because, removal.Count, counted(removal.Of, "device", "devices"), removal.Request))
	}
	if toleration := tolerations(removals); len(toleration) > 0 {
		help = append(help, fmt.Sprintf("or tolerate %s, if the work can bear it: `tolerations: [%s]`", verb(len(toleration), "it", "them"), strings.Join(toleration, ", ")))
	}
	if rules := byRules(removals); len(rules) > 0 {
		help = append(help, fmt.Sprintf("%s from a DeviceTaintRule, which can be deleted: `kubectl get devicetaintrules`", verb(len(rules), "the taint "+rules[0]+" comes", "each of the taints "+strings.Join(rules, ", ")+" comes")))
	}
	return append(help, told.renew())
}

// taints are the removals by taints of those requests for which they leave too
// few.
func (w *Waiting) taints() []Removal {
	return slices.DeleteFunc(slices.Clone(w.Removed), func(removal Removal) bool {
		if removal.Stage != dra.StageUntainted.String() {
			return true
		}
		return slices.ContainsFunc(w.Funnel, func(funnel Funnel) bool {
			return funnel.Request == removal.Request && funnel.Asked > 0 && funnel.short(dra.StageUntainted) <= 0
		})
	})
}

// tolerations are those, as a claim's specification has them, that all taints
// which are told would need.
func tolerations(removals []Removal) []string {
	var all []string
	for _, removal := range removals {
		if removal.taint == nil {
			continue
		}
		text := fmt.Sprintf("{key: %s, operator: Exists, effect: %s}", removal.taint.Key, removal.taint.Effect)
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

func byRules(removals []Removal) []string {
	var all []string
	for _, removal := range removals {
		if removal.Rule != "" && !slices.Contains(all, removal.Taint) {
			all = append(all, removal.Taint)
		}
	}
	slices.Sort(all)
	return all
}

// taintText spells a taint as kubectl does.
func taintText(taint dra.Taint) string {
	text := taint.Key
	if taint.Value != "" {
		text += "=" + taint.Value
	}
	return text + ":" + taint.Effect
}

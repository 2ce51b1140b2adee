package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func (a account) helpTainted(told *Waiting) []string {
	var help []string
	for _, removal := range told.Removed {
		if removal.Stage != dra.StageUntainted.String() {
			continue
		}
		because := removal.Because
		if because == "" {
			because = "a taint"
		}
		help = append(help, fmt.Sprintf("%s keeps %d of %s from request %s: have whoever set it take it off when its cause has gone", because, removal.Count, counted(removal.Of, "device", "devices"), removal.Request))
	}
	if toleration := a.tolerations(told); len(toleration) > 0 {
		help = append(help, "or tolerate it, if the work can bear it: `tolerations: ["+strings.Join(toleration, ", ")+"]`")
	}
	if rules := a.byRules(told); len(rules) > 0 {
		help = append(help, fmt.Sprintf("%s from a DeviceTaintRule, which can be deleted: `kubectl get devicetaintrules`", verb(len(rules), "the taint "+rules[0]+" comes", "the taints "+strings.Join(rules, ", ")+" come")))
	}
	return append(help, told.renew())
}

// tainted are the devices among the examples that have taints.
func (a account) tainted(told *Waiting) []dra.TaintedDevice {
	if a.facts.Supply == nil {
		return nil
	}
	var found []dra.TaintedDevice
	for _, removal := range told.Removed {
		if removal.Stage != dra.StageUntainted.String() {
			continue
		}
		for _, device := range a.facts.Supply.Tainted {
			if slices.Contains(removal.Examples, device.Device.String()) {
				found = append(found, device)
			}
		}
	}
	return found
}

// tolerations are those, as a claim's specification has them, that the
// examples would need.
func (a account) tolerations(told *Waiting) []string {
	var all []string
	for _, device := range a.tainted(told) {
		for _, taint := range append(slices.Clip(device.Taints), device.ByRules...) {
			if taint.Effect != "NoSchedule" && taint.Effect != "NoExecute" {
				continue
			}
			text := fmt.Sprintf("{key: %s, operator: Exists, effect: %s}", taint.Key, taint.Effect)
			if !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	slices.Sort(all)
	return all
}

func (a account) byRules(told *Waiting) []string {
	var all []string
	for _, device := range a.tainted(told) {
		for _, taint := range device.ByRules {
			if text := taintText(taint); !slices.Contains(all, text) {
				all = append(all, text)
			}
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

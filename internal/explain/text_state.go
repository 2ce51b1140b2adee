package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// claimText tells of a claim that exists. What a waiting reference has told
// of it already is not told again.
func (r *Report) claimText(p *printer, claim *Claim) {
	told := slices.ContainsFunc(r.Waiting, func(w Waiting) bool { return w.Claim == claim.Name })
	if told && len(claim.Devices) == 0 && len(claim.Remarks) == 0 {
		return
	}
	title := "ResourceClaim " + claim.Name + ": " + claim.State
	if claim.Node != "" {
		title += ", on " + claim.Node
	}
	p.heading(title)
	p.paragraph(2, r.claimHistory(claim))
	for _, remark := range claim.Remarks {
		p.paragraph(2, remark)
	}
	helpText(p, claim.Help)
	if !told {
		specText(p, claim.Asked)
	}
	devicesText(p, claim.Devices)
	if len(claim.ReservedFor) > 0 {
		section(p, "Reserved for")
		p.paragraph(4, some(claim.ReservedFor, 12))
	}
}

// claimHistory is what has happened to it so far.
func (r *Report) claimHistory(claim *Claim) string {
	parts := []string{"exists " + since(claim.Created, r.At)}
	if claim.MadeFor != "" {
		made := "made for " + claim.MadeFor
		if claim.ExtendedResource {
			made += ", which asks for an extended resource"
		}
		parts = append(parts, made)
	}
	if claim.AllocatedAt != nil {
		parts = append(parts, "allocated "+since(*claim.AllocatedAt, r.At))
	}
	if claim.DeletedSince != nil {
		parts = append(parts, "being deleted "+since(*claim.DeletedSince, r.At))
	}
	if len(claim.Finalizers) > 0 {
		parts = append(parts, "kept by "+strings.Join(claim.Finalizers, ", "))
	}
	return strings.Join(parts, "; ")
}

func devicesText(p *printer, devices []Device) {
	if len(devices) == 0 {
		return
	}
	section(p, "Devices")
	var rows [][]string
	for _, device := range devices {
		text := device.Driver + "/" + device.Pool + "/" + device.Name
		if device.AdminAccess {
			text += " (admin access)"
		}
		rows = append(rows, []string{device.Request, device.DeviceClass, text})
	}
	p.table(4, rows)
}

// podsText tells how far the pods are.
func (r *Report) podsText(p *printer) {
	for i := range r.Pods {
		pod := &r.Pods[i]
		if pod.State == StateWaiting && len(pod.Phases) == 0 {
			continue // told by its reference
		}
		title := "Pod " + pod.Name + ": " + pod.State
		if pod.Node != "" {
			title += ", on " + pod.Node
		}
		p.heading(title)
		for _, phase := range pod.Phases {
			text := phase.Phase
			if phase.Claim != "" {
				text += " of " + phase.Claim
			}
			p.paragraph(2, text+" is under way "+since(phase.Since, r.At))
		}
		if pod.Message != "" {
			p.paragraph(2, pod.Message)
		}
		helpText(p, pod.Help)
	}
}

func (r *Report) gapsText(p *printer) {
	if len(r.NotRead) == 0 {
		return
	}
	p.heading("What could not be read")
	for _, gap := range r.NotRead {
		text := gap.Source
		if gap.Only != "" {
			text += " outside of namespace " + gap.Only
		}
		p.item(2, "-", fmt.Sprintf("%s (%s): %s", text, gap.Reason, gap.Consequence))
		if gap.Message != "" {
			p.paragraph(4, gap.Message)
		}
	}
}

// sortedPairs writes a map as "key: value", sorted by key.
func sortedPairs[K cmp.Ordered, V any](values map[K]V) []string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		pairs = append(pairs, fmt.Sprintf("%v: %v", key, values[key]))
	}
	return pairs
}

// capital begins a sentence.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

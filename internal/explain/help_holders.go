package explain

import (
	"fmt"
	"slices"
	"strings"
)

// release says whose devices would do: first those that nobody uses.
func (w *Waiting) release() []string {
	help := w.idle()
	gone := w.named(func(holder Holder) string {
		if holder.PodsGone && holder.used.nobody() {
			return holder.Namespace + "/" + holder.Claim
		}
		return ""
	})
	if len(gone) > 0 {
		help = append(help, fmt.Sprintf("the pods of %s are gone: %s", some(gone, mostHelp), orphanHelp))
	}
	busy := w.named(func(holder Holder) string {
		if holder.used.nobody() {
			return ""
		}
		return fmt.Sprintf("%s/%s (%s)", holder.Namespace, holder.Claim, holder.used.text())
	})
	if len(busy) > 0 {
		help = append(help, "devices that would do come free when these end: "+some(busy, mostHelp))
	}
	if more := w.InAll - len(w.Holders); more > 0 {
		help = append(help, fmt.Sprintf("%d more %s devices that would do", more, verb(more, "claim holds", "claims hold")))
	}
	return help
}

// named are the names that a function has for holders, each once.
func (w *Waiting) named(name func(Holder) string) []string {
	var names []string
	for _, holder := range w.Holders {
		if text := name(holder); text != "" && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}

// idle are claims that hold devices though nobody uses them.
func (w *Waiting) idle() []string {
	help := w.named(func(holder Holder) string {
		if !holder.used.idle() {
			return ""
		}
		return fmt.Sprintf("claim %s/%s holds %s that would do, and nobody uses it: `kubectl delete resourceclaim -n %s %s`",
			holder.Namespace, holder.Claim, counted(len(holder.Devices), "device", "devices"), holder.Namespace, holder.Claim)
	})
	return help[:min(len(help), mostHelp)]
}

// holdersText lists who holds devices, and says how many more there are.
func (r *Report) holdersText(p *printer, w *Waiting) {
	if len(w.Holders) == 0 {
		return
	}
	section(p, "Held by")
	for _, holder := range w.Holders {
		text := fmt.Sprintf("%s/%s (%s)", holder.Namespace, holder.Claim, holder.who())
		if holder.Since != nil {
			text += " " + since(*holder.Since, r.At)
		}
		p.paragraph(4, fmt.Sprintf("%s: %s", text, counted(len(holder.Devices), "device", "devices")))
		p.paragraph(6, some(holder.Devices, 4))
	}
	if more := w.InAll - len(w.Holders); more > 0 {
		p.paragraph(4, fmt.Sprintf("and %d more", more))
	}
}

// who says who uses the devices.
func (h Holder) who() string {
	var parts []string
	if h.PodsGone {
		parts = append(parts, "its pods are gone")
	}
	if users := h.used.text(); users != "" {
		parts = append(parts, users)
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case h.used.known:
		return "nobody uses it"
	default:
		return "who uses it is not known"
	}
}

package explain

import (
	"fmt"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// scarcity says why a request could not be served even if nothing were held;
// nil where it could.
func (w *Waiting) scarcity(funnel Funnel) []string {
	var lack []string
	if short := funnel.short(dra.StageSelectors); short > 0 {
		lack = append(lack, fmt.Sprintf("the cluster has too few for %s, in use or not: add %s, or ask for fewer", w.which(funnel), counted(short, "device that matches", "devices that match")))
		lack = append(lack, w.oneNode(funnel)...)
	}
	matching, untainted := funnel.Left[dra.StageSelectors.String()], funnel.Left[dra.StageUntainted.String()]
	if tainted := matching - untainted; tainted > 0 && funnel.short(dra.StageUntainted) > 0 {
		lack = append(lack, fmt.Sprintf("%d of %s for %s %s a taint that is not tolerated: see who set it, and why", tainted,
			counted(matching, "device", "devices"), w.which(funnel), verb(tainted, "has", "have")))
	}
	if futile := w.futile(funnel); len(lack) == 0 && futile != "" {
		lack = []string{futile}
	}
	return lack
}

// futile says that no node could serve the request even if nothing were held
// there; empty where one could, or where that is not known: a pool that is not
// complete may have more than is published.
func (w *Waiting) futile(funnel Funnel) string {
	if w.onOneNode == nil || funnel.Asked <= int64(w.onOneNode[funnel.Request]) || w.growing(funnel) {
		return ""
	}
	text := fmt.Sprintf("no node has %s for %s, even with all free: waiting does not help", counted(funnel.Asked, "such device", "such devices"), w.which(funnel))
	most := w.onOneNode[funnel.Request]
	if most == 0 {
		return text + "; see from which nodes the devices can be used"
	}
	return fmt.Sprintf("%s; ask for %d at most, or add a node that has as many as are asked for", text, most)
}

// oneNode warns where the devices that there are lie on several nodes: a claim
// is given devices that one node can use.
func (w *Waiting) oneNode(funnel Funnel) []string {
	most, untainted := w.onOneNode[funnel.Request], funnel.Left[dra.StageUntainted.String()]
	if w.onOneNode == nil || most >= untainted {
		return nil
	}
	return []string{fmt.Sprintf("one node must be able to use all of them: at present none can use more than %d", most)}
}

// growing reports whether some of the request's devices are in pools that are
// not complete.
func (w *Waiting) growing(funnel Funnel) bool {
	return slices.ContainsFunc(w.Removed, func(removal Removal) bool {
		return removal.Request == funnel.Request && removal.Stage == dra.StageFree.String() && removal.Because == dra.BecauseIncomplete
	})
}

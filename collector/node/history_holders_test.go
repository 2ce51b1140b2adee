package node

import (
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// holdersNow is who holds a device, by the page and the API's objects.
type holdersNow struct {
	claims  []string
	uses    map[string]map[string][]string // pod UID → container → claims; the empty container is the pod itself
	pods    map[string]string              // UID → name, of pods that hold it
	blurred map[string]bool
	idle    map[string]bool // containers of pods that hold it, which do not
	mixed   map[string]bool // UIDs of pods whose containers hold different things
	several bool            // holders
	unnamed bool
}

func (h *holdersNow) attribution() string {
	if h.several {
		return "shared"
	}
	return "exclusive"
}

func (w *working) holdersOf(uuid string) *holdersNow {
	h := &holdersNow{uses: map[string]map[string][]string{}, pods: map[string]string{}, blurred: map[string]bool{}, idle: map[string]bool{}, mixed: map[string]bool{}}
	for _, row := range w.last.Rows {
		if row.Family.Name == "dra_claim_held" && row.Labels.Get("uuid") == uuid {
			h.claims = append(h.claims, row.Labels.Get("resourceclaim"))
		}
	}
	for _, pod := range w.facts.Cluster.Pods {
		for _, claim := range h.claims {
			if !slices.ContainsFunc(pod.Claims, func(c dra.PodClaim) bool { return c.Claim == claim }) {
				continue
			}
			h.use(pod.UID, pod.Ref.Name, "", claim)
			for _, c := range pod.Containers {
				if slices.ContainsFunc(c.Uses, func(u dra.Use) bool { return u.Claim == claim }) {
					h.use(pod.UID, pod.Ref.Name, c.Name+"-of-"+pod.Ref.Name, claim)
				}
			}
		}
	}
	for _, pod := range w.facts.Cluster.Pods {
		if uses := h.uses[pod.UID]; uses != nil {
			for _, c := range pod.Containers {
				own := uses[c.Name+"-of-"+pod.Ref.Name]
				h.idle[c.Name+"-of-"+pod.Ref.Name] = c.ID != "" && len(own) == 0
				h.mixed[pod.UID] = h.mixed[pod.UID] || len(own) != len(uses[""])
			}
		}
	}
	for _, containers := range h.uses {
		for name, claims := range containers {
			for _, claim := range claims {
				h.blurred[claim] = h.blurred[claim] || name != "" && len(claims) > 1
			}
		}
	}
	if name := w.plugin[uuid]; name != "" {
		h.unnamed = !slices.ContainsFunc(w.facts.Cluster.PluginPods, func(p dra.Pod) bool { return p.Ref.Name == name })
		if !h.unnamed {
			h.use("pod-uid-of-"+name, name, "", "")
		}
	}
	h.several = len(h.claims) > 1 || len(h.claims) > 0 && w.plugin[uuid] != ""
	return h
}

func (h *holdersNow) use(uid, pod, container, claim string) {
	if h.uses[uid] == nil {
		h.uses[uid] = map[string][]string{}
	}
	h.pods[uid] = pod
	h.uses[uid][container] = append(h.uses[uid][container], claim)
}

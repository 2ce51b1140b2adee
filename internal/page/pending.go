package page

import (
	"net/http"
	"time"
)

// PendingAnswer is the document of /api/v1/pending. docs/api.md describes it;
// its names do not change within v1.
type PendingAnswer struct {
	APIVersion string    `json:"apiVersion"`
	At         time.Time `json:"at"`
	Unread     []string  `json:"unread,omitempty"` // sources without which nobody knows who waits
	Pending    []Waiting `json:"pending"`
}

// servePending answers with the waiting references of all namespaces, or of
// those that the query names; those that wait longest come first.
func (s *clusterSite) servePending(w http.ResponseWriter, r *http.Request) {
	view, ready := s.view()
	if !ready {
		writeJSON(w, s.log, http.StatusServiceUnavailable, failure{APIVersion, "no snapshot yet"})
		return
	}
	answer := PendingAnswer{APIVersion: APIVersion, At: view.At, Pending: []Waiting{}}
	for _, source := range view.Unread("pods", "resourceclaims") {
		answer.Unread = append(answer.Unread, source.Name)
	}
	wanted := namespacesOf(r)
	for _, all := range [][]Waiting{view.Waiting, view.Gated} {
		for _, waiting := range all {
			if len(wanted) == 0 || wanted[waiting.Namespace] {
				answer.Pending = append(answer.Pending, waiting)
			}
		}
	}
	sortWaiting(answer.Pending)
	writeJSON(w, s.log, http.StatusOK, answer)
}

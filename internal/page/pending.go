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
	Gated      []Waiting `json:"gated"`
}

// servePending answers with the pending claims of all namespaces, or of those
// that the query names, and with what is gated; those that are pending longest
// come first.
func (s *clusterSite) servePending(w http.ResponseWriter, r *http.Request) {
	view, ready, err := s.view(r)
	if err != nil {
		status, message := refusal(s.log, err)
		writeJSON(w, s.log, status, failure{APIVersion, message})
		return
	}
	if !ready {
		writeJSON(w, s.log, http.StatusServiceUnavailable, failure{APIVersion, "no snapshot yet"})
		return
	}
	namespace := func(w Waiting) string { return w.Namespace }
	answer := PendingAnswer{
		APIVersion: APIVersion, At: view.At,
		Pending: wanted(r, view.Waiting, namespace), Gated: wanted(r, view.Gated, namespace),
	}
	for _, source := range view.Unread("pods", "resourceclaims") {
		answer.Unread = append(answer.Unread, source.Name)
	}
	writeJSON(w, s.log, http.StatusOK, answer)
}

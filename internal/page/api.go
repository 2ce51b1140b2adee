package page

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// answer is the document of /api/v1/claims. docs/api.md describes it; its
// names do not change within v1.
type answer struct {
	APIVersion string    `json:"apiVersion"`
	Node       string    `json:"node"`
	SampledAt  time.Time `json:"sampledAt,omitzero"`
	Claims     []Claim   `json:"claims"`
}

// failure is the document of an answer that is not 200.
type failure struct {
	APIVersion string `json:"apiVersion"`
	Error      string `json:"error"`
}

const apiVersion = "v1"

// serveClaims answers with the claims of all namespaces, or of those that the
// query names. Their order is by name, which is steadier than how they are.
func (s *site) serveClaims(w http.ResponseWriter, r *http.Request) {
	view, ready := s.view()
	if !ready {
		s.writeJSON(w, http.StatusServiceUnavailable, failure{apiVersion, "no snapshot yet"})
		return
	}
	answer := answer{APIVersion: apiVersion, Node: view.Node, SampledAt: view.SampledAt, Claims: []Claim{}}
	namespaces := map[string]bool{}
	for _, namespace := range r.URL.Query()["namespace"] {
		namespaces[namespace] = true
	}
	for _, claim := range view.Claims {
		if len(namespaces) == 0 || namespaces[claim.Namespace] {
			answer.Claims = append(answer.Claims, claim)
		}
	}
	slices.SortFunc(answer.Claims, compareClaims)
	s.writeJSON(w, http.StatusOK, answer)
}

func (s *site) writeJSON(w http.ResponseWriter, status int, document any) {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		s.log.Error("encode claims", "error", err.Error())
		http.Error(w, "encode claims: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // fails only if the client left
}

package page

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// ClaimsAnswer is the document of /api/v1/claims. docs/api.md describes it; its
// names do not change within v1.
type ClaimsAnswer struct {
	APIVersion string    `json:"apiVersion"`
	Node       string    `json:"node"`
	SampledAt  time.Time `json:"sampledAt,omitzero"`

	ProcessAttribution string `json:"processAttribution,omitempty"`

	// Devices counts those of the node, whatever namespaces the query names.
	// Documents of older agents have none.
	Devices *DeviceCount `json:"deviceCount,omitempty"`
	Claims  []Claim      `json:"claims"`
}

// totalsAnswer is the document of /api/v1/namespaces.
type totalsAnswer struct {
	APIVersion   string    `json:"apiVersion"`
	Node         string    `json:"node"`
	SampledAt    time.Time `json:"sampledAt,omitzero"`
	CountedSince time.Time `json:"countedSince,omitzero"`
	Namespaces   []Totals  `json:"namespaces"`
}

// failure is the document of an answer that is not 200.
type failure struct {
	APIVersion string `json:"apiVersion"`
	Error      string `json:"error"`
}

// APIVersion is that of all documents.
const APIVersion = "v1"

// serveClaims answers with the claims of all namespaces, or of those that the
// query names. Their order is by name, which is steadier than how they are.
func (s *site) serveClaims(w http.ResponseWriter, r *http.Request) {
	s.serveView(w, r, func(view View) any {
		claims := wanted(r, view.Claims, func(c Claim) string { return c.Namespace })
		slices.SortFunc(claims, compareClaims)
		count := view.Count()
		return ClaimsAnswer{
			APIVersion: APIVersion, Node: view.Node, SampledAt: view.SampledAt, ProcessAttribution: view.ProcessAttribution,
			Devices: &count, Claims: claims,
		}
	})
}

// serveNamespaces answers with the totals of all namespaces, or of those that
// the query names.
func (s *site) serveNamespaces(w http.ResponseWriter, r *http.Request) {
	s.serveView(w, r, func(view View) any {
		return totalsAnswer{
			APIVersion: APIVersion, Node: view.Node, SampledAt: view.SampledAt, CountedSince: view.CountedSince,
			Namespaces: wanted(r, view.Totals, func(t Totals) string { return t.Namespace }),
		}
	})
}

// serveView answers with what is made of the reader's view, or why there is
// none.
func (s *site) serveView(w http.ResponseWriter, r *http.Request, answer func(View) any) {
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
	writeJSON(w, s.log, http.StatusOK, answer(view))
}

// wanted is those of the namespaces that the query names, all if it names
// none. It is never nil: JSON has a list where there is nothing.
func wanted[T any](r *http.Request, all []T, namespace func(T) string) []T {
	names, picked := namespacesOf(r), []T{}
	for _, one := range all {
		if len(names) == 0 || names[namespace(one)] {
			picked = append(picked, one)
		}
	}
	return picked
}

// namespacesOf are those that the query names; none means all.
func namespacesOf(r *http.Request) map[string]bool {
	wanted := map[string]bool{}
	for _, namespace := range r.URL.Query()["namespace"] {
		wanted[namespace] = true
	}
	return wanted
}

func writeJSON(w http.ResponseWriter, log *slog.Logger, status int, document any) {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		log.Error("encode an answer", "error", err.Error())
		http.Error(w, "encode an answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(terminal.EscapeJSON(text), '\n')) // fails only if the client left
}

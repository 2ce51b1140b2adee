package page

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Visible reports which of the namespaces the reader of a request may see, or
// that it is all of them. The error may be a *Refusal; another one is answered
// with 503.
type Visible func(r *http.Request, namespaces []string) (visible map[string]bool, all bool, err error)

// Refusal is an error that a reader is answered with.
type Refusal struct {
	Status  int // of HTTP
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// shownTo is what the reader of the request may see: the rows, nil before the first
// snapshot, and what is wrong with each source, in words. The words may name
// objects of any namespace, so only those get them who may see all.
func (c *Config) shownTo(r *http.Request) (rows []metric.Row, troubles func() map[string]string, err error) {
	rows = c.Rows()
	if c.Visible == nil || rows == nil {
		return rows, c.Troubles, nil
	}
	visible, all, err := c.Visible(r, namespacesIn(rows, namespacesOf(r)))
	if err != nil || all {
		return rows, c.Troubles, err
	}
	return visibleRows(rows, visible), nil, nil
}

// namespacesIn are those of the rows, sorted, and of them those alone that are
// wanted, if any are.
func namespacesIn(rows []metric.Row, wanted map[string]bool) []string {
	found := make(map[string]bool)
	for i := range rows {
		namespace := rows[i].Labels.Get("namespace")
		if namespace != "" && (len(wanted) == 0 || wanted[namespace]) {
			found[namespace] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// visibleRows are those of the namespaces, of the devices which these use, with
// the whole devices of partitions, and those that are about neither. Never nil.
func visibleRows(rows []metric.Row, namespaces map[string]bool) []metric.Row {
	devices := make(map[string]bool)
	for i := range rows {
		if labels := rows[i].Labels; namespaces[labels.Get("namespace")] {
			devices[labels.Get("uuid")] = true
		}
	}
	for i := range rows {
		if labels := rows[i].Labels; devices[labels.Get("uuid")] {
			devices[labels.Get("parent_uuid")] = true
		}
	}
	delete(devices, "")
	kept := make([]metric.Row, 0, len(rows))
	for i := range rows {
		namespace, uuid := rows[i].Labels.Get("namespace"), rows[i].Labels.Get("uuid")
		if (namespace == "" || namespaces[namespace]) && (uuid == "" || devices[uuid]) {
			kept = append(kept, rows[i])
		}
	}
	return kept
}

// refuse answers a reader who may not see a page, as text.
func refuse(w http.ResponseWriter, log *slog.Logger, err error) {
	status, message := refusal(log, err)
	http.Error(w, message, status)
}

func refusal(log *slog.Logger, err error) (status int, message string) {
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return refused.Status, refused.Message
	}
	log.Warn("cannot find out what the reader of a page may see", "error", err.Error())
	return http.StatusServiceUnavailable, "it cannot be found out what you may see"
}

package page

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// Config configures what a page shows, and to which readers.
type Config struct {
	Node        string              // shown until a row has it
	MetricsPath string              // where the page's link to the metrics leads
	Rows        func() []metric.Row // those of the newest snapshot; nil before the first
	Now         func() time.Time    // the wall clock

	// Messages returns messages for people, by source: what has failed and what to do.
	// Rows have none. It may be nil.
	Messages func() map[string]string

	// KubeletMessages returns why the kubelet reports devices as unhealthy, by UUID.
	// Rows have no such text. It may be nil.
	KubeletMessages func() map[string]string

	// PendingEvidence returns what is known of the pending references of a pod, by their
	// names in the pod, besides what rows have. It may be nil.
	PendingEvidence func(namespace, pod string) map[string]PendingEvidence

	// Explain is the command that explains why claims are pending, up to the kind of
	// object. Empty: none works where the cluster's page is read.
	Explain string

	// History has the utilization of the last hour, of a node. It may be nil.
	History *History

	// Links are where the pages lead outside of the exporter.
	Links Links

	// Visible limits what each reader sees to their namespaces. Nil: all
	// readers see everything.
	Visible Visible
	Log     *slog.Logger
}

// PendingEvidence is why a reference is pending, in a sentence, and the node that its pod
// or its claim is bound to. What is unknown is empty.
type PendingEvidence struct{ Message, Node string }

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

// visibleTo returns what the reader of the request may see: the rows, nil before the
// first snapshot, and whether these are all. Then messages are for the reader as well,
// which may name objects of any namespace.
func (c *Config) visibleTo(r *http.Request) (rows []metric.Row, all bool, err error) {
	rows = c.Rows()
	if c.Visible == nil || rows == nil {
		return rows, true, nil
	}
	visible, all, err := c.Visible(r, namespacesIn(rows, namespacesOf(r)))
	if err != nil || all {
		return rows, true, err
	}
	return visibleRows(rows, visible), false, nil
}

// namespacesIn returns the sorted namespaces of the rows; if wanted is not
// empty, only those in it.
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

// visibleRows returns the rows of the namespaces, of the devices that these use, with
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

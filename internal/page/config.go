package page

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Config configures what a page shows, and to which readers.
type Config struct {
	Node        string                // shown until a snapshot has it
	MetricsPath string                // where the page's link to the metrics leads
	Model       func() *model.Node    // of a node: the newest; nil before the first
	Cluster     func() *model.Cluster // of a cluster: likewise
	Now         func() time.Time      // the wall clock

	// Messages returns messages for people, by source: what has failed and what to do.
	// It may be nil.
	Messages func() map[string]string

	// Explanation explains a pod or a claim of the cluster. Its error may be a *Refusal,
	// whose message is shown with its status; another one is shown beside what the model says.
	// It may be nil.
	Explanation func(ctx context.Context, object ExplainedObject) (*Explanation, error)

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

// ExplainedObject names an object to explain. Kind is pod or claim; NamespaceOnly means that the
// reader may not see all namespaces, so that no object of another one must be named.
type ExplainedObject struct {
	Kind, Namespace, Name string
	NamespaceOnly         bool
}

// Explanation is what the command explain says about an object.
type Explanation struct {
	Pending    bool // the object, or a pod that uses it, is pending
	Conclusion string
	Evidence   []words.Fact // the most important first
	Remedies   []string     // the most useful first; commands are between backquotes
	Events     []string
	Report     string // all of it, as explain -v prints it
}

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

// mayExplain reports whether the reader of the request may see objects of the namespace,
// and whether of that one alone.
func (c *Config) mayExplain(r *http.Request, namespace string) (namespaceOnly, allowed bool, err error) {
	if c.Visible == nil {
		return false, true, nil
	}
	visible, all, err := c.Visible(r, []string{namespace})
	return !all, all || visible[namespace], err
}

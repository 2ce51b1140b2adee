package apiserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// hiddenClaims are those that were made from a template and that only init
// containers use: neither the kubelet's pods nor its PodResources name them. A
// list of the claims of their namespace does; it is asked for when such a pod
// appears, and again, ever later, while its claim is not found.
type hiddenClaims struct {
	agenda *agenda[string] // of namespaces
	pods   map[string]map[types.UID]bool
	tries  map[string]int
	failed map[string]error // of the last lists
}

func newHiddenClaims() *hiddenClaims {
	return &hiddenClaims{
		agenda: newAgenda(func(string) bool { return false }),
		pods:   make(map[string]map[types.UID]bool), tries: make(map[string]int), failed: make(map[string]error),
	}
}

// want says which pods of one name in a namespace had hidden claims, and have
// them now.
func (h *hiddenClaims) want(now clock.Instant, namespace string, before, after []types.UID) {
	for _, uid := range after {
		if h.pods[namespace] == nil {
			h.pods[namespace] = make(map[types.UID]bool)
		}
		if !h.pods[namespace][uid] {
			h.pods[namespace][uid] = true
			h.tries[namespace] = 0
			h.agenda.set(namespace, now.Elapsed)
		}
	}
	for _, uid := range before {
		if !slices.Contains(after, uid) {
			delete(h.pods[namespace], uid)
		}
	}
	if pods, known := h.pods[namespace]; known && len(pods) == 0 {
		delete(h.pods, namespace)
		delete(h.tries, namespace)
		delete(h.failed, namespace)
		h.agenda.drop(namespace)
	}
}

// listed notes how a list of a namespace's claims went. It is asked for again:
// where it has told all, nobody wants it any more.
func (h *hiddenClaims) listed(now clock.Instant, namespace string, err error) {
	wait := farPoolRefresh
	if tries := h.tries[namespace]; tries < 7 {
		wait = farPoolFirstRetry << tries
	}
	h.tries[namespace]++
	h.agenda.set(namespace, now.Elapsed+wait+spread(wait/5))
	delete(h.failed, namespace)
	if err != nil {
		h.failed[namespace] = failure(fmt.Errorf("find claims that only init containers use: %w", err))
	}
}

// hurry brings lists forward that failed while the API server was away.
func (h *hiddenClaims) hurry(now clock.Instant) {
	for namespace := range h.failed {
		h.tries[namespace] = 0
		h.agenda.bring(namespace, now.Elapsed+spread(startSpread))
	}
}

// hiddenFailure is, under the lock, that of one of the last lists; nil if all
// went well.
func (n *Node) hiddenFailure() error {
	if n.fed == nil {
		return nil
	}
	for _, err := range n.fed.hidden.failed {
		return err
	}
	return nil
}

// hides are, under the lock, the pods of a name that have hidden claims.
func (f *PodFeed) hides(name objectName) []types.UID {
	var hiding []types.UID
	for uid, pod := range f.names[name] {
		if pod.hides() {
			hiding = append(hiding, uid)
		}
	}
	return hiding
}

// hides reports whether the pod has a claim that is not known, and that no
// container uses which PodResources list.
func (p *fedPod) hides() bool {
	for _, reference := range p.light.Spec.ResourceClaims {
		_, known := p.learned.names[reference.Name]
		if !known && reference.ResourceClaimName == nil && len(usersOf(p.light, reference.Name)) == 0 {
			return true
		}
	}
	return false
}

// nextHidden hands out the list of the namespace that is due.
func (n *Node) nextHidden() (read func(context.Context), wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	namespace, taken, wait := n.fed.hidden.agenda.begin(n.now())
	if taken == nil {
		return nil, wait
	}
	return func(ctx context.Context) { n.readHidden(ctx, namespace, taken) }, 0
}

func (n *Node) readHidden(ctx context.Context, namespace string, taken *appointment) {
	err := n.listClaims(ctx, namespace)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fed.hidden.agenda.done(namespace, taken) && ctx.Err() == nil {
		n.fed.hidden.listed(n.now(), namespace, err)
		n.tellClaims(false)
	}
}

// listClaims has the feed learn from all claims of a namespace, some at a time.
func (n *Node) listClaims(ctx context.Context, namespace string) error {
	from := place{group: n.client.resource, namespace: namespace, resource: "resourceclaims"}
	options := metav1.ListOptions{Limit: pageObjects}
	for {
		list := &resourcev1.ResourceClaimList{}
		if err := n.client.list(ctx, from, options, list); err != nil {
			return err
		}
		n.mu.Lock()
		for i := range list.Items {
			n.fed.learn(&list.Items[i])
		}
		n.mu.Unlock()
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

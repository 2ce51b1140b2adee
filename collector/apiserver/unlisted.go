package apiserver

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// unlistedClaims are those that were made from a template and that only init
// containers use: neither the pods of the kubelet nor its PodResources have their
// names. A list of the claims of their namespace has; it is read when such a pod
// appears, and again, with growing delays, while its claim is not found. It is
// not safe for concurrent use.
type unlistedClaims struct {
	queue  *workqueue[string] // of namespaces
	pods   map[string]map[types.UID]bool
	tries  map[string]int
	failed map[string]error // of the last lists
}

func newUnlistedClaims() *unlistedClaims {
	return &unlistedClaims{
		queue: newWorkqueue(func(string) bool { return false }),
		pods:  make(map[string]map[types.UID]bool), tries: make(map[string]int), failed: make(map[string]error),
	}
}

// want sets which pods of one name in a namespace had unlisted claims, and have
// them now.
func (u *unlistedClaims) want(now clock.Instant, namespace string, previous, updated []types.UID) {
	for _, uid := range updated {
		if u.pods[namespace] == nil {
			u.pods[namespace] = make(map[types.UID]bool)
		}
		if !u.pods[namespace][uid] {
			u.pods[namespace][uid] = true
			u.tries[namespace] = 0
			u.queue.set(namespace, now.Elapsed)
		}
	}
	for _, uid := range previous {
		if !slices.Contains(updated, uid) {
			delete(u.pods[namespace], uid)
		}
	}
	if pods, ok := u.pods[namespace]; ok && len(pods) == 0 {
		delete(u.pods, namespace)
		delete(u.tries, namespace)
		delete(u.failed, namespace)
		u.queue.remove(namespace)
	}
}

// listed records the outcome of a list of a namespace's claims. The list is
// repeated: if it had all the claims, the namespace is not wanted any more.
func (u *unlistedClaims) listed(now clock.Instant, namespace string, err error) {
	u.queue.set(namespace, now.Elapsed+growingRefresh(u.tries[namespace], watch.Jitter))
	u.tries[namespace]++
	delete(u.failed, namespace)
	if err != nil {
		u.failed[namespace] = watch.Failure(fmt.Errorf("find claims that only init containers use: %w", err))
	}
}

// retryFailed advances lists that failed while the API server was not reachable.
func (u *unlistedClaims) retryFailed(now clock.Instant) {
	for namespace := range u.failed {
		u.tries[namespace] = 0
		u.queue.advance(namespace, now.Elapsed+watch.Jitter(outageSpread))
	}
}

// tried reports whether every namespace has been listed since its newest pod with
// unlisted claims appeared, or could not be.
func (u *unlistedClaims) tried() bool {
	for namespace := range u.pods {
		if u.tries[namespace] == 0 && u.failed[namespace] == nil {
			return false
		}
	}
	return true
}

// failure is that of one of the last lists; nil: none failed.
func (u *unlistedClaims) failure() error {
	for _, err := range u.failed {
		return err
	}
	return nil
}

package apiserver

import (
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

func TestOutageOfAPIServer(t *testing.T) {
	c := startNodeTest(t, nil, podWithClaim("one", "pod-1", "gpu"), claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"), publish("s", "node-a", "node-a", 1, 1, "gpu-3"))
	known := c.until("all is known", func(f NodeFacts) bool {
		return f.PodsFresh && f.SlicesFresh && len(f.Claims) == 1 && len(f.Published) == 1
	})
	c.server.Stop()
	stale := c.until("pods and slices are stale", func(f NodeFacts) bool { return !f.PodsFresh && !f.SlicesFresh })
	if !reflect.DeepEqual([]any{stale.Pods, stale.Claims, stale.Published}, []any{known.Pods, known.Claims, known.Published}) {
		t.Errorf("what was known is lost: %+v", stale)
	}
	if status := c.status("pods"); status.Up || status.Reason != source.ReasonUnavailable {
		t.Errorf("the source is %+v", status)
	}
	c.put(podWithClaim("two", "pod-2", "other"), claim("other", "claim-2", "node-a", "gpu-4", "pod-2"))
	c.delete(podWithClaim("one", "", ""))
	if err := c.server.Restart(); err != nil {
		t.Fatal(err)
	}
	fresh := c.until("the pods are fresh and new", pods("two"))
	if len(fresh.Unread) != 1 && !hasClaim("claim-2")(fresh) {
		t.Errorf("the pods are fresh, and of the new pod's claim is not said that it is unread: %+v", fresh)
	}
	c.until("the new pod's claim is known", func(f NodeFacts) bool { return len(f.Claims) == 1 && f.Claims[0].UID == "claim-2" })
	c.until("the slices are fresh", func(f NodeFacts) bool { return f.SlicesFresh })
	if status := c.status("pods"); !status.Up || c.logged("is down", "=pods") != 1 || c.logged("is up again", "=pods") != 1 {
		t.Errorf("the source is %+v, logged %s", status, c.log.String())
	}
}

func TestEndedWatchesAreNoFailures(t *testing.T) {
	for name, end := range map[string]func(*nodeTest){
		"their time is over":           func(c *nodeTest) { c.server.EndWatches() },
		"the version became too old":   func(c *nodeTest) { c.server.Expire(); c.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}) },
		"over, and the version is old": func(c *nodeTest) { c.server.Expire(); c.server.EndWatches() },
	} {
		t.Run(name, func(t *testing.T) {
			c := startNodeTest(t, nil, podWithClaim("one", "pod-1", "gpu"))
			c.until("the pod is known", pods("one"))
			// A watch shorter than a second without events counts as broken.
			time.Sleep(1100 * time.Millisecond)
			end(c)
			c.until("the pods are watched again", func(NodeFacts) bool { return c.requestCount("watch pods") > 1 })
			c.put(podWithClaim("two", "pod-2", "gpu"))
			for done := false; !done; {
				facts := c.until("any", func(NodeFacts) bool { return true })
				if done = podNames(facts) == "one two"; !facts.PodsFresh {
					t.Fatal("the pods went stale")
				}
			}
			if status := c.status("pods"); status.Errors != 0 || !status.Up {
				t.Errorf("held against the source: %+v", status)
			}
		})
	}
}

func TestRefusalAffectsOneCollection(t *testing.T) {
	objects := []simulated.Object{
		podWithClaim("one", "pod-1", "gpu"), claim("gpu", "claim-1", "node-a", "gpu-3", "pod-1"), publish("s", "node-a", "node-a", 1, 1, "gpu-3"),
	}
	for _, resource := range []string{"pods", "resourceclaims", "resourceslices"} {
		t.Run(resource, func(t *testing.T) {
			c := startNodeTest(t, map[string]int{resource: http.StatusForbidden}, objects...)
			c.until("the others are known", func(f NodeFacts) bool {
				return (resource == "pods" || f.PodsFresh && len(f.Pods) == 1) &&
					(resource == "resourceslices" || f.SlicesFresh && len(f.Published) == 1) &&
					(resource != "resourceslices" || len(f.Claims) == 1) &&
					c.status(resource).Reason == source.ReasonPermission
			})
			facts := c.node.Latest()
			if facts.PodsFresh != (resource != "pods") || facts.SlicesFresh != (resource != "resourceslices") || c.status(resource).Up {
				t.Errorf("facts %+v, sources %+v", facts, c.node.Statuses())
			}
			if n := c.logged("=" + resource); n != 1 {
				t.Errorf("logged %d times", n)
			}
		})
	}
}

func TestReportsOldAPIServer(t *testing.T) {
	c := startNodeTest(t, map[string]int{"resourceslices": http.StatusNotFound}, podWithClaim("one", "pod-1", "gpu"))
	c.until("the API is known to be missing", func(NodeFacts) bool { return c.status("resourceslices").Reason == source.ReasonUnsupported })
	c.until("the pods are known all the same", pods("one"))
	if n := c.logged("Kubernetes 1.34 or newer"); n != 1 {
		t.Errorf("said %d times: %s", n, c.log.String())
	}
	time.Sleep(2 * time.Second)
	if n := c.requestCount("list resourceslices"); n > 2 {
		t.Errorf("asked %d times in two seconds, want once more at most", n)
	}
}

func TestStopsWithoutAnswers(t *testing.T) {
	c := startNodeTest(t, nil, podWithClaim("one", "pod-1", "gpu"))
	c.until("the pod is known", pods("one"))
	c.server.Stop()
	c.until("the pods are stale", func(f NodeFacts) bool { return !f.PodsFresh })
	ended := make(chan struct{})
	go func() { c.stop(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("the node does not end")
	}
}

func TestRequiredOptions(t *testing.T) {
	for name, spoil := range map[string]func(*Options){
		"configuration": func(o *Options) { o.Config = nil },
		"node":          func(o *Options) { o.Node = "" },
		"logger":        func(o *Options) { o.Log = nil },
		"clock":         func(o *Options) { o.Clock = nil },
	} {
		options := Options{Config: &rest.Config{}, Node: "node-a", Log: slog.New(slog.DiscardHandler), Clock: clock.System()}
		if _, err := New(options); err != nil {
			t.Fatal(err)
		}
		spoil(&options)
		if _, err := New(options); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

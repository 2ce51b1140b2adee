package apiserver

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// podWithInitClaim returns a pod with a claim that only its init container
// uses.
func podWithInitClaim(name, uid, claim string) *corev1.Pod {
	pod := ofTemplate(podWithClaim(name, uid, ""), "gpu", claim)
	pod.Spec.InitContainers, pod.Spec.Containers = pod.Spec.Containers, []corev1.Container{{Name: "other"}}
	return pod
}

// TestListsClaimsInPages: a namespace may have very many.
func TestListsClaimsInPages(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims" {
			http.Error(w, "not here", http.StatusServiceUnavailable)
			return
		}
		page := resourcev1.ResourceClaimList{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimList"}}
		page.ResourceVersion = "7"
		if from := r.URL.Query().Get("continue"); from == "" {
			page.Continue = "second"
			page.Items = append(page.Items, *claim("another", "claim-2", "", ""))
		} else {
			page.Items = append(page.Items, *ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
		}
		mu.Lock()
		asked = append(asked, r.URL.Query().Get("limit")+" "+r.URL.Query().Get("continue"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page) // the client sees what is missing
	}))
	t.Cleanup(server.Close)
	n, err := New(Options{Config: &rest.Config{Host: server.URL}, Node: "node-a", Clock: clock.System(), PodsFed: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	pod := podWithInitClaim("train", "pod-1", "")
	pod.Status.ResourceClaimStatuses = nil
	n.PodFeed().Pod(pod)
	read, _ := n.nextUnlisted()
	if read == nil {
		t.Fatal("no list is due")
	}
	read(t.Context())
	if facts := n.Latest(); len(facts.Pods) != 1 || facts.Pods[0].Claims[0].Claim != "train-gpu-x7xvp" {
		t.Errorf("pods %+v", facts.Pods)
	}
	if !slices.Equal(asked, []string{"500 ", "500 second"}) {
		t.Errorf("asked %q", asked)
	}
}

// TestListsClaimsAfterOutage does not wait for the next try.
func TestListsClaimsAfterOutage(t *testing.T) {
	w := startNodePair(t)
	w.refuse("resourceclaims ", http.StatusServiceUnavailable)
	w.createClaims(ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu"))
	w.run(podWithInitClaim("train", "pod-1", "train-gpu-x7xvp"))
	w.until("the list has failed", func(NodeFacts) bool {
		w.fed.mu.Lock()
		defer w.fed.mu.Unlock()
		if len(w.fed.feed.unlisted.failed) == 0 {
			return false
		}
		w.fed.feed.unlisted.queue.set("lab", w.fed.now().Elapsed+time.Hour)
		return true
	})
	w.server.Stop()
	w.until("the slices are stale", func(NodeFacts) bool { return !w.fed.Latest().SlicesFresh })
	w.refuse("resourceclaims ", 0)
	if err := w.server.Restart(); err != nil {
		t.Fatal(err)
	}
	w.untilEqual("the claim is known")
}

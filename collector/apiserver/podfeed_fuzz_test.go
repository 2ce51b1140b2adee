package apiserver

import (
	"fmt"
	"log/slog"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// FuzzPodFeed feeds arbitrary pods, listings and claims in any order. The facts
// are valid UTF-8, with one pod of each name, and empty once all pods have
// terminated.
func FuzzPodFeed(f *testing.F) {
	pod := ofTemplate(podWithClaim("train", "pod-1", ""), "gpu", "train-gpu-x7xvp")
	made := ownedBy(claim("train-gpu-x7xvp", "claim-1", "node-a", "gpu-3", "pod-1"), "Pod", "train", "pod-1", "gpu")
	podBytes, podErr := pod.Marshal()
	claimBytes, claimErr := made.Marshal()
	special, specialErr := podWithPlugin("train", "pod-2").Marshal()
	if podErr != nil || claimErr != nil || specialErr != nil {
		f.Fatal(podErr, claimErr, specialErr)
	}
	f.Add(podBytes, special, claimBytes, "train-gpu-x7xvp", "main", []byte{0, 1, 2, 3, 4, 0, 5})
	f.Add(special, podBytes, claimBytes, "train-extended-resources-1", "\xff", []byte{4, 0, 2, 1, 3, 0, 5})
	options := Options{
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, Node: "node-a", Clock: clock.System(), PodsFed: true,
		Log: slog.New(slog.DiscardHandler), PodLabels: []string{"team"},
	}
	connection, err := watch.NewClient(options.Config, Limits{}) // building its scheme takes longer than all the rest
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, first, second, claimed []byte, name, container string, steps []byte) {
		pods := []*corev1.Pod{{}, {}}
		made := &resourcev1.ResourceClaim{}
		if pods[0].Unmarshal(first) != nil || pods[1].Unmarshal(second) != nil || made.Unmarshal(claimed) != nil {
			return
		}
		n := newNodeWatch(options, connection)
		feed := n.PodFeed()
		for _, step := range steps[:min(len(steps), 16)] {
			pod := pods[step>>4&1]
			switch step & 7 {
			case 0:
				feed.Pod(pod)
			case 1:
				feed.Begin()
			case 2:
				feed.Listed([]dra.Assignment{{Pod: podRef(pod), Container: container, Claim: dra.ClaimRef{Namespace: pod.Namespace, Name: name}}})
			case 3:
				n.mu.Lock()
				feed.learn(made)
				n.mu.Unlock()
			case 4:
				feed.Synced()
			case 5:
				feed.Ended(string(pod.UID))
			}
			facts := n.Latest()
			if text := fmt.Sprintf("%+v", facts); !utf8.ValidString(text) {
				t.Errorf("facts are not UTF-8: %q", text)
			}
			named := map[dra.PodRef]bool{}
			for _, pod := range append(facts.Pods, facts.PluginPods...) {
				if named[pod.Ref] {
					t.Errorf("two pods are called %s", pod.Ref)
				}
				named[pod.Ref] = true
			}
		}
		feed.Begin()
		feed.Synced()
		if facts := n.Latest(); len(facts.Pods)+len(facts.PluginPods)+len(facts.Unread) > 0 {
			t.Errorf("all have ended, and there are %+v", facts)
		}
	})
}

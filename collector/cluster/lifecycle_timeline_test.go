package cluster

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// TestTimelines replays events that the watches of a real cluster delivered,
// with their times in milliseconds.
func TestTimelines(t *testing.T) {
	for name, want := range map[string][]string{
		"a-exclusive":    {"allocation gpu 17ms", "scheduling gpu 4ms", "preparation gpu 456ms", "start gpu 117ms", "ready gpu 594ms"},
		"o-force-delete": {"allocation gpu 16ms", "scheduling gpu 3ms", "preparation gpu 441ms", "start gpu 105ms", "ready gpu 565ms"},
		"j-completes":    {"allocation gpu 15ms", "scheduling gpu 6ms", "preparation gpu 466ms", "start gpu 127ms", "ready gpu 614ms"},
		// The first container is an init container; these lines omit its state.
		// The pod of init-only is not in them.
		"j-init-sidecar": {"allocation gpu 25ms", "allocation gpu 28ms", "scheduling gpu 3ms", "preparation gpu 454ms", "start gpu 6.517s", "ready gpu 7.006s"},
		// The scheduler checks binding conditions every five seconds.
		"k-binding":     {"allocation gpu 15ms", "binding gpu 25.56s", "scheduling gpu 4.462s", "preparation gpu 608ms", "start gpu 240ms", "ready gpu 30.885s"},
		"l-taint-evict": nil, // ran before the watch began
	} {
		t.Run(name, func(t *testing.T) {
			s := replay(t, "testdata/timelines/"+name+".txt")
			s.expectObserved(want...)
			for i := range s.traced {
				s.checkSpans(&s.traced[i], len(s.claims) == 1)
			}
			for _, phase := range s.state.lifecycle.contradictions {
				if phase.Count != 0 {
					t.Errorf("%v anomalies of clocks in %s", phase.Count, phase.Name)
				}
			}
		})
	}
}

// replay delivers the lines of a timeline to a reducer, each in a step of its
// own.
func replay(t *testing.T, path string) *testCluster {
	file, err := os.Open(path)
	if err != nil {
		t.Fatalf("open a timeline: %v", err)
	}
	defer file.Close()
	s := newTestCluster(t)
	s.nodes["node-a"] = &dra.Node{Name: "node-a", SandboxPrompt: true}
	s.deliver(Change{Node: s.nodes["node-a"]})
	var began time.Time
	for lines := bufio.NewScanner(file); lines.Scan(); {
		at, rest, _ := strings.Cut(lines.Text(), " ")
		wall, err := time.Parse("2006-01-02 15:04:05.000", "2026-11-20 "+at)
		if err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if began.IsZero() {
			began = wall
		}
		s.now = clock.Instant{Wall: wall, Elapsed: time.Minute + wall.Sub(began)}
		change := Change{Live: wall.After(began), Gone: strings.Contains(rest, " DELETED ")}
		switch {
		case strings.Contains(rest, "ms claim "):
			change.Claim = s.claimLine(rest)
		case strings.Contains(rest, "ms pod "):
			change.Pod = s.podLine(rest)
		default:
			continue
		}
		s.deliver(change)
	}
	return s
}

func (s *testCluster) claimLine(line string) *dra.ClaimLifecycle {
	name := field(line, `claim [A-Z]+ (\S+)`)
	claim := dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "ns", Name: name}, UID: name, Classes: []string{"gpu"}, Created: s.stamp("server")}
	if before, known := s.claims[name]; known {
		claim.Created = before.Created
	}
	claim.Allocated = !strings.Contains(line, "allocated=none")
	if claim.Allocated {
		claim.AllocatedAt, _ = time.Parse(time.RFC3339, field(line, `allocationTimestamp=(\S+)`))
		claim.Results = []dra.AllocatedDevice{{Request: "r", Class: "gpu", Device: dra.DeviceID{Name: field(line, `allocated=(\S+)`)}}}
	}
	if strings.Contains(line, "allocated=bind.example.com") {
		// The second of these lines is when the conditions were written.
		claim.Binding = dra.BindingWaiting
		if before := s.claims[name]; before.Allocated {
			claim.Binding = dra.BindingDone
		}
	}
	if pod := field(line, `reservedFor=\[pods/([^\]]+)\]`); pod != "" {
		claim.ReservedFor = []dra.Consumer{{Resource: "pods", Name: pod, UID: pod}}
	}
	s.claims[name] = &claim
	return &claim
}

// podLine decodes a pod. Its name is the prefix of its claims' names, as in
// their reservation.
func (s *testCluster) podLine(line string) *dra.PodLifecycle {
	name := map[bool]string{true: "init-sidecar", false: ""}[strings.Contains(s.t.Name(), "j-init")]
	for short, pod := range map[string]string{"a-excl": "train", "j-comp": "completes", "k-bind": "binder", "l-taint": "train", "o-force": "victim"} {
		if strings.Contains(s.t.Name(), short) {
			name = pod
		}
	}
	pod := dra.PodLifecycle{Ref: dra.PodRef{Namespace: "ns", Name: name}, UID: name, Created: s.stamp("server")}
	if before, known := s.pods[name]; known {
		pod.Created, pod.Scheduled, pod.Started = before.Created, before.Scheduled, before.Started
	}
	if claims := field(line, `claims=\[([^\]]*)\]`); claims != "" {
		for _, each := range strings.Fields(claims) {
			ref, claim, _ := strings.Cut(each, "=")
			pod.Claims = append(pod.Claims, dra.PodClaim{Name: ref, Template: "template", Claim: claim})
		}
	}
	pod.Node = field(line, `node="([^"]*)"`)
	if pod.Node != "" && pod.Scheduled.IsZero() {
		pod.Scheduled = s.stamp("server")
	}
	if strings.Contains(line, "PodReadyToStartContainers=True") {
		pod.Sandbox = s.stamp("kubelet")
	}
	if pod.Started.IsZero() && (strings.Contains(line, ":running") || strings.Contains(line, ":terminated")) {
		pod.Started = s.stamp("kubelet")
	}
	pod.Terminal = strings.Contains(line, "phase=Succeeded")
	s.pods[name] = &pod
	return &pod
}

func field(line, pattern string) string {
	if found := regexp.MustCompile(pattern).FindStringSubmatch(line); found != nil {
		return found[1]
	}
	return ""
}

// The trace of events of a real scheduler, driver and kubelet.
func TestTraceOfTimeline(t *testing.T) {
	t.Run("k-binding", func(t *testing.T) {
		s := replay(t, "testdata/timelines/k-binding.txt")
		s.began.Wall = time.Date(2026, 11, 20, 9, 38, 0, 0, time.UTC)
		s.expectTraces(`
			binder-gpu-xj5wc of binder, class gpu, on node-a
			- ready 21.3 to 52.185
			- allocation 21.3 to 21.315
			- binding 21.315 to 46.875
			! 21.315 pending binding_conditions: allocated; the binding conditions of its devices are not all true yet
			- scheduling 46.875 to 51.337
			- preparation 51.337 to 51.945
			- start 51.945 to 52.185`)
	})
}

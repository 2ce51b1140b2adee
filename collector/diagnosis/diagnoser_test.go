package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// running runs the diagnoser until the test ends.
func running(t *testing.T, diagnoser *Diagnoser) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- diagnoser.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ends with %v", err)
		}
	})
}

// await waits until the diagnoses are as expected.
func await(t *testing.T, diagnoser *Diagnoser, what string, ok func([]dra.Diagnosis) bool) []dra.Diagnosis {
	t.Helper()
	limit := time.After(time.Minute)
	for {
		if diagnoses := diagnoser.Diagnoses(); ok(diagnoses) {
			return diagnoses
		}
		select {
		case <-diagnoser.Changed():
		case <-limit:
			t.Fatalf("not seen: %s; diagnoses are %+v", what, diagnoser.Diagnoses())
		}
	}
}

func reasons(diagnoses []dra.Diagnosis) string {
	text := ""
	for _, v := range diagnoses {
		text += fmt.Sprintf("%s=%s ", v.PodClaim, v.Reason)
	}
	return text
}

func questionOf(pod string, claims ...string) dra.Question {
	q := question(claims...)
	q.Pod.Name, q.PodUID = pod, "uid-of-"+pod
	return q
}

// Questions have diagnoses, which follow the inventory and are removed with
// their question.
func TestRunAnswersQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.claim("a", spec(deviceRequest("main", 1)))
		w.claim("b", spec(deviceRequest("main", 2)))
		diagnoser := w.diagnoser()
		running(t, diagnoser)
		diagnoser.SetQuestions([]dra.Question{questionOf("p1", "a"), questionOf("p2", "b")})
		await(t, diagnoser, "nothing published", func(v []dra.Diagnosis) bool {
			return reasons(v) == "a=no_matching_device b=no_matching_device "
		})
		w.pool("d", "n1", devicesNamed(1)...)
		diagnoses := await(t, diagnoser, "one device", func(v []dra.Diagnosis) bool { return reasons(v) == "a= b=insufficient_devices " })
		if v := diagnoses[1]; v.Pod.Name != "p2" || v.PodUID != "uid-of-p2" || v.Version == 0 || len(v.Requests) != 1 || v.Detail != nil {
			t.Errorf("diagnosis %+v", v)
		}
		w.pool("d2", "n1", devicesNamed(1)...) // of another driver: affects no claim
		diagnoser.SetQuestions([]dra.Question{questionOf("p2", "b")})
		await(t, diagnoser, "p1 is not asked about any more", func(v []dra.Diagnosis) bool { return reasons(v) == "b=insufficient_devices " })
		w.hold("holder", "n1")
		diagnoser.SetQuestions([]dra.Question{questionOf("p2", "holder", "b")})
		await(t, diagnoser, "a claim that is allocated", func(v []dra.Diagnosis) bool { return reasons(v) == "holder= b=insufficient_devices " })
		diagnoser.SetQuestions(nil)
		await(t, diagnoser, "nothing is asked", func(v []dra.Diagnosis) bool { return len(v) == 0 })
	})
}

func (q *queue) diagnoses() []dra.Diagnosis {
	diagnoses, _ := q.exchange.published()
	return diagnoses
}

// expireRefresh makes the queue take new questions though it is not empty.
func (q *queue) expireRefresh() { q.refreshed = clock.Instant{Elapsed: -time.Hour} }

// drain gives turns until there is nothing to do, or the limit is reached, and
// returns how many diagnoses came to their end.
func (q *queue) drain(t *testing.T, limit int) int {
	t.Helper()
	before := q.turn
	for q.turn-before < uint64(limit) {
		worked, err := q.work(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !worked {
			break
		}
	}
	return int(q.turn - before)
}

// If what a pod requests changes, its diagnosis stays until there is another.
func TestDiagnosesStayUntilReplaced(t *testing.T) {
	w := newTestCluster(t)
	w.class("gpu")
	w.claim("a", spec(deviceRequest("main", 1)))
	diagnoser := w.diagnoser()
	d := diagnoser.newQueue()
	defer d.stop()
	diagnoser.SetQuestions([]dra.Question{questionOf("p", "a")})
	d.refresh()
	d.drain(t, 1)
	d.publish()
	w.claim("a", spec(deviceRequest("main", 7)))
	diagnoser.SetQuestions([]dra.Question{questionOf("p", "a", "b")})
	d.refresh()
	d.publish()
	if got := reasons(diagnoser.Diagnoses()); got != "a=no_matching_device " {
		t.Errorf("before it is diagnosed again: %q", got)
	}
	diagnoser.SetQuestions([]dra.Question{questionOf("p", "b")})
	d.expireRefresh()
	d.refresh()
	d.publish()
	if got := reasons(diagnoser.Diagnoses()); got != "" {
		t.Errorf("a reference that is not asked about any more has diagnoses: %q", got)
	}
}

// Pods with the same requests share one diagnosis; diagnoses have the pod's own
// names.
func TestPodsShareDiagnoses(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	w.pool("d", "n1", devicesNamed(2, "model", "x")...)
	w.pool("d", "n2", devicesNamed(1)...)
	w.node("n2", nil)
	var questions []dra.Question
	for i := range 100 {
		name := fmt.Sprintf("c%d", i)
		w.claim(name, spec(deviceRequest("main", 2, `device.attributes["d"].model == "x"`)))
		questions = append(questions, questionOf("pod-"+name, name))
	}
	diagnoser := w.diagnoser()
	d := diagnoser.newQueue()
	defer d.stop()
	diagnoser.SetQuestions(questions)
	d.refresh()
	if len(d.items) != 1 {
		t.Fatalf("%d items for one specification", len(d.items))
	}
	d.drain(t, 1)
	d.publish()
	diagnoses := diagnoser.Diagnoses()
	if len(diagnoses) != 100 {
		t.Fatalf("%d diagnoses", len(diagnoses))
	}
	want := "the scheduler stops at node n2: claim c42: selector #0 on device d/n2/dev-0: CEL runtime error: no such key: model"
	if got := diagnoses[42].Message; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("message %q, want it to begin %q", got, want)
	}
}

// A pod is diagnosed again only after a change that may affect it.
func TestDiagnosesAgainOnlyWhatIsAffected(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	w.class("net", `device.driver == "net"`)
	w.pool("d", "n1", devicesNamed(1)...)
	w.pool("net", "n1", devicesNamed(2)...)
	w.claim("a", spec(deviceRequest("main", 1)))
	diagnoser := w.diagnoser()
	d := diagnoser.newQueue()
	defer d.stop()
	again := func() int {
		t.Helper()
		diagnoser.SetQuestions([]dra.Question{questionOf("p", "a")})
		d.refresh()
		return d.drain(t, 100)
	}
	if n := again(); n != 1 {
		t.Fatalf("%d items at first", n)
	}
	net := spec(deviceRequest("main", 1))
	net.Devices.Requests[0].Exactly.DeviceClassName = "net"
	if !w.allocate(w.claim("other", net), "n1") {
		t.Fatal("a device of another class cannot be allocated")
	}
	if n := again(); n != 0 {
		t.Errorf("a device of another class is held, and it is diagnosed again")
	}
	w.hold("holder", "n1")
	if n := again(); n != 1 {
		t.Errorf("a device that it could have is held, and it is not diagnosed again")
	}
	if got := again(); got != 0 {
		t.Errorf("nothing has changed, and it is diagnosed again")
	}
}

// Changed receives nothing after changes that affect no diagnosis. A pod that is
// added with the same requests has a diagnosis at once.
func TestPublishesOnlyChanges(t *testing.T) {
	w := newTestCluster(t)
	w.class("gpu", `device.driver == "d"`)
	w.claim("a", spec(deviceRequest("main", 1)))
	diagnoser := w.diagnoser()
	d := diagnoser.newQueue()
	defer d.stop()
	published := func() bool {
		t.Helper()
		d.refresh()
		d.drain(t, 100)
		d.publish()
		select {
		case <-diagnoser.Changed():
			return true
		default:
			return false
		}
	}
	ghost := func(devices ...string) {
		claim := &resourcev1.ResourceClaim{}
		claim.Status.Allocation = &resourcev1.AllocationResult{}
		for _, device := range devices {
			claim.Status.Allocation.Devices.Results = append(claim.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Driver: "net", Pool: "n1", Device: device})
		}
		w.inventory.ApplyClaim(testNamespace, "ghost", claim)
	}
	ghost("x")
	diagnoser.SetQuestions([]dra.Question{questionOf("p", "a")})
	if !published() {
		t.Error("a first diagnosis is not published")
	}
	ghost("x", "y")
	if published() {
		t.Error("published again though another driver's claim does not affect the diagnosis")
	}
	w.inventory.ApplyClaim(testNamespace, "a", &resourcev1.ResourceClaim{Spec: spec(deviceRequest("main", 1))})
	ghost("x")
	if published() {
		t.Error("published again though the claim requests the same")
	}
	w.claim("b", spec(deviceRequest("main", 1)))
	diagnoser.SetQuestions([]dra.Question{questionOf("p", "a"), questionOf("q", "b")})
	if !published() || reasons(diagnoser.Diagnoses()) != "a=no_matching_device b=no_matching_device " {
		t.Errorf("diagnoses are %q", reasons(diagnoser.Diagnoses()))
	}
}

// The allocator uses the present slices, even if it has run for the node
// before.
func TestSearchesNodesAgain(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	slice := w.pool("d", "n1", device("a", "numa", 0), device("b", "numa", 1))
	s := spec(deviceRequest("main", 2))
	s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("d/numa")}
	w.claim("c", s)
	diagnoser := w.diagnoser()
	d := diagnoser.newQueue()
	defer d.stop()
	for _, want := range []string{"c=constraints_unsatisfiable ", "c= "} {
		diagnoser.SetQuestions([]dra.Question{questionOf("p", "c")})
		d.refresh()
		d.drain(t, 1)
		d.publish()
		if got := reasons(diagnoser.Diagnoses()); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		changed := slice.DeepCopy()
		changed.Spec.Pool.Generation, changed.Spec.Devices = 2, []resourcev1.Device{device("a", "numa", 1), device("b", "numa", 1)}
		w.inventory.ApplySlice(changed.Name, changed)
	}
}

// What was never diagnosed comes first, in the order of the questions; then what
// was diagnosed longest ago, so that permanent changes starve no pod.
func TestQueueOrder(t *testing.T) {
	w := newTestCluster(t)
	w.class("gpu")
	var questions []dra.Question
	for i := range 4 {
		name := string(rune('a' + i))
		w.claim(name, spec(deviceRequest(name, int64(i+1))))
		questions = append(questions, questionOf("pod-"+name, name))
	}
	diagnoser := w.diagnoser()
	d := diagnoser.newQueue()
	defer d.stop()
	diagnosed := ""
	diagnose := func(n int) {
		t.Helper()
		for range n {
			d.drain(t, 1)
			for _, it := range d.items {
				if it.turn == d.turn {
					diagnosed += it.pod.claims[0].requests[0].Name
				}
			}
		}
	}
	diagnoser.SetQuestions(questions[:3])
	d.refresh()
	diagnose(2)
	w.class("another") // concerns all
	diagnoser.SetQuestions(questions)
	d.expireRefresh()
	d.refresh()
	diagnose(4)
	if want := "ab" + "cd" + "ab"; diagnosed != want {
		t.Errorf("diagnosed in the order %q, want %q", diagnosed, want)
	}
}

// working is a clock on which every look takes some time, as if work was done
// between any two.
func working(each time.Duration) clock.Clock {
	clk := clock.System()
	return func() clock.Instant {
		time.Sleep(each)
		return clk()
	}
}

// However much changes, Run takes no more than its share of the time.
func TestRunBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.pool("d", "n1", devicesNamed(4)...)
		var questions []dra.Question
		for i := range 50 {
			name := fmt.Sprintf("c%d", i)
			w.claim(name, spec(deviceRequest(name, 5)))
			questions = append(questions, questionOf("pod-"+name, name))
		}
		// Each look at the clock costs 4 ms of fake time: work. What is not
		// work is rest.
		const look = 4 * time.Millisecond
		looks := 0
		inner := working(look)
		clk := func() clock.Instant { looks++; return inner() }
		diagnoser := New(Options{Inventory: w.inventory, Clock: clk, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Budget: 0.2})
		running(t, diagnoser)
		start := time.Now()
		for i := range 300 {
			diagnoser.SetQuestions(questions)
			w.class(fmt.Sprintf("class-%d", i%2), fmt.Sprint(i%3 == 0)) // concerns all
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
		}
		share := float64(looks) * float64(look) / float64(time.Since(start)+savingTime)
		if share > 0.22 || share < 0.1 {
			t.Errorf("works %.3f of the time and of that for which it saves, may 0.2", share)
		}
		if len(diagnoser.Diagnoses()) != 50 {
			t.Errorf("%d of 50 diagnoses", len(diagnoser.Diagnoses()))
		}
	})
}

// Time in which there was nothing to do is not rested for.
func TestIdleTimeIsNotWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.class("gpu")
		w.claim("a", spec(deviceRequest("main", 1)))
		diagnoser := New(Options{Inventory: w.inventory, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Budget: 0.1})
		running(t, diagnoser)
		time.Sleep(10*time.Minute + 3*time.Second)
		began := time.Now()
		diagnoser.SetQuestions([]dra.Question{questionOf("p", "a")})
		await(t, diagnoser, "an answer", func(v []dra.Diagnosis) bool { return len(v) == 1 })
		if took := time.Since(began); took > time.Second {
			t.Errorf("answered after %v", took)
		}
	})
}

// SetQuestions and Diagnoses never wait for Run.
func TestAskNeverBlocks(t *testing.T) {
	w := newTestCluster(t)
	diagnoser := w.diagnoser() // does not run
	for range 100 {
		diagnoser.SetQuestions([]dra.Question{question("a")})
		_ = diagnoser.Diagnoses()
	}
}

// The diagnoser and the inventory are used from many goroutines.
func TestRunRace(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	slice := w.pool("d", "n1", devicesNamed(4, "model", "x")...)
	w.claim("a", spec(deviceRequest("main", 5)))
	w.claim("b", spec(deviceRequest("main", 2, `device.attributes["d"].model == "x"`)))
	diagnoser := w.diagnoser()
	running(t, diagnoser)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		for i := range 200 {
			changed := slice.DeepCopy()
			changed.Spec.Pool.Generation = int64(i + 2)
			changed.Spec.Devices = devicesNamed(1+i%6, "model", []string{"x", "y"}[i%2])
			w.inventory.ApplySlice(changed.Name, changed)
			claim := &resourcev1.ResourceClaim{Spec: spec(deviceRequest("main", int64(1+i%5)))}
			w.inventory.ApplyClaim(testNamespace, "a", claim)
		}
	}()
	for range 50 {
		diagnoser.SetQuestions([]dra.Question{questionOf("p1", "a"), questionOf("p2", "b"), questionOf("p3", "a", "b")})
		for _, v := range diagnoser.Explain(t.Context(), questionOf("p3", "a", "b")) {
			checkStages(t, v)
		}
	}
	<-writing
	diagnoser.SetQuestions([]dra.Question{questionOf("p2", "b")})
	await(t, diagnoser, "the last state", func(v []dra.Diagnosis) bool { return len(v) == 1 && v[0].Reason == dra.ReasonNoMatchingDevice })
}

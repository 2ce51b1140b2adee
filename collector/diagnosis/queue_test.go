package diagnosis

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claimIn adds a claim of a namespace and returns the question of a pod for it.
func (w *testCluster) claimIn(namespace, name string, spec resourcev1.ResourceClaimSpec) dra.Question {
	w.inventory.ApplyClaim(namespace, name, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec})
	return dra.Question{Pod: dra.PodRef{Namespace: namespace, Name: name}, PodUID: namespace + "/" + name, Refs: []dra.PendingRef{{PodClaim: name, Claim: name}}}
}

// long is a specification whose diagnosis takes as many evaluations as there are
// devices, and some more.
func long(variant int) resourcev1.ResourceClaimSpec {
	return spec(deviceRequest("main", 1, fmt.Sprintf(`device.attributes["d"].uuid == "%d"`, variant)))
}

// unique publishes devices of which each has a UUID.
func (w *testCluster) unique(n int) {
	var devices []resourcev1.Device
	for i := range n {
		devices = append(devices, device(fmt.Sprintf("dev-%d", i), "uuid", fmt.Sprintf("uuid-%d", i)))
	}
	w.pool("d", "n1", devices...)
}

// workingQueue returns a queue for which each reading of the clock takes so long,
// as if it was work, and which rests by the budget. It is used within a bubble.
func (w *testCluster) workingQueue(each time.Duration, budget float64) *queue {
	diagnoser := New(Options{Inventory: w.inventory, Clock: working(each), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Budget: budget})
	return diagnoser.newQueue()
}

// finished lists the items that have been diagnosed, in their order.
func (q *queue) finished() []string {
	names := make([]string, q.turn)
	for _, r := range q.rows {
		if r.item.turn > 0 {
			names[r.item.turn-1] = r.question.Pod.Name
		}
	}
	return names
}

// Turns go to the namespace that has been charged least; within a namespace
// short items come before long ones, and a long one is not begun again at each
// of its turns.
func TestNamespacesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.unique(100)
		questions := []dra.Question{w.claimIn("a", "a-long", long(0)), w.claimIn("a", "a-long-too", long(1))}
		for i := range 3 {
			questions = append(questions, w.claimIn("a", fmt.Sprintf("a-short-%d", i), spec(deviceRequest(fmt.Sprint("a", i), 200))))
		}
		questions = append(questions, w.claimIn("b", "b-short", spec(deviceRequest("b", 200))))
		q := w.workingQueue(10*time.Millisecond, 1)
		defer q.stop()
		q.exchange.ask(questions)
		q.refresh()
		if n := q.drain(t, 100); n != 6 {
			t.Fatalf("%d diagnoses: %+v", n, q.finished())
		}
		if got, want := fmt.Sprint(q.finished()), "[b-short a-short-0 a-short-1 a-short-2 a-long a-long-too]"; got != want {
			t.Errorf("finished %s, want %s", got, want)
		}
		// 100 evaluations each, and what one has to be given up for of the first
		// turn of the other, of which the results stay.
		costs := q.shares.costs()
		if a := costs[len(costs)-2]; a.Namespace != "a" || a.Took < 2*time.Second || a.Took > 2800*time.Millisecond {
			t.Errorf("costs %+v", costs)
		}
	})
}

// Within a namespace, what was never diagnosed comes first, the oldest first,
// also if it is asked later; then comes what was diagnosed longest ago. What is
// queued is counted.
func TestOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.unique(4)
		var questions []dra.Question
		for i := range 6 {
			questions = append(questions, w.claimIn("a", fmt.Sprint("age-", 9-i), spec(deviceRequest(fmt.Sprint("main", i), 200))))
		}
		q := w.workingQueue(time.Millisecond, 1)
		defer q.stop()
		queued := func(first, again int) {
			t.Helper()
			q.publish()
			_, work := q.exchange.published()
			if work.First != first || work.Again != again {
				t.Errorf("%d and %d diagnoses are queued, want %d and %d", work.First, work.Again, first, again)
			}
		}
		queued(0, 0)
		q.exchange.ask(questions[2:5]) // the two oldest become pending again later
		q.refresh()
		queued(3, 0)
		if n := q.drain(t, 1); n != 1 {
			t.Fatalf("%d diagnoses", n)
		}
		queued(2, 0)
		time.Sleep(time.Minute)
		w.pool("other", "n1", device("dev-0")) // concerns all
		q.exchange.ask(questions)
		q.refresh()
		queued(5, 1)
		q.drain(t, 100)
		queued(0, 0)
		if got, want := fmt.Sprint(q.finished()), "[ age-9 age-8 age-6 age-5 age-4 age-7]"; got != want {
			t.Errorf("finished %s, want %s", got, want)
		}
	})
}

// Of the namespaces with the same specification, the one with the least charged
// work is charged.
func TestLeastChargedNamespaceIsCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.unique(50)
		q := w.workingQueue(10*time.Millisecond, 1)
		defer q.stop()
		q.exchange.ask([]dra.Question{w.claimIn("a", "own", long(0)), w.claimIn("a", "same", long(1)), w.claimIn("z", "same", long(1))})
		q.refresh()
		q.drain(t, 100)
		costs := map[string]time.Duration{}
		for _, cost := range q.shares.costs() {
			costs[cost.Namespace] = cost.Took
		}
		if costs["a"] < 500*time.Millisecond || costs["z"] < 300*time.Millisecond || costs["z"] > costs["a"] {
			t.Errorf("costs %v", costs)
		}
		q.publish()
		if got := len(q.diagnoses()); got != 3 {
			t.Errorf("%d diagnoses", got)
		}
	})
}

// What needs too much is undetermined, and is tried again after the inventory
// has changed and a back-off that doubles.
func TestUndeterminedBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.unique(600)
		question := w.claimIn("a", "c", spec(deviceRequest("main", 1, `device.attributes["d"].uuid != ""`,
			`device.attributes["d"].uuid != "a"`, `device.attributes["d"].uuid != "b"`, `device.attributes["d"].uuid != "c"`)))
		q := w.workingQueue(10*time.Millisecond, 1)
		defer q.stop()
		q.exchange.ask([]dra.Question{question})
		q.refresh()
		idle := func(d time.Duration) {
			time.Sleep(d)
			q.pace.idle(d)
		}
		diagnoses := func() int {
			q.refresh()
			return q.drain(t, 100)
		}
		change := 0
		touch := func() {
			change++
			w.class(fmt.Sprintf("class-%d", change))
		}
		if n := diagnoses(); n != 1 {
			t.Fatalf("%d diagnoses", n)
		}
		q.publish()
		v := q.diagnoses()[0]
		if v.Reason != dra.ReasonUndetermined || !strings.HasPrefix(v.Message, "the diagnosis needs more than 4s: 4") ||
			!strings.HasSuffix(v.Message, " evaluations of selectors and 0 searches on nodes were made in this time") {
			t.Errorf("%s: %s", v.Reason, v.Message)
		}
		idle(2 * leastBackoff)
		if n := diagnoses(); n != 0 {
			t.Error("diagnosed again though nothing has changed")
		}
		touch()
		if n := diagnoses(); n != 1 {
			t.Error("not diagnosed again after a change and the back-off")
		}
		touch()
		idle(leastBackoff)
		if n := diagnoses(); n != 0 {
			t.Error("the back-off does not double")
		}
		idle(leastBackoff)
		if n := diagnoses(); n != 1 {
			t.Error("not diagnosed at the end of the back-off, after a change during it")
		}
		// Results of selectors stay, so that a diagnosis comes to its end in the end:
		// 600 devices and four selectors, some 400 evaluations each time.
		for range 5 {
			touch()
			idle(mostBackoff)
			diagnoses()
		}
		q.publish()
		if v := q.diagnoses()[0]; v.Reason != dra.ReasonNone {
			t.Errorf("at last: %s: %s", v.Reason, v.Message)
		}
	})
}

// The number of namespaces that are counted by themselves is bounded, and so is
// the number of diagnoses that are kept suspended.
func TestBoundsOfManyNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.unique(40)
		q := w.workingQueue(10*time.Millisecond, 1)
		defer q.stop()
		var questions []dra.Question
		for i := range mostNamespaces + 20 {
			questions = append(questions, w.claimIn(fmt.Sprintf("team-%d", i), "c", long(i)))
		}
		q.exchange.ask(questions)
		q.refresh()
		for {
			worked, err := q.work(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if q.suspended > mostSuspended {
				t.Fatalf("%d diagnoses are suspended", q.suspended)
			}
			if !worked {
				break
			}
		}
		costs := q.shares.costs()
		if len(costs) != mostNamespaces+1 && len(costs) != mostNamespaces || costs[0].Namespace != "" || costs[0].Took < 20*300*time.Millisecond {
			t.Errorf("%d costs, the first %+v", len(costs), costs[0])
		}
		if q.suspended != 0 || q.turn != mostNamespaces+20 {
			t.Errorf("%d diagnoses, %d suspended at the end", q.turn, q.suspended)
		}
	})
}

// Selectors of classes take turns with namespaces, rest as everything does, and
// are published.
func TestSelectorsOfClassesAreEvaluatedInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		w.node("n1", nil)
		w.class("gpu", `device.driver == "d"`)
		w.class("each", `device.attributes["d"].uuid != "x"`)
		w.unique(300)
		q := w.workingQueue(10*time.Millisecond, 0.25)
		q.pace.saved = 0
		defer q.stop()
		q.exchange.ask([]dra.Question{w.claimIn("a", "c", spec(deviceRequest("main", 400)))})
		q.refresh()
		began := time.Now()
		if worked, err := q.work(t.Context()); !worked || err != nil {
			t.Fatal(worked, err)
		}
		if supply := w.inventory.Supply(); supply.Classes[0].Counted {
			t.Error("300 evaluations of 10 ms in one turn")
		}
		if n := q.drain(t, 1); n != 1 || len(q.finished()) != 1 {
			t.Error("the claim is not diagnosed")
		}
		if supply := w.inventory.Supply(); supply.Classes[0].Counted {
			t.Error("all evaluations came before a claim")
		}
		for q.busy() {
			if _, err := q.work(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took < 4*3*time.Second {
			t.Errorf("3 s of work took %v with a quarter of a core", took)
		}
		if supply := w.inventory.Supply(); !supply.Classes[0].Counted || supply.Classes[0].Devices[dra.DeviceFree] != 300 {
			t.Errorf("%+v", supply.Classes[0])
		}
		select {
		case <-q.exchange.changed:
		default:
			t.Error("Changed receives nothing after classes have been counted")
		}
	})
}

// A diagnosis that is under way ends with Run.
func TestRunEndsWithinADiagnosis(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	w.unique(100)
	diagnoser := New(Options{Inventory: w.inventory, Clock: clock.System(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Budget: 0.01})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- diagnoser.Run(ctx) }()
	diagnoser.SetQuestions([]dra.Question{w.claimIn("a", "c", long(0)), w.claimIn("b", "d", long(1))})
	time.Sleep(20 * time.Millisecond)
	cancel()
	if err := <-done; err == nil {
		t.Error("Run ends without an error")
	}
}

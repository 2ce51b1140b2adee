package dcgm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// xid returns a value with the last XID of an entity.
func xid(of entity, code int64, at int64) value {
	v := integer(code)
	v.entity, v.field, v.at = of, xidError, at
	return v
}

// noXID returns the value of an entity without an XID.
func noXID(of entity) value { return value{entity: of, field: xidError, status: statusNoData} }

// read applies the last XIDs, and those that an engine has kept since.
func (e *xidCounts) read(last []value, kept ...value) {
	var newXIDs []value
	for i := range last {
		if _, is := e.isNew(&last[i]); is {
			newXIDs = append(newXIDs, last[i])
		}
	}
	if len(newXIDs) > 0 {
		e.record(append(kept, newXIDs...))
	}
}

// text returns the published XIDs as text.
func (e *xidCounts) text() string {
	var words []string
	for uuid, list := range e.xids() {
		word := uuid + ":"
		for _, x := range list {
			word += fmt.Sprintf(" %d×%d@%d", x.Code, x.Count, x.Last.UnixMicro())
		}
		words = append(words, word)
	}
	slices.Sort(words)
	return strings.Join(words, "; ")
}

func (e *xidCounts) expect(t *testing.T, what, want string) {
	t.Helper()
	if got := e.text(); got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
}

func onePlan(gpus ...string) watchPlan {
	who := make(map[entity]identity)
	var ids []uint
	for i, uuid := range gpus {
		ids = append(ids, uint(i))
		who[entity{wholeGPU, uint(i)}] = identity{uuid: uuid}
	}
	return makePlan(ids, nil, who)
}

func TestXIDs(t *testing.T) {
	a, b := entity{wholeGPU, 0}, entity{wholeGPU, 1}
	e := newXIDCounts()
	e.expect(t, "before there is a plan", "")
	e.watch(onePlan("GPU-a", "GPU-b"))
	e.expect(t, "before the first read", "GPU-a:; GPU-b:")
	if list := e.xids()["GPU-a"]; list == nil {
		t.Error("a watched device has no list")
	}

	e.read([]value{xid(a, 31, 100), noXID(b)})
	e.expect(t, "an XID from before", "GPU-a:; GPU-b:")
	e.read([]value{xid(a, 31, 100), noXID(b)})
	e.expect(t, "the same one again", "GPU-a:; GPU-b:")
	e.read([]value{xid(a, 31, 200), xid(b, 74, 150)})
	e.expect(t, "one more of each", "GPU-a: 31×1@200; GPU-b: 74×1@150")
	e.read([]value{xid(a, 43, 300), xid(b, 154, 400)}, xid(b, 154, 400), xid(b, 74, 390), xid(a, 31, 250), xid(a, 31, 100))
	e.expect(t, "those between two reads", "GPU-a: 31×2@250 43×1@300; GPU-b: 74×2@390 154×1@400")

	// The engine is restarted and has no XIDs of before.
	e.watch(onePlan("GPU-b", "GPU-a")) // and numbers its GPUs otherwise
	e.expect(t, "another connection", "GPU-a: 31×2@250 43×1@300; GPU-b: 74×2@390 154×1@400")
	e.read([]value{noXID(a), xid(b, 48, 500)})
	e.expect(t, "the first of a new engine", "GPU-a: 31×2@250 43×1@300 48×1@500; GPU-b: 74×2@390 154×1@400")

	e.watch(onePlan("GPU-b"))
	e.expect(t, "a GPU that was taken away", "GPU-b: 74×2@390 154×1@400")
	e.unwatch(nil)
	e.expect(t, "an engine without XIDs", "")
	e.watch(onePlan("GPU-b", "GPU-a"))
	e.expect(t, "it does again", "GPU-a: 31×2@250 43×1@300 48×1@500; GPU-b: 74×2@390 154×1@400")
}

func TestXIDsThatAreNone(t *testing.T) {
	gpu := entity{wholeGPU, 0}
	e := newXIDCounts()
	e.watch(onePlan("GPU-a"))
	e.read([]value{noXID(gpu)})
	failure := value{entity: gpu, field: xidError, status: statusTimeout}
	for _, v := range []value{
		xid(gpu, 0, 10), xid(gpu, -1, 10), xid(gpu, 1<<20, 10), xid(gpu, blankInteger, 10), xid(gpu, 79, 0),
		xid(entity{wholeGPU, 5}, 79, 10), failure,
	} {
		e.read([]value{v}, v)
		e.record([]value{v})
	}
	e.expect(t, "nothing of worth", "GPU-a:")
}

// A failed read does not mean that there was no XID.
func TestXIDsAfterAFailure(t *testing.T) {
	gpu := entity{wholeGPU, 0}
	e := newXIDCounts()
	e.watch(onePlan("GPU-a"))
	e.read([]value{{entity: gpu, field: xidError, status: statusTimeout}})
	e.read([]value{xid(gpu, 79, 100)})
	e.expect(t, "an XID that may be an old one", "GPU-a:")
}

func TestXIDsOfInstances(t *testing.T) {
	gpu := entity{wholeGPU, 0}
	who := map[entity]identity{gpu: {uuid: "GPU-a"}}
	hierarchy := append(mig(0, 1, 3, 2, 1, 1), mig(0, 2, 5, 1, 1)...)
	e := newXIDCounts()
	listen := func() {
		e.watch(makePlan([]uint{0}, hierarchy, who))
		e.read([]value{noXID(gpu), noXID(entity{gpuInstance, 1}), noXID(entity{computeInstance, 11}), noXID(entity{computeInstance, 20})})
	}
	listen()
	e.read([]value{xid(entity{computeInstance, 11}, 13, 100)})
	e.expect(t, "of a compute instance", "GPU-a:; MIG-GPU-a/3/0:; MIG-GPU-a/3/1: 13×1@100; MIG-GPU-a/5/0:")
	e.read([]value{xid(entity{gpuInstance, 1}, 94, 200)})
	e.expect(t, "of an instance that two share", "GPU-a:; MIG-GPU-a/3/0: 94×1@200; MIG-GPU-a/3/1: 13×1@100 94×1@200; MIG-GPU-a/5/0:")
	e.read([]value{xid(gpu, 79, 300)})
	e.expect(t, "of the GPU", "GPU-a: 79×1@300; MIG-GPU-a/3/0: 94×1@200; MIG-GPU-a/3/1: 13×1@100 94×1@200; MIG-GPU-a/5/0:")

	// MIG is reconfigured: the entity that was 3/1 is now 5/0, and what the
	// engine may still report for it is another's.
	hierarchy = append(mig(0, 2, 3, 2, 1, 1), mig(0, 1, 5, 1, 1)...)
	e.watch(makePlan([]uint{0}, hierarchy, who))
	e.read([]value{xid(gpu, 79, 300), xid(entity{computeInstance, 10}, 13, 250)})
	if got := e.text(); !strings.Contains(got, "MIG-GPU-a/5/0:") || strings.Contains(got, "MIG-GPU-a/5/0: 13") {
		t.Errorf("another instance's XID is counted: %s", got)
	}
}

// A change on one GPU does not affect the instances of another.
func TestXIDsOfInstancesThatStay(t *testing.T) {
	a, b, ci := entity{wholeGPU, 0}, entity{wholeGPU, 1}, entity{computeInstance, 10}
	who := map[entity]identity{a: {uuid: "GPU-a"}, b: {uuid: "GPU-b"}}
	hierarchy := mig(0, 1, 3, 1, 1)
	e := newXIDCounts()
	e.watch(makePlan([]uint{0, 1}, hierarchy, who))
	e.read([]value{noXID(a), noXID(b), noXID(ci)})
	e.read([]value{xid(ci, 13, 100)})
	e.watch(makePlan([]uint{0, 1}, append(hierarchy, mig(1, 2, 3, 1, 1)...), who))
	e.read([]value{xid(ci, 31, 200)})
	e.expect(t, "one that came with a change elsewhere", "GPU-a:; GPU-b:; MIG-GPU-a/3/0: 13×1@100 31×1@200; MIG-GPU-b/3/0:")

	// An instance of another size has the ids of one that is gone.
	e.watch(makePlan([]uint{0, 1}, mig(0, 1, 3, 2, 2), who))
	e.read([]value{xid(ci, 43, 300)})
	e.expect(t, "another's", "GPU-a:; GPU-b:; MIG-GPU-a/3/0: 13×1@100 31×1@200")
}

// Some XIDs are reported by the kernel's log as well as by an event, and again
// when an engine is restarted.
func TestXIDsReportedTwice(t *testing.T) {
	const second = 1_000_000
	a, b := entity{wholeGPU, 0}, entity{wholeGPU, 1}
	for _, code := range []int64{79, 119, 120} {
		e := newXIDCounts()
		e.watch(onePlan("GPU-a", "GPU-b"))
		e.read([]value{noXID(a), noXID(b)})
		e.read([]value{xid(a, code, 10.7*second)}, xid(a, code, 10*second))
		e.expect(t, "by log and event", fmt.Sprintf("GPU-a: %d×1@10000000; GPU-b:", code))
		e.read([]value{xid(a, code, 11.9*second), xid(b, code, 11*second)})
		e.expect(t, "once more, and on another GPU", fmt.Sprintf("GPU-a: %d×1@10000000; GPU-b: %d×1@11000000", code, code))
		e.read([]value{xid(a, code, 12*second)})
		e.expect(t, "after two seconds", fmt.Sprintf("GPU-a: %d×2@12000000; GPU-b: %d×1@11000000", code, code))
	}
}

func TestXIDsSignalChange(t *testing.T) {
	gpu := entity{wholeGPU, 0}
	signalled := func(e *xidCounts) bool {
		select {
		case <-e.changed:
			return true
		default:
			return false
		}
	}
	e := newXIDCounts()
	e.watch(onePlan("GPU-a"))
	if !signalled(e) {
		t.Error("no signal of a device that is watched")
	}
	e.watch(onePlan("GPU-a"))
	e.read([]value{noXID(gpu)})
	if signalled(e) {
		t.Error("a signal although nothing has changed")
	}
	before := e.xids()["GPU-a"]
	for i := range int64(3) {
		e.read([]value{xid(gpu, 74, 100+i)})
	}
	if !signalled(e) || signalled(e) {
		t.Error("three XIDs are not one signal")
	}
	if len(before) != 0 || !e.xids()["GPU-a"][0].Last.Equal(time.UnixMicro(102)) {
		t.Errorf("what was returned has changed to %v, or the last was not at %v", before, e.xids())
	}
}

// A device whose last XID cannot be queried is not one without XIDs.
func TestXIDsThatAreNotReceived(t *testing.T) {
	a, b := entity{wholeGPU, 0}, entity{wholeGPU, 1}
	const second = 1_000_000
	at := func(seconds int64) clock.Instant {
		return clock.Instant{Wall: time.Unix(seconds, 0), Elapsed: time.Duration(seconds) * time.Second}
	}
	answered := func(of entity, s status) value { return value{entity: of, field: xidError, status: s} }
	e := newXIDCounts()
	e.watch(onePlan("GPU-a", "GPU-b"))
	receive := func(seconds int64, values ...value) {
		e.receive(at(seconds), []entity{a, b}, values)
		e.read(values)
	}
	failure := func(what, want string) {
		t.Helper()
		if got := fmt.Sprint(e.published.Load().failure); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	receive(1000, noXID(a), noXID(b))
	receive(1001, xid(a, 31, 1001*second), noXID(b))
	e.expect(t, "at first", "GPU-a: 31×1@1001000000; GPU-b:")
	failure("at first", "<nil>")
	for _, s := range []status{statusNotWatched, statusPaused, statusDetached, statusTimeout, statusUninitialized, statusNoPermission, -3, -99} {
		receive(2000, answered(a, s), answered(b, s))
		e.expect(t, s.Error(), "")
		failure(s.Error(), "receive XIDs of 2 of 2 devices, the first: GPU-a: "+s.Error())
		receive(2001, xid(a, 31, 1001*second), noXID(b))
		e.expect(t, "again", "GPU-a: 31×1@1001000000; GPU-b:")
		failure("again", "<nil>")
	}
	receive(2002, noXID(b))
	e.expect(t, "no answer", "GPU-b:")
	failure("no answer", "receive XIDs of 1 of 2 devices, the first: GPU-a: the engine returns no value")
	e.watch(onePlan("GPU-a", "GPU-b"))
	e.expect(t, "watched again", "GPU-b:")
	for _, s := range []status{statusNotSupported, statusUnknownField, statusGPUNotSupported} {
		receive(2003, answered(a, s), noXID(b))
		e.expect(t, "none", "GPU-b:")
		failure("none", "<nil>")
	}
	for _, s := range []status{statusOK, statusNoData, statusGPULost, statusResetRequired} {
		receive(2004, answered(a, s), noXID(b))
		e.expect(t, "received", "GPU-a: 31×1@1001000000; GPU-b:")
	}

	// The last XID of a device that fails is shown until all have seen it.
	receive(3000, noXID(a), xid(b, 48, 3000*second))
	receive(3001, answered(a, statusPaused), answered(b, statusPaused))
	e.expect(t, "a recent one", "GPU-b: 48×1@3000000000")
	receive(3120, answered(a, statusPaused), answered(b, statusPaused))
	e.expect(t, "two minutes later", "")

	if e.published.Load().received != at(3120) {
		t.Errorf("received %v", e.published.Load().received)
	}
	e.disconnect()
	if !e.published.Load().received.IsZero() {
		t.Error("received without a connection")
	}
	e.unwatch(statusNoPermission)
	failure("refused", statusNoPermission.Error())
	e.watch(onePlan("GPU-a", "GPU-b"))
	failure("no longer refused", "<nil>")
}

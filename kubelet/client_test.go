package kubelet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestClientFollowsTheKubelet(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Pods: onePod("train")})
	observed := make(chan float64, 1)
	client := run(t, Options{Socket: socket, Observe: func(seconds float64) {
		select {
		case observed <- seconds:
		default:
		}
	}})
	<-client.Changed()
	latest, ok := client.Latest()
	if !ok || render(latest.Resources) != "pod ml/train\n" || latest.At.IsZero() {
		t.Errorf("got %v, %v", latest, ok)
	}
	if seconds := <-observed; seconds <= 0 {
		t.Errorf("observed %v seconds", seconds)
	}
	kubelet.Set(onePod("infer"))
	if got := render(client.fresh(t).Resources); got != "pod ml/infer\n" {
		t.Errorf("got %s", got)
	}
	if status := client.Status(); !status.Up || status.Name != "podresources" || status.LastSuccess.IsZero() || status.Errors != 0 {
		t.Errorf("got %+v", status)
	}
	if calls := kubelet.Calls(); calls.MostInFlight != 1 {
		t.Errorf("%d Lists at a time", calls.MostInFlight)
	}
}

func TestClientListsWhenPoked(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{})
	client := run(t, Options{Socket: socket, Interval: time.Hour, Debounce: time.Millisecond})
	<-client.Changed()
	kubelet.Set(onePod("train"))
	client.RequestList()
	eventually(t, "a List after the poke", func() bool {
		latest, _ := client.Latest()
		return latest.Sequence == 2 && len(latest.Resources.Pods) == 1
	})
}

func TestDebounceIsBounded(t *testing.T) {
	if got := New(Options{Debounce: time.Minute}).pace.debounce; got != 250*time.Millisecond {
		t.Errorf("got %v", got)
	}
}

// TestClientWithoutKubelet starts before there is a socket.
func TestClientWithoutKubelet(t *testing.T) {
	socket := freshSocket(t)
	client := run(t, Options{Socket: socket})
	client.awaitReason(t, source.ReasonNotFound)
	if _, ok := client.Latest(); ok {
		t.Error("an answer from nobody")
	}
	for _, part := range []string{socket, "--kubelet.pod-resources-socket", "mount"} {
		if !strings.Contains(client.Status().Message, part) {
			t.Errorf("%q does not say %q", client.Status().Message, part)
		}
	}
	kubelet, err := simulated.Start(t.Context(), socket, simulated.Options{Pods: onePod("train")})
	must(t, err)
	t.Cleanup(kubelet.Close)
	client.awaitUp(t)
	if client.Status().Message != "" {
		t.Errorf("well, and yet %q", client.Status().Message)
	}
}

// TestChangedTellsOnlyOfChanges counts no signal for failures that repeat.
func TestChangedTellsOnlyOfChanges(t *testing.T) {
	client := run(t, Options{Socket: freshSocket(t)})
	<-client.Changed()
	client.awaitReason(t, source.ReasonNotFound)
	failures := client.Status().Errors
	eventually(t, "more failures", func() bool { return client.Status().Errors >= failures+3 })
	select {
	case <-client.Changed():
		t.Error("nothing has changed")
	default:
	}
}

// TestFaults provokes each fault, sees what the client makes of it, that it
// keeps its last answer and logs once, and that it recovers by itself.
func TestFaults(t *testing.T) {
	for _, fault := range []struct {
		trap    simulated.Trap
		reason  source.Reason
		message string
		hung    bool
	}{
		{simulated.RateLimited, source.ReasonResourceExhausted, "another client of this socket", false},
		{simulated.Oversized, source.ReasonResourceExhausted, "larger than the 16 MiB", false},
		{simulated.Hang, source.ReasonTimeout, "no answer within ", true},
		{simulated.Deaf, source.ReasonTimeout, "no answer within ", true},
		{simulated.Killed, source.ReasonUnavailable, "no answer on the socket", false},
		{simulated.SocketMissing, source.ReasonNotFound, "no such socket", false},
		{simulated.Truncated, source.ReasonInvalid, "cannot be read", false},
		{simulated.InvalidUTF8, source.ReasonInvalid, "cannot be read", false},
	} {
		t.Run(string(fault.trap), func(t *testing.T) {
			kubelet, socket := start(t, simulated.Options{Pods: onePod("train")})
			options := Options{Socket: socket}
			if fault.hung {
				options.Timeout = 200 * time.Millisecond
			}
			client := run(t, options)
			client.awaitUp(t)
			logged := client.log.count("source is down")
			must(t, kubelet.Provoke(fault.trap))
			client.awaitReason(t, fault.reason)
			errorsBefore := client.Status().Errors
			eventually(t, "three more failures", func() bool { return client.Status().Errors >= errorsBefore+3 })
			if !strings.Contains(client.Status().Message, fault.message) || !strings.Contains(client.Status().Message, socket) {
				t.Errorf("got %q", client.Status().Message)
			}
			status := client.Status()
			if status.HungSince.IsZero() == fault.hung {
				t.Errorf("hung since %v", status.HungSince)
			}
			if latest, ok := client.Latest(); !ok || len(latest.Resources.Pods) != 1 {
				t.Errorf("the last answer is lost: %v", latest)
			}
			// A connection that breaks may come before what it cannot be
			// replaced for.
			if got := client.log.count("source is down") - logged; got < 1 || got > 2 {
				t.Errorf("logged %d times:\n%s", got, client.log)
			}
			kubelet.Set(onePod("infer"))
			must(t, kubelet.Calm(fault.trap))
			client.awaitUp(t)
			if got := render(client.fresh(t).Resources); got != "pod ml/infer\n" {
				t.Errorf("after recovery: %s", got)
			}
			if client.log.count("source is up again") == 0 {
				t.Errorf("the recovery is not in the log:\n%s", client.log)
			}
		})
	}
}

// TestHungSinceIsTheFirst keeps the start of the first of several Lists that
// are given up.
func TestHungSinceIsTheFirst(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Traps: []simulated.Trap{simulated.Hang}})
	client := run(t, Options{Socket: socket, Timeout: 10 * time.Millisecond})
	client.awaitReason(t, source.ReasonTimeout)
	first := client.Status().HungSince
	eventually(t, "more failures", func() bool { return client.Status().Errors >= 3 })
	if got := client.Status().HungSince; got != first || got.IsZero() {
		t.Errorf("hung since %v, then since %v", first, got)
	}
	must(t, kubelet.Provoke(simulated.RateLimited)) // Hang goes before it
	must(t, kubelet.Calm(simulated.Hang))
	eventually(t, "an answer, if only a refusal", func() bool { return client.Status().HungSince.IsZero() })
}

// TestHangingKubeletIsReportedBeforeTheTimeout has a List that is given up only
// after an hour, and one that is answered late.
func TestHangingKubeletIsReportedBeforeTheTimeout(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Pods: onePod("train"), Traps: []simulated.Trap{simulated.Hang}})
	client := New(Options{Socket: socket, Timeout: time.Hour})
	began := client.now()
	stopReport := client.reportLate(50*time.Millisecond, began)
	eventually(t, "the source is down", func() bool { return !client.Status().Up && client.Status().Reason == source.ReasonTimeout })
	status := client.Status()
	if status.HungSince != began || status.Errors != 0 || !strings.Contains(status.Message, "no answer within 50ms") {
		t.Errorf("%+v", status)
	}
	stopReport()
	must(t, kubelet.Calm(simulated.Hang))
	must(t, client.list(t.Context()))
	defer client.disconnect()
	if status := client.Status(); !status.Up || !status.HungSince.IsZero() {
		t.Errorf("once it answers: %+v", status)
	}
	client.reportLate(time.Millisecond, began)()
	time.Sleep(20 * time.Millisecond)
	if status := client.Status(); !status.Up {
		t.Errorf("after an answer in time: %+v", status)
	}
}

// TestStopsWhileTheKubeletHangs would wait for an hour if Run did.
func TestStopsWhileTheKubeletHangs(t *testing.T) {
	for _, trap := range []simulated.Trap{simulated.Hang, simulated.Deaf} {
		kubelet, socket := start(t, simulated.Options{Traps: []simulated.Trap{trap}})
		client := run(t, Options{Socket: socket, Timeout: time.Hour})
		if trap == simulated.Hang {
			eventually(t, "a List in flight", func() bool { return kubelet.Calls().InFlight == 1 })
		}
		client.stop()
		if status := client.Status(); status.Errors != 0 {
			t.Errorf("%s: stopping counts as a failure: %+v", trap, status)
		}
	}
}

func TestKubeletRestarts(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Pods: onePod("train")})
	client := run(t, Options{Socket: socket})
	for range 5 {
		client.awaitUp(t)
		must(t, kubelet.Restart())
		if got := render(client.fresh(t).Resources); got != "pod ml/train\n" {
			t.Errorf("got %s", got)
		}
	}
}

// TestBackAtOnce has the kubelet come back right after a failed List: the
// next one must not meet gRPC's own backoff.
func TestBackAtOnce(t *testing.T) {
	socket := freshSocket(t)
	client := New(Options{Socket: socket})
	defer client.disconnect()
	if _, err := client.fetch(t.Context()); source.ReasonOf(err) != source.ReasonNotFound {
		t.Fatalf("got %v", err)
	}
	kubelet, err := simulated.Start(t.Context(), socket, simulated.Options{})
	must(t, err)
	t.Cleanup(kubelet.Close)
	if _, err := client.fetch(t.Context()); err != nil {
		t.Errorf("got %v", err)
	}
}

// TestDeafForLong waits longer than gRPC's shortest patience with a server
// that says nothing: it still is a kubelet that hangs, not one that is gone.
func TestDeafForLong(t *testing.T) {
	_, socket := start(t, simulated.Options{Traps: []simulated.Trap{simulated.Deaf}})
	client := New(Options{Socket: socket, Timeout: 1500 * time.Millisecond})
	defer client.disconnect()
	if _, err := client.fetch(t.Context()); source.ReasonOf(err) != source.ReasonTimeout {
		t.Errorf("got %v", err)
	}
}

// TestLargeAnswer is above gRPC's default limit and below ours.
func TestLargeAnswer(t *testing.T) {
	name := strings.Repeat("x", 8<<20)
	_, socket := start(t, simulated.Options{Pods: onePod(name)})
	client := run(t, Options{Socket: socket})
	if got := client.fresh(t).Resources.Pods; len(got) != 1 || got[0].Name != name {
		t.Errorf("got %d pods", len(got))
	}
}

// TestWrongSockets are paths at which no kubelet can be.
func TestWrongSockets(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for path, reason := range map[string]source.Reason{
		file:                               source.ReasonUnavailable,
		folder:                             source.ReasonUnavailable,
		"/tmp/" + strings.Repeat("x", 150): source.ReasonInvalid,
	} {
		run(t, Options{Socket: path}).awaitReason(t, reason)
	}
}

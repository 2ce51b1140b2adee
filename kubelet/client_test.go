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

func TestClientListsRepeatedly(t *testing.T) {
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

func TestClientListsOnRequest(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{})
	client := run(t, Options{Socket: socket, Interval: time.Hour, Debounce: time.Millisecond})
	<-client.Changed()
	kubelet.Set(onePod("train"))
	client.RequestList()
	eventually(t, "a List after the request", func() bool {
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
		t.Error("a response without a kubelet")
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
		t.Errorf("it is up, but its message is %q", client.Status().Message)
	}
}

// TestChangedOnlyAfterChanges checks that failures that repeat send no signal.
func TestChangedOnlyAfterChanges(t *testing.T) {
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

// TestFaults checks for each fault that the client reports it, keeps the last
// response, logs once, and recovers when the fault ends.
func TestFaults(t *testing.T) {
	for _, test := range []struct {
		fault   simulated.Fault
		reason  source.Reason
		message string
		hung    bool
	}{
		{simulated.RateLimited, source.ReasonResourceExhausted, "another client of this socket", false},
		{simulated.Oversized, source.ReasonResourceExhausted, "larger than the 16 MiB", false},
		{simulated.Hang, source.ReasonTimeout, "no answer within ", true},
		{simulated.Silent, source.ReasonTimeout, "no answer within ", true},
		{simulated.Killed, source.ReasonUnavailable, "no answer on the socket", false},
		{simulated.SocketMissing, source.ReasonNotFound, "no such socket", false},
		{simulated.Truncated, source.ReasonInvalid, "cannot be read", false},
		{simulated.InvalidUTF8, source.ReasonInvalid, "cannot be read", false},
	} {
		t.Run(string(test.fault), func(t *testing.T) {
			kubelet, socket := start(t, simulated.Options{Pods: onePod("train")})
			options := Options{Socket: socket}
			if test.hung {
				options.Timeout = 200 * time.Millisecond
			}
			client := run(t, options)
			client.awaitUp(t)
			logged := client.log.count("source is down")
			must(t, kubelet.AddFaults(test.fault))
			client.awaitReason(t, test.reason)
			errorsBefore := client.Status().Errors
			eventually(t, "three more failures", func() bool { return client.Status().Errors >= errorsBefore+3 })
			if !strings.Contains(client.Status().Message, test.message) || !strings.Contains(client.Status().Message, socket) {
				t.Errorf("got %q", client.Status().Message)
			}
			status := client.Status()
			if status.HungSince.IsZero() == test.hung {
				t.Errorf("hung since %v", status.HungSince)
			}
			if latest, ok := client.Latest(); !ok || len(latest.Resources.Pods) != 1 {
				t.Errorf("the last answer is lost: %v", latest)
			}
			// A broken connection may be logged before the reason why it cannot be
			// replaced.
			if got := client.log.count("source is down") - logged; got < 1 || got > 2 {
				t.Errorf("logged %d times:\n%s", got, client.log)
			}
			kubelet.Set(onePod("infer"))
			must(t, kubelet.RemoveFaults(test.fault))
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

// TestHungSinceIsTheFirst checks that HungSince is the start of the first of
// several Lists that time out.
func TestHungSinceIsTheFirst(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Faults: []simulated.Fault{simulated.Hang}})
	client := run(t, Options{Socket: socket, Timeout: 10 * time.Millisecond})
	client.awaitReason(t, source.ReasonTimeout)
	first := client.Status().HungSince
	eventually(t, "more failures", func() bool { return client.Status().Errors >= 3 })
	if got := client.Status().HungSince; got != first || got.IsZero() {
		t.Errorf("hung since %v, then since %v", first, got)
	}
	must(t, kubelet.AddFaults(simulated.RateLimited)) // Hang takes precedence
	must(t, kubelet.RemoveFaults(simulated.Hang))
	eventually(t, "a response, here an error", func() bool { return client.Status().HungSince.IsZero() })
}

// TestHangingKubeletIsReportedBeforeTheTimeout has a List with a timeout of an hour,
// and one whose response is late.
func TestHangingKubeletIsReportedBeforeTheTimeout(t *testing.T) {
	kubelet, socket := start(t, simulated.Options{Pods: onePod("train"), Faults: []simulated.Fault{simulated.Hang}})
	client := New(Options{Socket: socket, Timeout: time.Hour})
	began := client.now()
	stopReport := client.reportLate(50*time.Millisecond, began)
	eventually(t, "the source is down", func() bool { return !client.Status().Up && client.Status().Reason == source.ReasonTimeout })
	status := client.Status()
	if status.HungSince != began || status.Errors != 0 || !strings.Contains(status.Message, "no answer within 50ms") {
		t.Errorf("%+v", status)
	}
	stopReport()
	must(t, kubelet.RemoveFaults(simulated.Hang))
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

// TestStopsWhileTheKubeletHangs takes an hour if Run waits for the List.
func TestStopsWhileTheKubeletHangs(t *testing.T) {
	for _, fault := range []simulated.Fault{simulated.Hang, simulated.Silent} {
		kubelet, socket := start(t, simulated.Options{Faults: []simulated.Fault{fault}})
		client := run(t, Options{Socket: socket, Timeout: time.Hour})
		if fault == simulated.Hang {
			eventually(t, "a List in flight", func() bool { return kubelet.Calls().InFlight == 1 })
		}
		client.stop()
		if status := client.Status(); status.Errors != 0 {
			t.Errorf("%s: stopping counts as a failure: %+v", fault, status)
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

// TestNoBackoffOfGRPC starts the kubelet directly after a failed List: gRPC's own
// backoff must not delay the next one.
func TestNoBackoffOfGRPC(t *testing.T) {
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

// TestConnectionSilentForLong has a timeout longer than gRPC's shortest timeout for
// the handshake of a server: a server that sends nothing is a timeout, not an
// unavailable kubelet.
func TestConnectionSilentForLong(t *testing.T) {
	_, socket := start(t, simulated.Options{Faults: []simulated.Fault{simulated.Silent}})
	client := New(Options{Socket: socket, Timeout: 1500 * time.Millisecond})
	defer client.disconnect()
	if _, err := client.fetch(t.Context()); source.ReasonOf(err) != source.ReasonTimeout {
		t.Errorf("got %v", err)
	}
}

// TestLargeResponse has a response above gRPC's default limit and below maxAnswer.
func TestLargeResponse(t *testing.T) {
	name := strings.Repeat("x", 8<<20)
	_, socket := start(t, simulated.Options{Pods: onePod(name)})
	client := run(t, Options{Socket: socket})
	if got := client.fresh(t).Resources.Pods; len(got) != 1 || got[0].Name != name {
		t.Errorf("got %d pods", len(got))
	}
}

// TestWrongSockets checks paths that cannot be the socket of a kubelet.
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

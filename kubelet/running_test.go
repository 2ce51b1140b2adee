package kubelet

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// patience is how long tests wait for what must come in the end.
const patience = 30 * time.Second

// journal is a log that tests can read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) count(text string) int { return strings.Count(j.String(), text) }

// running is a client that lists every few milliseconds, and its log.
type running struct {
	*Client
	log  *journal
	stop func()
}

func run(t *testing.T, options Options) running {
	t.Helper()
	log := &journal{}
	options.Log = slog.New(slog.NewTextHandler(log, nil))
	if options.Interval == 0 {
		options.Interval = 5 * time.Millisecond
	}
	client := New(options)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); client.Run(ctx) }()
	stop := func() { cancel(); <-done }
	t.Cleanup(stop)
	return running{Client: client, log: log, stop: stop}
}

// start starts a kubelet on a fresh socket; its path is short, since a
// socket's may have no more than 107 bytes.
func start(t *testing.T, options simulated.Options) (*simulated.Kubelet, string) {
	t.Helper()
	socket := freshSocket(t)
	kubelet, err := simulated.Start(t.Context(), socket, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kubelet.Close)
	return kubelet, socket
}

func freshSocket(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "podresources")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return filepath.Join(folder, "kubelet.sock")
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fresh waits for an answer to a List that began after the call.
func (r running) fresh(t *testing.T) Listing {
	t.Helper()
	before, _ := r.Latest()
	var latest Listing
	eventually(t, "two more answers", func() bool {
		latest, _ = r.Latest()
		return latest.Sequence >= before.Sequence+2
	})
	return latest
}

func (r running) awaitReason(t *testing.T, reason source.Reason) {
	t.Helper()
	eventually(t, "down with reason "+string(reason), func() bool {
		status := r.Status()
		return !status.Up && status.Reason == reason
	})
}

func (r running) awaitUp(t *testing.T) {
	t.Helper()
	eventually(t, "up", func() bool {
		status := r.Status()
		return status.Up && status.Reason == source.ReasonNone && status.HungSince.IsZero()
	})
}

func onePod(name string) []simulated.Pod {
	return []simulated.Pod{{Namespace: "ml", Name: name}}
}

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

// testTimeout is how long tests wait for a condition.
const testTimeout = 2 * time.Minute

// logBuffer is a log that tests can read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logBuffer) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *logBuffer) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *logBuffer) count(text string) int { return strings.Count(j.String(), text) }

// runningClient is a client that lists every few milliseconds, and its log.
type runningClient struct {
	*Client
	log  *logBuffer
	stop func()
}

func run(t *testing.T, options Options) runningClient {
	t.Helper()
	log := &logBuffer{}
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
	return runningClient{Client: client, log: log, stop: stop}
}

// start starts a kubelet on a new socket. The path of a socket may have no more than
// 107 bytes.
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
	for deadline := time.Now().Add(testTimeout); !holds(); time.Sleep(time.Millisecond) {
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

// fresh waits for the response to a List that began after the call.
func (r runningClient) fresh(t *testing.T) Listing {
	t.Helper()
	before, _ := r.Latest()
	var latest Listing
	eventually(t, "two more responses", func() bool {
		latest, _ = r.Latest()
		return latest.Sequence >= before.Sequence+2
	})
	return latest
}

func (r runningClient) awaitReason(t *testing.T, reason source.Reason) {
	t.Helper()
	eventually(t, "down with reason "+string(reason), func() bool {
		status := r.Status()
		return !status.Up && status.Reason == reason
	})
}

func (r runningClient) awaitUp(t *testing.T) {
	t.Helper()
	eventually(t, "up", func() bool {
		status := r.Status()
		return status.Up && status.Reason == source.ReasonNone && status.HungSince.IsZero()
	})
}

func onePod(name string) []simulated.Pod {
	return []simulated.Pod{{Namespace: "ml", Name: name}}
}

package neuron

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is the document on one line, as neuron-monitor prints it.
func line(document string) string { return strings.ReplaceAll(document, "\n", " ") + "\n" }

// fakeMonitor serves text on a unix socket, in place of neuron-monitor with socat, and
// keeps the connection open if hold is set.
func fakeMonitor(t *testing.T, text string, hold bool) (path string, connections *atomic.Int64) {
	t.Helper()
	path, connections = filepath.Join(t.TempDir(), "monitor.sock"), &atomic.Int64{}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_, _ = connection.Write([]byte(text))
			if hold {
				t.Cleanup(func() { _ = connection.Close() })
				continue
			}
			_ = connection.Close()
		}
	}()
	return path, connections
}

func open(t *testing.T, monitor string, silence time.Duration) *Source {
	t.Helper()
	s, err := New(Options{Monitor: monitor, Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	s.silence = silence
	readers, err := s.Readers(t.Context())
	if err != nil || len(readers) != 1 || s.Name() != "neuron" || readers[0].Key() == "" {
		t.Fatalf("got %v, %v", readers, err)
	}
	if again, err := s.Readers(t.Context()); err != nil || again[0] != readers[0] {
		t.Fatalf("another reader: %v, %v", again, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// until reads until the answer is as wanted.
func until(t *testing.T, s *Source, what string, as func([]device.Observation, error) bool) {
	t.Helper()
	var devices []device.Observation
	var err error
	for range 10000 {
		if devices, err = s.Read(t.Context(), device.Fast); as(devices, err) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never comes that %s: %v, %v", what, devices, err)
}

func TestSocket(t *testing.T) {
	path, _ := fakeMonitor(t, "\n"+line(twoDevices), true)
	s := open(t, "unix://"+path, time.Minute)
	until(t, s, "two devices are read", func(devices []device.Observation, err error) bool { return err == nil && len(devices) == 2 })
	first, _ := s.Read(t.Context(), device.Fast)
	first[0].Readings[0].Value = 7
	if second, _ := s.Read(t.Context(), device.Fast); second[0].Readings[0].Value != 1000 {
		t.Error("two reads share their readings")
	}
}

// A connection that ends, or a wrong document, leaves what is known until it is too
// old, and the source connects again.
func TestReconnect(t *testing.T) {
	path, connections := fakeMonitor(t, line(twoDevices)+"neuron\n", false)
	s := open(t, "unix://"+path, time.Minute)
	until(t, s, "the source has connected again", func(devices []device.Observation, err error) bool {
		return err == nil && len(devices) == 2 && connections.Load() > 1
	})
}

func TestWrongMonitors(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		hold   bool
		want   string
		reason source.Reason
	}{
		"silent":       {"", true, "no document has come from", source.ReasonTimeout},
		"half a line":  {`{"neuron_hardware_info"`, true, "no document has come from", source.ReasonTimeout},
		"closed":       {"", false, "has closed the connection", source.ReasonUnavailable},
		"no JSON":      {"neuron\n", true, "decode a document of neuron-monitor", source.ReasonInvalid},
		"a long line":  {strings.Repeat("x", maxDocument+1), true, "has more than 4194304 bytes", source.ReasonInvalid},
		"no device":    {"{}\n", true, "has 0 devices", source.ReasonInvalid},
		"a cut object": {"{\"neuron_hardware_info\": {\n", true, "unexpected end of JSON input", source.ReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, _ := fakeMonitor(t, c.text, c.hold)
			silence := time.Minute
			if c.reason == source.ReasonTimeout {
				silence = 300 * time.Millisecond
			}
			s := open(t, "unix://"+path, silence)
			until(t, s, c.want, func(devices []device.Observation, err error) bool {
				return len(devices) == 0 && err != nil && strings.Contains(err.Error(), c.want) && source.ReasonOf(err) == c.reason
			})
		})
	}
}

// A monitor that sends without a pause is disconnected, however small its lines are, and
// connected to less often.
func TestMonitorsWithoutPause(t *testing.T) {
	for name, text := range map[string]string{"documents": line(twoDevices), "large documents": line(twoDevices + strings.Repeat(" ", 1<<20)), "empty lines": strings.Repeat("\n", 1<<16)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "monitor.sock")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			var sent, connections atomic.Int64
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					connections.Add(1)
					for err == nil {
						var n int
						n, err = io.WriteString(connection, text)
						sent.Add(int64(n))
					}
					_ = connection.Close()
				}
			}()
			var elapsed atomic.Int64
			s, err := New(Options{Monitor: "unix://" + path, Clock: func() clock.Instant { return clock.Instant{Elapsed: time.Duration(elapsed.Load())} }})
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if received, err := s.connect(t.Context()); received || source.ReasonOf(err) != source.ReasonResourceExhausted || !strings.Contains(err.Error(), "more than 1048576 bytes a second") {
					t.Errorf("got %v, %v", received, err)
				}
			}
			// Only the first connection has what is allowed at once; each has what the
			// kernel buffers, and the scanner.
			if n := sent.Load(); n > bytesAtOnce+3*(maxDocument+1<<20) {
				t.Errorf("%d bytes are read from %d connections", n, connections.Load())
			}
			elapsed.Store(int64(time.Second))
			if _, err := s.connect(t.Context()); source.ReasonOf(err) != source.ReasonResourceExhausted {
				t.Errorf("got %v", err)
			}
			_ = listener.Close()
			<-ended
		})
	}
}

func TestMissingSocket(t *testing.T) {
	s := open(t, "unix:///does/not/exist.sock", time.Minute)
	until(t, s, "the socket is named", func(devices []device.Observation, err error) bool {
		return len(devices) == 0 && source.ReasonOf(err) == source.ReasonUnavailable && strings.Contains(err.Error(), "/does/not/exist.sock")
	})
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "neuron.json")
	var elapsed atomic.Int64
	now := func() clock.Instant {
		return clock.Instant{Wall: time.Unix(1_800_000_000, 0).Add(time.Duration(elapsed.Load())), Elapsed: time.Hour + time.Duration(elapsed.Load())}
	}
	s, err := New(Options{Monitor: path, Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	read := func() ([]device.Observation, string) {
		devices, err := s.Read(t.Context(), device.Fast)
		if err != nil {
			return devices, err.Error()
		}
		return devices, ""
	}
	write := func(text string, age time.Duration) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if at := now().Wall.Add(-age); os.Chtimes(path, at, at) != nil {
			t.Fatal("the time of the file cannot be set")
		}
	}
	if devices, err := read(); len(devices) != 0 || !strings.Contains(err, "no such file") {
		t.Errorf("without a file: %v, %v", devices, err)
	}
	write(twoDevices, 2*time.Second)
	devices, text := read()
	if len(devices) != 2 || text != "" {
		t.Fatalf("got %v, %v", devices, text)
	}
	if got := devices[1].Readings[0].Measured.To; got != time.Hour-2*time.Second {
		t.Errorf("measured at %v", got)
	}
	write("{", 0) // as it is while it is written
	if devices, err := read(); len(devices) != 2 || err != "" {
		t.Errorf("while it is written: %v, %v", devices, err)
	}
	elapsed.Store(int64(time.Minute))
	if devices, err := read(); len(devices) != 0 || !strings.Contains(err, "was written 1m0s ago") {
		t.Errorf("an old file: %v, %v", devices, err)
	}
	write(strings.Repeat(" ", maxDocument+1), 0)
	if devices, err := read(); len(devices) != 0 || !strings.Contains(err, "has more than 4194304 bytes") {
		t.Errorf("a large file: %v, %v", devices, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if devices, err := read(); len(devices) != 0 || !strings.Contains(err, "not a regular file") {
		t.Errorf("a folder: %v, %v", devices, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestPlace(t *testing.T) {
	for _, place := range []string{"", "neuron.json", "unix://neuron.sock", "http://localhost/"} {
		if _, err := New(Options{Monitor: place, Clock: clock.System()}); err == nil || !strings.Contains(err.Error(), "neither unix:///SOCKET nor the absolute path of a file") {
			t.Errorf("%q: got %v", place, err)
		}
	}
}

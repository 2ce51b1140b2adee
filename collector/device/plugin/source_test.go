package plugin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quick are limits that a test can wait for.
func quick() limits {
	return limits{
		description: 300 * time.Millisecond, message: 4 << 20, silence: 500 * time.Millisecond,
		perSecond: 10, burst: 30, first: 20 * time.Millisecond, most: 100 * time.Millisecond, look: 10 * time.Millisecond,
	}
}

// lines is a log that goroutines may write to.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newSource(t *testing.T, folder string) (*Source, *lines) {
	log := &lines{}
	s, err := New(Options{
		Folder: folder, Interval: 100 * time.Millisecond, Extensions: []string{"fan_speed_rpm"},
		Clock: clock.System(), Log: slog.New(slog.NewTextHandler(log, nil)), limits: quick(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, log
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 20 s", what)
		}
	}
}

// reader returns the reader of a driver as soon as its socket is found.
func reader(t *testing.T, s *Source, driver string) device.Reader {
	t.Helper()
	var found device.Reader
	eventually(t, "a reader of "+driver, func() bool {
		readers, _ := s.Readers(t.Context())
		for _, r := range readers {
			if r.Key() == driver {
				found = r
			}
		}
		return found != nil
	})
	return found
}

// serveKit serves a device with the kit until the function that it returns is called.
func serveKit(t *testing.T, folder, driver string, read func() []devicemetrics.Device) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- devicemetrics.Serve(ctx, devicemetrics.Options{
			Driver: driver, Folder: folder, Interval: 100 * time.Millisecond,
			Read: func(context.Context) ([]devicemetrics.Device, error) { return read(), nil },
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// What the kit sends is read, across a restart in which counters begin again, and
// until the driver's socket is gone.
func TestSourceReadsTheKit(t *testing.T) {
	folder := t.TempDir()
	s, log := newSource(t, folder)
	if _, err := s.Readers(t.Context()); source.ReasonOf(err) != source.ReasonLibraryMissing || !strings.Contains(err.Error(), folder) {
		t.Errorf("an empty folder: %v", err)
	}
	var energy atomic.Int64
	energy.Store(100)
	unhealthy := false
	read := func() []devicemetrics.Device {
		state, reason := devicemetrics.Healthy, ""
		if unhealthy {
			state, reason = devicemetrics.Unhealthy, "lanes are lost"
		}
		return []devicemetrics.Device{{
			Pool: "node-1", Name: "gpu-0", Vendor: "example", UUID: "GPU-of-another", PCIAddress: "0000:01:00.0",
			Readings: []devicemetrics.Reading{{Quantity: devicemetrics.Energy, Value: float64(energy.Load())}},
			Health:   []devicemetrics.HealthSignal{{Name: "link", State: state, Reason: reason}},
		}}
	}
	stop := serveKit(t, folder, testDriver, read)
	r := reader(t, s, testDriver)
	value := func() float64 {
		observations, err := r.Read(t.Context(), device.Fast)
		if err != nil || len(observations) != 1 {
			return -1
		}
		if d := observations[0].Device; d.UUID != "" || d.PCIBusID != "" || d.Vendor != "example" ||
			d.Published != (device.PublishedName{Driver: testDriver, Pool: "node-1", Device: "gpu-0"}) {
			t.Errorf("the device is %+v", d)
		}
		for _, reading := range observations[0].Readings {
			if reading.Quantity == device.Energy {
				return reading.Value
			}
		}
		return -1
	}
	eventually(t, "the first value", func() bool { return value() == 100 })
	energy.Store(200)
	eventually(t, "the next value", func() bool { return value() == 200 })
	energy.Store(3) // the kit gives it a later start
	eventually(t, "a counter that begins again", func() bool { return value() == 3 })
	stop()
	eventually(t, "the end of the server", func() bool { return value() == -1 })
	unhealthy = true
	stop = serveKit(t, folder, testDriver, read)
	eventually(t, "the restart", func() bool { return value() == 3 })
	eventually(t, "the signal", func() bool {
		return strings.Contains(log.String(), `changes=1 pool=node-1 device=gpu-0 signal=link state=unhealthy before=healthy reason="lanes are lost"`)
	})
	stop()
	if readers, err := s.Readers(t.Context()); err != nil || len(readers) != 0 {
		t.Errorf("after the socket is gone: %v, %v", readers, err)
	}
}

// A Report that the driver could only make in part is used, and says why.
func TestDriverReportsErrors(t *testing.T) {
	folder := t.TempDir()
	serve(t, folder, testDriver, func(stream watchStream) error {
		if err := describe(stream, "gpu-0"); err != nil {
			return err
		}
		report := live(reading("power", 70))
		report.Error = "the second card does not answer"
		return hold(stream, report)
	})
	s, _ := newSource(t, folder)
	r := reader(t, s, testDriver)
	var observations []device.Observation
	var err error
	eventually(t, "the report", func() bool {
		observations, err = r.Read(t.Context(), device.Fast)
		return len(observations) == 1
	})
	if err == nil || err.Error() != "the driver reports: the second card does not answer" || len(observations[0].Readings) != 1 {
		t.Errorf("%+v, %v", observations, err)
	}
	// What the caller does with a result changes no later one.
	observations[0].Readings[0].Value = 0
	if again, _ := r.Read(t.Context(), device.Fast); again[0].Readings[0].Value != 70 {
		t.Errorf("the next read returns %+v", again[0].Readings)
	}
}

type watchStream = grpc.ServerStreamingServer[v1alpha1.WatchResponse]

// fakeServer is a server of device metrics that does what a test asks. It is a fake.
type fakeServer struct {
	v1alpha1.UnimplementedDeviceMetricsServer
	watch func(watchStream) error
}

func (f *fakeServer) Watch(_ *v1alpha1.WatchRequest, stream watchStream) error {
	return f.watch(stream)
}

// serve serves a fake on the driver's socket.
func serve(t *testing.T, folder, driver string, watch func(watchStream) error) {
	server := grpc.NewServer()
	if watch != nil {
		v1alpha1.RegisterDeviceMetricsServer(server, &fakeServer{watch: watch})
	}
	ended := make(chan error, 1)
	listener := listen(t, folder, driver)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
}

func listen(t *testing.T, folder, driver string) net.Listener {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(folder, driver+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func describe(stream watchStream, names ...string) error {
	return stream.Send(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Description{Description: description(names...)}})
}

// live is a report of now.
func live(readings ...*v1alpha1.Reading) *v1alpha1.Report {
	report := reported(0, readings...)
	report.Measured = timestamppb.Now()
	return report
}

func send(stream watchStream, report *v1alpha1.Report) error {
	return stream.Send(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Report{Report: report}})
}

// hold sends a report again and again until the client leaves.
func hold(stream watchStream, report *v1alpha1.Report) error {
	for {
		if err := send(stream, report); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(110 * time.Millisecond):
		}
	}
}

// Drivers that are within the specification, and together have too much, are refused by
// size: that with the most first. The others are read.
func TestDriversWithTooMuch(t *testing.T) {
	folder, count := t.TempDir(), 8
	for i := range count {
		names, report := make([]string, 1+100*i), live()
		for n := range names {
			names[n] = fmt.Sprintf("gpu-%d", n)
			if n > 0 {
				report.Devices = append(report.Devices, &v1alpha1.DeviceReport{Device: uint32(n), Readings: []*v1alpha1.Reading{reading("power", 70), reading("energy", 5), reading("memory_used", 5)}})
			}
		}
		serve(t, folder, fmt.Sprintf("d%d.example.com", i), func(stream watchStream) error {
			message := description(names...)
			message.Driver = fmt.Sprintf("d%d.example.com", i)
			if err := stream.Send(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Description{Description: message}}); err != nil {
				return err
			}
			return hold(stream, report)
		})
	}
	slow := defaultLimits()
	slow.description, slow.silence = time.Minute, time.Minute
	s, err := New(Options{Folder: folder, Clock: clock.System(), limits: slow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	kept, refused, others := 0, 0, ""
	eventually(t, "the largest are refused", func() bool {
		readers, _ := s.Readers(t.Context())
		kept, refused, others = 0, 0, ""
		for _, r := range readers {
			observations, err := r.Read(t.Context(), device.Fast)
			kept += device.Weight(observations)
			switch {
			case errors.Is(err, source.ErrRefused) && source.ReasonOf(err) == source.ReasonResourceExhausted && strings.Contains(err.Error(), r.Key()):
				refused++
			case err == nil:
				others += r.Key()[:2]
			}
		}
		return refused > 0 && refused+len(others)/2 == count
	})
	if kept > 4<<20 || !strings.HasPrefix(others, "d0d1d2d3") {
		t.Errorf("%s are read, with %d bytes", others, kept)
	}
}

// A message of many empty parts is not decoded, and of others one at a time is.
func TestCodec(t *testing.T) {
	decoding := make(chan struct{}, 1)
	for _, parts := range []int{1, maxEntries + 1} {
		report := &v1alpha1.Report{Devices: slices.Repeat([]*v1alpha1.DeviceReport{{}}, parts)}
		raw, err := proto.Marshal(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Report{Report: report}})
		if err != nil {
			t.Fatal(err)
		}
		c := newCodec(decoding)
		err = c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, &v1alpha1.WatchResponse{})
		if fits := parts < maxEntries; (err == nil) != fits || (c.failed == nil) != fits {
			t.Errorf("%d parts: %v (%v)", parts, err, c.failed)
		}
		c.release()
		if c.release(); len(decoding) != 0 {
			t.Error("the next message cannot be decoded")
		}
	}
}

// A wrong server is a failure with a reason, and no other driver notices.
func TestWrongServers(t *testing.T) {
	wait := func(stream watchStream) error {
		<-stream.Context().Done()
		return nil
	}
	after := func(readings ...*v1alpha1.Reading) func(watchStream) error {
		return func(stream watchStream) error {
			if err := describe(stream, "gpu-0"); err != nil {
				return err
			}
			return hold(stream, live(readings...))
		}
	}
	for name, test := range map[string]struct {
		watch  func(watchStream) error
		reason source.Reason
		text   string
	}{
		"nothing served":    {nil, source.ReasonUnsupported, "does not serve devicemetrics/v1alpha1"},
		"hangs":             {wait, source.ReasonTimeout, "no description for too long"},
		"silent":            {func(s watchStream) error { return errors.Join(describe(s, "gpu-0"), wait(s)) }, source.ReasonTimeout, "no report for too long"},
		"only descriptions": {func(s watchStream) error { return repeat(s, func() error { return describe(s, "gpu-0") }) }, source.ReasonTimeout, "no report for too long"},
		"ends":              {func(watchStream) error { return nil }, source.ReasonUnavailable, "has ended: EOF"},
		"report first":      {func(s watchStream) error { return hold(s, live()) }, source.ReasonInvalid, "a report before the first description"},
		"another driver": {func(s watchStream) error {
			message := description("gpu-0")
			message.Driver = "gpu.nvidia.com"
			return errors.Join(s.Send(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Description{Description: message}}), wait(s))
		}, source.ReasonInvalid, `of the driver "gpu.nvidia.com", and not of "gpu.example.com"`},
		"a ratio of percent": {after(reading("utilization", 50)), source.ReasonInvalid, "utilization: 50 is not a ratio from 0 to 1"},
		"no detail":          {after(reading("temperature", 50)), source.ReasonInvalid, "temperature: 0 details instead of 1"},
		"too large": {func(s watchStream) error {
			report := live()
			report.Error = strings.Repeat("a", 5<<20)
			return errors.Join(describe(s, "gpu-0"), send(s, report), wait(s))
		}, source.ReasonInvalid, "larger than max"},
		"floods": {func(s watchStream) error {
			err := describe(s, "gpu-0")
			for err == nil {
				err = send(s, live())
			}
			return err
		}, source.ReasonInvalid, "more than 10 messages in a second"},
		"no message": {func(s watchStream) error { return repeat(s, func() error { return s.Send(&v1alpha1.WatchResponse{}) }) }, source.ReasonTimeout, "no description for too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			serve(t, folder, testDriver, test.watch)
			serveKit(t, folder, "good.example.com", func() []devicemetrics.Device {
				return []devicemetrics.Device{{Pool: "node-1", Name: "gpu-0", Readings: []devicemetrics.Reading{{Quantity: devicemetrics.Power, Value: 5}}}}
			})
			checkFailure(t, folder, test.reason, test.text)
		})
	}
}

// repeat sends ten messages a second.
func repeat(stream watchStream, send func() error) error {
	for {
		if err := send(); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// checkFailure checks that the test's driver fails for the reason, and the good one
// does not.
func checkFailure(t *testing.T, folder string, reason source.Reason, text string) {
	t.Helper()
	s, _ := newSource(t, folder)
	wrong, good := reader(t, s, testDriver), reader(t, s, "good.example.com")
	eventually(t, "the failure", func() bool {
		_, err := wrong.Read(t.Context(), device.Fast)
		return err != nil && source.ReasonOf(err) == reason && strings.Contains(err.Error(), text) && strings.Contains(err.Error(), folder)
	})
	eventually(t, "the other driver", func() bool {
		observations, err := good.Read(t.Context(), device.Fast)
		return err == nil && len(observations) == 1 && len(observations[0].Readings) == 1
	})
}

// Servers that do not speak gRPC.
func TestServersOfAnotherProtocol(t *testing.T) {
	for name, test := range map[string]struct {
		talk   func(net.Conn)
		reason source.Reason
		text   string
	}{
		"garbage":       {func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("garbage\n"), 1000)) }, source.ReasonUnavailable, "has ended"},
		"HTTP/1":        {func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n") }, source.ReasonUnavailable, "has ended"},
		"sends nothing": {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, source.ReasonTimeout, "no description for too long"},
		"drips": {func(c net.Conn) {
			settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0} // an empty frame
			go func() { _, _ = io.Copy(io.Discard, c) }()
			for i, err := 0, error(nil); err == nil; time.Sleep(5 * time.Millisecond) {
				_, err = c.Write(settings[i%9 : i%9+1])
				i++
			}
		}, source.ReasonTimeout, "no description for too long"},
		"pings": {func(c net.Conn) {
			var pings bytes.Buffer
			framer := http2.NewFramer(&pings, nil)
			for err := framer.WriteSettings(); err == nil && pings.Len() < 1<<15; {
				err = framer.WritePing(true, [8]byte{})
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
			for err := error(nil); err == nil; {
				_, err = c.Write(pings.Bytes())
			}
		}, source.ReasonResourceExhausted, "of all drivers, there are more than"},
		"closes": {func(net.Conn) {}, source.ReasonUnavailable, "has ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			var talks sync.WaitGroup
			listener := listen(t, folder, testDriver)
			talks.Go(func() {
				for {
					accepted, err := listener.Accept()
					if err != nil {
						return
					}
					talks.Go(func() {
						defer accepted.Close()
						test.talk(accepted)
					})
				}
			})
			t.Cleanup(talks.Wait)
			t.Cleanup(func() { listener.Close() })
			serveKit(t, folder, "good.example.com", func() []devicemetrics.Device {
				return []devicemetrics.Device{{Pool: "node-1", Name: "gpu-0", Readings: []devicemetrics.Reading{{Quantity: devicemetrics.Power, Value: 5}}}}
			})
			checkFailure(t, folder, test.reason, test.text)
		})
	}
}

// Files that are no sockets of drivers are logged once, and are not opened.
func TestFilesOfTheFolder(t *testing.T) {
	folder, err := os.MkdirTemp("", "p") // the path of a socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	s, log := newSource(t, folder)
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("file.example.com.sock")
	write("README")
	write(".hidden.sock")
	if err := os.Symlink("/dev/null", filepath.Join(folder, "link.example.com.sock")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Upper.example.com", "..", strings.Repeat("a", 64), "dot..dot"} {
		defer listen(t, folder, name).Close()
	}
	for range 2 {
		if readers, err := s.Readers(t.Context()); source.ReasonOf(err) != source.ReasonLibraryMissing {
			t.Errorf("%v, %v", readers, err)
		}
	}
	if got := strings.Count(log.String(), "a file is not used as a socket"); got != 5 {
		t.Errorf("%d files are logged, want 5:\n%s", got, log)
	}
	// A server that has crashed leaves its socket.
	crashed := listen(t, folder, testDriver).(*net.UnixListener)
	crashed.SetUnlinkOnClose(false)
	crashed.Close()
	r := reader(t, s, testDriver)
	eventually(t, "the failure", func() bool {
		_, err := r.Read(t.Context(), device.Fast)
		return source.ReasonOf(err) == source.ReasonUnavailable && strings.Contains(err.Error(), "the driver's server does not run") && strings.Contains(err.Error(), folder)
	})
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if readers, err := s.Readers(t.Context()); err != nil || len(readers) != 0 {
		t.Errorf("without the folder: %v, %v", readers, err)
	}
	notFolder, _ := newSource(t, "/proc/self/environ")
	if _, err := notFolder.Readers(t.Context()); err == nil || source.ReasonOf(err) == source.ReasonLibraryMissing {
		t.Errorf("a file instead of the folder: %v", err)
	}
}

// More drivers than the limit are not read.
func TestManyDrivers(t *testing.T) {
	folder := t.TempDir()
	s, log := newSource(t, folder)
	for i := range maxDrivers + 2 {
		defer listen(t, folder, strings.Repeat("a", i%60+1)+map[bool]string{true: ".b"}[i >= 60]).Close()
	}
	readers, err := s.Readers(t.Context())
	if err != nil || len(readers) != maxDrivers || strings.Count(log.String(), "64 drivers are read already") != 2 {
		t.Errorf("%d readers, %v", len(readers), err)
	}
}

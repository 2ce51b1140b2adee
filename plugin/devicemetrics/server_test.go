package devicemetrics

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testDriver = "gpu.example.com"

type readFunc = func(context.Context) ([]Device, error)

// start serves until the test ends and returns the path of the socket.
func start(t *testing.T, read readFunc) string {
	t.Helper()
	folder := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, Options{Driver: testDriver, Folder: folder, Interval: 100 * time.Millisecond, Read: read})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve = %v", err)
		}
		if left, _ := os.ReadDir(folder); len(left) > 0 {
			t.Errorf("%s is left", left[0].Name())
		}
	})
	path := filepath.Join(folder, testDriver+".sock")
	waitFor(t, func() bool { _, err := os.Lstat(path); return err == nil })
	return path
}

func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not within 10 s")
		}
	}
}

// watch opens a stream that ends with the test.
func watch(t *testing.T, path string) grpc.ServerStreamingClient[v1alpha1.WatchResponse] {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	t.Cleanup(func() { cancel(); connection.Close() })
	stream, err := v1alpha1.NewDeviceMetricsClient(connection).Watch(ctx, &v1alpha1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func receive(t *testing.T, stream grpc.ServerStreamingClient[v1alpha1.WatchResponse]) *v1alpha1.WatchResponse {
	t.Helper()
	message, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

func power(name string) Device {
	return Device{Pool: "node-1", Name: name, Readings: []Reading{{Quantity: Power, Value: 71.5}}}
}

func TestDescriptionComesFirst(t *testing.T) {
	path := start(t, func(context.Context) ([]Device, error) { return []Device{power("gpu-0"), power("gpu-1")}, nil })
	if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o660 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for range 2 {
		stream := watch(t, path)
		description := receive(t, stream).GetDescription()
		if description.GetDriver() != testDriver || len(description.GetDevices()) != 2 || description.Devices[1].Name != "gpu-1" {
			t.Fatalf("description %v", description)
		}
		for range 2 {
			report := receive(t, stream).GetReport()
			if len(report.GetDevices()) != 2 || report.Devices[1].Device != 1 || report.Devices[1].Readings[0].Value != 71.5 || report.Devices[1].Processes != nil {
				t.Fatalf("report %v", report)
			}
			if report.GetMeasured().AsTime().IsZero() {
				t.Error("no time of measurement")
			}
		}
	}
}

func TestDevicesChange(t *testing.T) {
	var second atomic.Bool
	path := start(t, func(context.Context) ([]Device, error) {
		if second.Load() {
			return []Device{power("gpu-1")}, nil
		}
		return []Device{power("gpu-0")}, nil
	})
	stream := watch(t, path)
	receive(t, stream)
	second.Store(true)
	for {
		message := receive(t, stream)
		if d := message.GetDescription(); d != nil {
			if d.Devices[0].Name != "gpu-1" {
				t.Fatalf("description %v", d)
			}
			return
		}
	}
}

func TestErrorsAreReported(t *testing.T) {
	for name, read := range map[string]readFunc{
		"no device":      func(context.Context) ([]Device, error) { return nil, errors.New("library\nis missing") },
		"some devices":   func(context.Context) ([]Device, error) { return []Device{power("a")}, errors.New("b is missing") },
		"against limits": func(context.Context) ([]Device, error) { return []Device{power("a"), power("a")}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			stream := watch(t, start(t, read))
			receive(t, stream)
			report := receive(t, stream).GetReport()
			if report.GetError() == "" || strings.Contains(report.GetError(), "\n") {
				t.Errorf("error %q", report.GetError())
			}
			if want := strings.Count(name, "some"); len(report.GetDevices()) != want {
				t.Errorf("%d devices, want %d", len(report.GetDevices()), want)
			}
		})
	}
}

func TestNoClientNoRead(t *testing.T) {
	var reads atomic.Int32
	path := start(t, func(context.Context) ([]Device, error) { reads.Add(1); return nil, nil })
	time.Sleep(300 * time.Millisecond)
	if n := reads.Load(); n != 0 {
		t.Errorf("%d reads without a client", n)
	}
	receive(t, watch(t, path))
}

// A client that does not receive delays neither the reads nor other clients.
func TestSlowClient(t *testing.T) {
	devices := make([]Device, 200)
	for i := range devices {
		devices[i] = power("gpu-" + strings.Repeat("x", 50) + string(rune('a'+i%26)) + string(rune('a'+i/26)))
	}
	path := start(t, func(context.Context) ([]Device, error) { return devices, nil })
	watch(t, path)
	stream := watch(t, path)
	for range 12 {
		receive(t, stream)
	}
}

func TestReadThatHangs(t *testing.T) {
	path := start(t, func(ctx context.Context) ([]Device, error) { <-ctx.Done(); return nil, ctx.Err() })
	stream := watch(t, path)
	_ = stream // the cleanup of start proves that the end of Serve ends the read
	time.Sleep(200 * time.Millisecond)
}

func TestSocket(t *testing.T) {
	read := func(context.Context) ([]Device, error) { return nil, nil }
	t.Run("in use", func(t *testing.T) {
		path := start(t, read)
		if err := Serve(t.Context(), Options{Driver: testDriver, Folder: filepath.Dir(path), Read: read}); err == nil || !strings.Contains(err.Error(), "another server") {
			t.Errorf("Serve = %v", err)
		}
	})
	t.Run("stale", func(t *testing.T) {
		folder := t.TempDir()
		path := filepath.Join(folder, testDriver+".sock")
		old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		old.SetUnlinkOnClose(false)
		old.Close()
		listener, remove, err := listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		listener.Close()
		remove()
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
	t.Run("no socket", func(t *testing.T) {
		folder := t.TempDir()
		path := filepath.Join(folder, testDriver+".sock")
		if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Serve(t.Context(), Options{Driver: testDriver, Folder: folder, Read: read}); err == nil {
			t.Error("a file was replaced")
		}
	})
	t.Run("replaced", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), testDriver+".sock")
		_, remove, err := listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		remove()
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("what replaced the socket was removed: %v", err)
		}
	})
}

func TestOptions(t *testing.T) {
	read := func(context.Context) ([]Device, error) { return nil, nil }
	for name, options := range map[string]Options{
		"no read":        {Driver: testDriver},
		"no driver":      {Read: read},
		"path":           {Driver: "../kubelet", Read: read},
		"upper case":     {Driver: "GPU.example.com", Read: read},
		"long":           {Driver: strings.Repeat("a", 64), Read: read},
		"short interval": {Driver: testDriver, Read: read, Interval: time.Millisecond},
		"bad extension":  {Driver: testDriver, Read: read, Extensions: []Extension{{Name: "Fan"}}},
		"twice":          {Driver: testDriver, Read: read, Extensions: []Extension{{Name: "fan"}, {Name: "fan"}}},
	} {
		options.Folder = t.TempDir()
		if err := Serve(t.Context(), options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The decoder accepts what the kit sends over a socket, a reset of a counter
// included.
func TestKit(t *testing.T) {
	folder, energy := t.TempDir(), []float64{10, 20, 5}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	ended := make(chan error, 1)
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	reads := 0
	go func() {
		ended <- devicemetrics.Serve(ctx, devicemetrics.Options{
			Driver: testDriver, Folder: folder, Interval: 100 * time.Millisecond,
			Read: func(context.Context) ([]devicemetrics.Device, error) {
				value := energy[min(reads, len(energy)-1)]
				reads++
				return []devicemetrics.Device{{Pool: "node-1", Name: "gpu-0", Readings: []devicemetrics.Reading{
					{Quantity: devicemetrics.Energy, Value: value},
				}}}, nil
			},
		})
	}()
	path := filepath.Join(folder, testDriver+".sock")
	for _, err := os.Lstat(path); err != nil && ctx.Err() == nil; _, err = os.Lstat(path) {
		time.Sleep(5 * time.Millisecond)
	}
	connection, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := v1alpha1.NewDeviceMetricsClient(connection).Watch(ctx, &v1alpha1.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	d, now := NewDecoder(testDriver), clock.System()
	for fell := false; !fell; {
		message, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if description := message.GetDescription(); description != nil {
			if err := d.Describe(description); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := d.Report(message.GetReport(), now())
		if err != nil || len(got) != 1 || len(got[0].Readings) != 1 || got[0].Readings[0].Quantity != device.Energy {
			t.Fatalf("%+v, %v", got, err)
		}
		fell = got[0].Readings[0].Value == 5
	}
}

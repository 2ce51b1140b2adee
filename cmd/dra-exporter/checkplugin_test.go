package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics"
)

// A server of the kit passes; what is no server fails, with what to do.
func TestCheckPlugin(t *testing.T) {
	folder := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- devicemetrics.Serve(ctx, devicemetrics.Options{
			Driver: "gpu.example.com", Folder: folder, Interval: 100 * time.Millisecond,
			Read: func(context.Context) ([]devicemetrics.Device, error) {
				return []devicemetrics.Device{{Pool: "node-1", Name: "gpu-0", Readings: []devicemetrics.Reading{{Quantity: devicemetrics.Power, Value: 70}}}}, nil
			},
		})
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	socket := filepath.Join(folder, "gpu.example.com.sock")
	for tries := 0; ; tries++ {
		if matches, _ := filepath.Glob(socket); len(matches) > 0 {
			break
		}
		if tries == 1000 {
			t.Fatal("the server has made no socket")
		}
		time.Sleep(10 * time.Millisecond)
	}
	const area = "device metrics of gpu.example.com"
	c := runCheck(t, nil, "plugin", "--duration=1s", "unix://"+socket)
	c.expectFinding(t, area, "readings", check.OK, "1 reading in the newest report")
	c.expectFinding(t, area, "description", check.OK, "1 device")
	if c.code != 0 {
		t.Errorf("the exit status is %d", c.code)
	}
	c = runCheck(t, nil, "plugin", "--duration=1s", "unix://"+folder)
	c.expectFinding(t, "device metrics of "+filepath.Base(folder), folder, check.Failure, "is not a socket")
	if c.code != 1 || !strings.Contains(c.Findings[0].Remedy, "The socket is a file named <driver>.sock") {
		t.Errorf("the exit status is %d: %+v", c.code, c.Findings)
	}
	for _, wrong := range []string{"/tmp/a.sock", "unix://a.sock", "--duration=0s unix:///a.sock"} {
		output, err := program(t.Context(), append([]string{"check", "plugin"}, strings.Fields(wrong)...)...).CombinedOutput()
		if err == nil || !strings.Contains(err.Error(), "exit status 2") {
			t.Errorf("%s: %v, %s", wrong, err, output)
		}
	}
}

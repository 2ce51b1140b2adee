package sysfs

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// plantFunction adds a PCI function below a root, as the kernel shows it: a link into
// the tree of devices.
func plantFunction(t *testing.T, root, target, numaNode string) {
	t.Helper()
	folder := filepath.Join(root, "devices", target)
	links := filepath.Join(root, "bus/pci/devices")
	for _, err := range []error{
		os.MkdirAll(folder, 0o755), os.MkdirAll(links, 0o755),
		os.WriteFile(filepath.Join(folder, "numa_node"), []byte(numaNode+"\n"), 0o644),
		os.Symlink("../../../devices/"+target, filepath.Join(links, filepath.Base(target))),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLocations(t *testing.T) {
	root := t.TempDir()
	plantFunction(t, root, "pci0000:17/0000:17:01.0/0000:18:00.0", "0")
	plantFunction(t, root, "pci0001:80/0001:80:01.0/0001:81:00.0/0001:82:00.1", "1")
	plantFunction(t, root, "pci0000:ff/0000:ff:00.0", "-1")
	plantFunction(t, root, "platform/soc/0002:00:00.0", "3")
	plantFunction(t, root, "pcifoo/0003:00:00.0", "none")
	plantFunction(t, root, "pci0000:17/not-an-address", "0")
	for function, class := range map[string]string{
		"pci0000:17/0000:17:01.0/0000:18:00.0": "0x020700\n", // InfiniBand
		"pcifoo/0003:00:00.0":                  "0x02\n",     // none
		"pci0000:ff/0000:ff:00.0":              "0x030200\n", // 3D controller
	} {
		if err := os.WriteFile(filepath.Join(root, "devices", function, "class"), []byte(class), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		reader := NewLocationReader(root, slog.New(slog.DiscardHandler))
		if reader.Latest().At("0000:18:00.0") != (device.Location{}) {
			t.Error("something is known before anything was read")
		}
		go reader.Run(ctx)
		<-reader.Changed()
		first := reader.Latest()
		for address, want := range map[string]device.Location{
			"0000:18:00.0":   {PCIeRoot: "pci0000:17", NUMANode: "0", Network: true},
			"0001:82:00.1":   {PCIeRoot: "pci0001:80", NUMANode: "1"},
			"0000:ff:00.0":   {PCIeRoot: "pci0000:ff"},
			"0002:00:00.0":   {NUMANode: "3"},
			"0003:00:00.0":   {},
			"not-an-address": {},
			"0000:99:00.0":   {},
		} {
			if got := first.At(address); got != want {
				t.Errorf("%s is at %+v, want %+v", address, got, want)
			}
		}
		time.Sleep(2 * locationsInterval)
		synctest.Wait()
		if reader.Latest() != first {
			t.Error("there are other locations, although nothing has changed")
		}
		plantFunction(t, root, "pci0000:17/0000:17:01.0/0000:18:00.2", "0")
		<-reader.Changed()
		if got := reader.Latest().At("0000:18:00.2"); got.PCIeRoot != "pci0000:17" {
			t.Errorf("the new function is at %+v", got)
		}
	})
	empty := NewLocationReader(filepath.Join(root, "missing"), slog.New(slog.DiscardHandler))
	empty.apply(empty.look())
	if empty.Latest().At("0000:18:00.0") != (device.Location{}) {
		t.Error("there are locations without sysfs")
	}
}

// TestLookThatHangs has a look that does not return: it is logged, what is known stays,
// and Run ends with its context.
func TestLookThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		reader := NewLocationReader(t.TempDir(), slog.New(slog.NewTextHandler(&log, nil)))
		release := make(chan struct{})
		reader.look = func() map[string]device.Location { <-release; return nil }
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); reader.Run(ctx) }()
		time.Sleep(2 * locationsInterval)
		synctest.Wait()
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, reader.root) {
			t.Errorf("the log is %q", got)
		}
		stop()
		<-ended
		close(release)
	})
}

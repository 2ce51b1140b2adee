package simulated

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

func TestFollowsItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.yaml")
	write := func(text string) {
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(path, clock.System()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file gives %v", err)
	}
	write("nonsense: true")
	if _, err := Open(path, clock.System()); source.ReasonOf(err) != source.ReasonInvalid || !strings.Contains(err.Error(), path) {
		t.Errorf("a wrong file gives %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		write(faulty("[]"))
		s, err := Open(path, clock.System())
		if err != nil {
			t.Fatal(err)
		}
		readers, err := s.Readers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		write("nonsense: true")
		time.Sleep(10 * time.Second)
		if readers, err := s.Readers(t.Context()); source.ReasonOf(err) != source.ReasonInvalid || len(readers) != 2 {
			t.Errorf("%d readers and %v beside a file that became wrong", len(readers), err)
		}
		if text := written(readers[0].Read(t.Context(), device.Fast)); text != "GPU-a: power=5 energy=100\n" {
			t.Errorf("the wrong file changed what is read to %s", text)
		}
		write(faulty("[{kind: error}]"))
		time.Sleep(lookInterval)
		if text := written(readers[0].Read(t.Context(), device.Fast)); text != "error: simulated error of the device\n" {
			t.Errorf("the changed file is not taken up: %s", text)
		}
		for _, hang := range []string{faulty("[{kind: hang}]"), faulty("[]") + "faults: [{kind: hang}]"} {
			write(hang)
			time.Sleep(lookInterval)
			began := time.Now()
			time.AfterFunc(10*time.Second, func() { write(faulty("[]")) })
			text := written(readers[0].Read(t.Context(), device.Fast))
			if took := time.Since(began); took < 10*time.Second || took > 12*time.Second || !strings.HasPrefix(text, "GPU-a: power=5") {
				t.Errorf("a hang that the file ended after 10 s ended after %s: %s", took, text)
			}
		}
	})
}

func TestReplaceKeepsCounting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(parsed(t, faulty("[{kind: error, quantity: power, after: 5s}]")), clock.System())
		time.Sleep(10 * time.Second)
		s.SetLoad("GPU-b", 0)
		s.Replace(parsed(t, `
devices:
- uuid: GPU-b
  quantities: {power: {value: 6, idle: 1}}
- uuid: GPU-a
  quantities: {power: 5, energy: {rate: 1}}
  faults: [{kind: error, quantity: power, after: 5s}]
- {uuid: GPU-a, quantities: {power: 7}}
`))
		time.Sleep(10 * time.Second)
		expect(t, read(t, s, device.Fast), `
			GPU-b: power=1
			GPU-a: energy=110
			error: read power of GPU-a: simulated error of the device
			GPU-a: power=7
			`)
		readers, err := s.Readers(t.Context())
		if err != nil || readers[1].Key() == readers[2].Key() {
			t.Errorf("two devices of one UUID have readers of one key (%v)", err)
		}
	})
}

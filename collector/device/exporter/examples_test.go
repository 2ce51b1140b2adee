package exporter

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// The examples comply with the specification. The end-to-end tests install the package
// that the one in Python needs.
func TestExamples(t *testing.T) {
	folder := socketFolder(t)
	program := filepath.Join(t.TempDir(), "example")
	if text, err := exec.Command("go", "build", "-o", program, "../../../examples/devicemetrics").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, text)
	}
	examples := map[string]*exec.Cmd{testDriver: exec.Command(program, folder)}
	const python = "/usr/bin/python3" // Debian's
	if err := exec.Command(python, "-c", "import prometheus_client").Run(); err == nil {
		examples["dra.net"] = exec.Command(python, "../../../examples/devicemetrics/server.py", folder, "dra.net", "node-1")
	}
	for driver, server := range examples {
		server.Stderr = os.Stderr
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = server.Process.Kill()
			_ = server.Wait() // it was killed
		})
		path := filepath.Join(folder, driver+suffix)
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if connection, err := net.Dial("unix", path); err == nil {
				_ = connection.Close()
				break
			}
		}
		x, err := Examine(t.Context(), "unix://"+path, ExamineOptions{Duration: time.Second, Interval: 100 * time.Millisecond, Clock: clock.System()})
		if err != nil || x.Failed != nil || len(x.Violations) > 0 || x.Devices == 0 || x.Readings == 0 { // interfaces come and go
			t.Errorf("%s: %+v, %v", driver, x, err)
		}
	}
}

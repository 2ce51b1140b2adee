package plugin

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// The Python example complies with the specification. The end-to-end tests install
// the packages that it needs.
func TestPythonExample(t *testing.T) {
	const python = "/usr/bin/python3" // Debian's
	if err := exec.Command(python, "-c", "import grpc, google.protobuf").Run(); err != nil {
		t.Skip("python3-grpcio and python3-protobuf are not installed")
	}
	folder := t.TempDir()
	server := exec.Command(python, "../../../examples/devicemetrics/server.py", "--driver="+testDriver, "--pool=node-1", "--folder="+folder)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.Process.Kill()
		server.Wait() // it was killed
	}()
	path := folder + "/" + testDriver + suffix
	eventually(t, "the socket", func() bool {
		_, err := os.Lstat(path)
		return err == nil
	})
	x := Examine(t.Context(), path, ExamineOptions{Duration: 2 * time.Second, Interval: 200 * time.Millisecond, Clock: clock.System()})
	if x.Failed != nil || len(x.Violations) > 0 || x.Devices == 0 || x.Reports < 4 || x.Readings == 0 { // interfaces come and go
		t.Errorf("%+v", x)
	}
}

//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// listerSocket is the environment variable of a child process of this test: the socket
// over which it lists once.
const listerSocket = "KUBELET_TEST_SOCKET"

// TestListerProcess is the child process. It prints its pid and whether the kubelet is
// visible. Without the variable it does nothing.
func TestListerProcess(*testing.T) {
	if os.Getenv(listerSocket) == "" {
		return
	}
	client := New(Options{Socket: os.Getenv(listerSocket)})
	_, err := client.fetch(context.Background())
	client.disconnect()
	visible, known := client.Visible()
	fmt.Println("pid", os.Getpid(), "visible", visible, "known", known, "error", err)
	os.Exit(0)
}

// runLister returns the output of a child process with these clone flags.
func runLister(t *testing.T, socket string, namespaces uintptr) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestListerProcess$")
	command.Env = append(os.Environ(), listerSocket+"="+socket)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	out, err := command.Output()
	return strings.TrimSpace(string(out)), err
}

func TestVisibleInTheSameNamespace(t *testing.T) {
	_, socket := start(t, simulated.Options{})
	got, err := runLister(t, socket, 0)
	must(t, err)
	if !strings.HasSuffix(got, " visible true known true error <nil>") {
		t.Errorf("got %q", got)
	}
}

// TestNotVisibleFromAnotherNamespace has a client in a child pid namespace of the
// kubelet's, as in a pod without hostPID.
func TestNotVisibleFromAnotherNamespace(t *testing.T) {
	_, socket := start(t, simulated.Options{})
	got, err := runLister(t, socket, syscall.CLONE_NEWPID)
	if err != nil {
		t.Skipf("a pid namespace can only be made by root: %v", err)
	}
	if got != "pid 1 visible false known true error <nil>" {
		t.Errorf("got %q", got)
	}
}

// TestVisibleIsUpdated checks that visibility is unknown before the first connection,
// and keeps its value while there is none.
func TestVisibleIsUpdated(t *testing.T) {
	socket := freshSocket(t)
	client := New(Options{Socket: socket})
	defer client.disconnect()
	wants := func(when string, wantVisible, wantKnown bool) {
		t.Helper()
		if visible, known := client.Visible(); visible != wantVisible || known != wantKnown {
			t.Errorf("%s: visible %v, known %v", when, visible, known)
		}
	}
	wants("before", false, false)
	if _, err := client.fetch(t.Context()); err == nil {
		t.Fatal("there is no kubelet")
	}
	wants("without a kubelet", false, false)
	kubelet, err := simulated.Start(t.Context(), socket, simulated.Options{})
	must(t, err)
	_, err = client.fetch(t.Context())
	must(t, err)
	wants("connected", true, true)
	kubelet.Close()
	if _, err := client.fetch(t.Context()); err == nil {
		t.Fatal("the kubelet is stopped")
	}
	wants("the kubelet is stopped", true, true)

	hidden := false
	client.visibility.known.Store(&hidden)
	kubelet, err = simulated.Start(t.Context(), socket, simulated.Options{})
	must(t, err)
	defer kubelet.Close()
	_, err = client.fetch(t.Context())
	must(t, err)
	wants("connected again", true, true)
}

// TestVisibleOfNoSocket observes a connection that is not a socket.
func TestVisibleOfNoSocket(t *testing.T) {
	client := New(Options{})
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	visible := true
	client.visibility.known.Store(&visible)
	client.visibility.observe(one)
	if visible, known := client.Visible(); visible || known {
		t.Errorf("visible %v, known %v", visible, known)
	}
}

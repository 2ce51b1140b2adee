package stubs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// HostEngine is a process of the stub host engine, which serves a Node's GPUs
// over a real socket to clients of the stub libdcgm.so.4. It ends with the
// test, or with the test's process. Its methods are not safe for concurrent
// use.
type HostEngine struct {
	// Address is where it listens: host:port or unix:///path. It stays the
	// same over restarts.
	Address string

	t       testing.TB
	program string
	env     []string
	command *exec.Cmd
	parent  io.Closer // its standard input: at the end of it the engine ends
}

// Inspection is what a host engine holds at the moment for all its clients.
type Inspection struct {
	Groups        int
	FieldGroups   int
	Watches       int // one for each field of each entity and client
	HealthWatches int // groups with health watches
	Connections   int // the asking for this has none
	Settings      int // calls so far that would have changed something: policies, configurations
}

// StartHostEngine starts a host engine at an address, host:port or
// unix:///path; an empty one is a free port of the loopback interface. It
// returns when the engine listens.
func (n *Node) StartHostEngine(t testing.TB, libraries Libraries, address string) *HostEngine {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	engine := &HostEngine{Address: address, t: t, program: libraries.HostEngine, env: append(os.Environ(), n.Env()...)}
	t.Cleanup(engine.Kill)
	engine.start()
	return engine
}

// start starts the process and reads the address on which it listens.
func (h *HostEngine) start() {
	h.t.Helper()
	var complaint bytes.Buffer
	command := exec.Command(h.program, "--with-parent", h.Address)
	command.Env = h.env
	command.Stderr = &complaint
	input, err := command.StdinPipe()
	if err != nil {
		h.t.Fatalf("open the host engine's input: %v", err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		h.t.Fatalf("open the host engine's output: %v", err)
	}
	if err := command.Start(); err != nil {
		h.t.Fatalf("start the host engine: %v", err)
	}
	line, _ := bufio.NewReader(output).ReadString('\n')
	listening, found := strings.CutPrefix(strings.TrimSpace(line), "listening ")
	if !found {
		_ = command.Wait()
		h.t.Fatalf("the host engine does not listen at %s: %s", h.Address, complaint.String())
	}
	h.Address, h.command, h.parent = listening, command, input
}

// Kill ends the engine as a crash would, at once and without a message to its
// clients. It does nothing if the engine is not running.
func (h *HostEngine) Kill() {
	if h.command == nil {
		return
	}
	_ = h.command.Process.Kill()
	_ = h.command.Wait()
	_ = h.parent.Close()
	h.command = nil
}

// Restart starts the engine again at the same address, killing it before if it
// runs. The new one does not know the old one's clients.
func (h *HostEngine) Restart() {
	h.t.Helper()
	h.Kill()
	h.start()
}

// Pause stops the engine's process, and returns when it is stopped: requests of
// clients wait.
func (h *HostEngine) Pause() {
	h.t.Helper()
	h.signal(syscall.SIGSTOP)
	for !h.stopped() {
		time.Sleep(time.Millisecond)
	}
}

// stopped reports whether all threads of the process are stopped.
func (h *HostEngine) stopped() bool {
	h.t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", h.command.Process.Pid))
	if err != nil || len(threads) == 0 {
		h.t.Fatalf("find the host engine's threads: %v", err)
	}
	for _, thread := range threads {
		line, err := os.ReadFile(thread)
		// The state follows the program's name, which is in parentheses.
		_, state, found := strings.Cut(string(line), ") ")
		if err == nil && found && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Resume lets a paused engine go on.
func (h *HostEngine) Resume() { h.signal(syscall.SIGCONT) }

func (h *HostEngine) signal(signal syscall.Signal) {
	h.t.Helper()
	if err := h.command.Process.Signal(signal); err != nil {
		h.t.Fatalf("signal the host engine: %v", err)
	}
}

// Inspect returns what the engine holds.
func (h *HostEngine) Inspect() Inspection {
	h.t.Helper()
	counts, err := h.inspect()
	if err != nil {
		h.t.Fatalf("inspect the host engine: %v", err)
	}
	return Inspection{
		Groups:        int(counts[0]),
		FieldGroups:   int(counts[1]),
		Watches:       int(counts[2]),
		HealthWatches: int(counts[3]),
		Connections:   int(counts[4]),
		Settings:      int(counts[5]),
	}
}

// inspect uses the stub's protocol (dcgm/wire.h): a length and a code, then so
// many bytes. The call to inspect is number 0 and has no arguments.
func (h *HostEngine) inspect() (counts [6]uint32, err error) {
	connection, err := h.dial()
	if err != nil {
		return counts, err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return counts, err
	}
	if err := binary.Write(connection, binary.NativeEndian, struct{ Length, Call uint32 }{}); err != nil {
		return counts, fmt.Errorf("ask: %w", err)
	}
	var reply struct {
		Length uint32
		Status int32
		Counts [6]uint32
	}
	if err := binary.Read(connection, binary.NativeEndian, &reply); err != nil {
		return counts, fmt.Errorf("read the answer: %w", err)
	}
	if reply.Status != 0 {
		return counts, fmt.Errorf("the answer has status %d", reply.Status)
	}
	return reply.Counts, nil
}

func (h *HostEngine) dial() (net.Conn, error) {
	if path, unix := strings.CutPrefix(h.Address, "unix://"); unix {
		return net.Dial("unix", path)
	}
	return net.Dial("tcp", strings.TrimPrefix(h.Address, "tcp://"))
}

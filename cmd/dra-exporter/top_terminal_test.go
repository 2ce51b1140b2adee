package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoterminal is the two ends of a pseudoterminal: one for input and output,
// and one that a program uses as its terminal.
type pseudoterminal struct {
	master, slave *os.File
	mutex         sync.Mutex
	seen          strings.Builder // since the last text that was expected
	all           strings.Builder
}

func newPseudoterminal(t *testing.T, width, height uint16) *pseudoterminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudoterminals here: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no pseudoterminals here: %v", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminals here: %v", err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	p := &pseudoterminal{master: master, slave: slave}
	p.resize(t, width, height)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			p.mutex.Lock()
			p.seen.Write(buffer[:n])
			p.all.Write(buffer[:n])
			p.mutex.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return p
}

func (p *pseudoterminal) resize(t *testing.T, width, height uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(p.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}); err != nil {
		t.Fatal(err)
	}
}

// run starts the program with the terminal as its own.
func (p *pseudoterminal) run(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	command := program(t.Context(), args...)
	races := filepath.Join(t.TempDir(), "race")
	command.Env = append(command.Env, "TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR=1", "GORACE=exitcode=0 log_path="+races)
	t.Cleanup(func() { expectNoRaces(t, races) })
	command.Stdin, command.Stdout, command.Stderr = p.slave, p.slave, p.slave
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command
}

// expectNoRaces reads the reports of the race detector. At its end, bubbletea closes
// what it reads keys from while its own goroutine may still wait there.
func expectNoRaces(t *testing.T, path string) {
	t.Helper()
	files, err := filepath.Glob(path + ".*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for report := range strings.SplitSeq(string(text), "WARNING: DATA RACE") {
			if strings.Contains(report, "goroutine") && !strings.Contains(report, "muesli/cancelreader") {
				t.Errorf("a data race:%s", report)
			}
		}
	}
}

// expectText waits for a text after the texts that were read before.
func (p *pseudoterminal) expectText(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		p.mutex.Lock()
		seen := p.seen.String()
		if _, rest, found := strings.Cut(seen, text); found {
			p.seen.Reset()
			p.seen.WriteString(rest)
			p.mutex.Unlock()
			return
		}
		p.mutex.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("%q is not seen in %q", text, seen)
		}
	}
}

func (p *pseudoterminal) typeKeys(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

func (p *pseudoterminal) settings(t *testing.T) unix.Termios {
	t.Helper()
	settings, err := unix.IoctlGetTermios(int(p.slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *settings
}

// expectShown waits for a text on the screen. Only what has changed is drawn, so
// it has everything drawn again.
func (p *pseudoterminal) expectShown(t *testing.T, text string) {
	t.Helper()
	const drawAgain = "\x0c" // Ctrl-L
	for deadline := time.Now().Add(time.Minute); ; {
		p.typeKeys(t, drawAgain)
		time.Sleep(100 * time.Millisecond)
		p.mutex.Lock()
		seen := p.seen.String()
		if _, rest, found := strings.Cut(seen, text); found {
			p.seen.Reset()
			p.seen.WriteString(rest)
			p.mutex.Unlock()
			return
		}
		p.mutex.Unlock()
		if time.Now().After(deadline) {
			t.Fatalf("%q is not seen in %q", text, seen[max(len(seen)-8000, 0):])
		}
	}
}

// On a terminal the display is interactive. Whatever ends it restores the
// terminal: its settings, its other screen, and the mouse.
func TestTopOnTerminal(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *pseudoterminal, *exec.Cmd){
		"q":       func(t *testing.T, p *pseudoterminal, _ *exec.Cmd) { p.typeKeys(t, "q") },
		"Ctrl-C":  func(t *testing.T, p *pseudoterminal, _ *exec.Cmd) { p.typeKeys(t, "\x03") },
		"SIGTERM": func(_ *testing.T, _ *pseudoterminal, command *exec.Cmd) { _ = command.Process.Signal(syscall.SIGTERM) },
		"SIGHUP":  func(_ *testing.T, _ *pseudoterminal, command *exec.Cmd) { _ = command.Process.Signal(syscall.SIGHUP) },
		"SIGINT":  func(_ *testing.T, _ *pseudoterminal, command *exec.Cmd) { _ = command.Process.Signal(os.Interrupt) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newPseudoterminal(t, 80, 24)
			before := p.settings(t)
			command := p.run(t, "top", "--url="+serveAgent(t, ""), "--cluster-url="+serveAgent(t, ""), "--interval=500ms")
			p.expectText(t, "\x1b[?1049h")
			p.expectShown(t, "pending claims: 10 (and 1 gated)")
			p.expectShown(t, "by utilization")
			p.typeKeys(t, "s")
			p.expectShown(t, "by memory")
			p.typeKeys(t, "2")
			p.expectShown(t, "USED BY")
			p.expectShown(t, "free")
			p.typeKeys(t, "\x1b[Z/debug\r") // Shift-Tab
			p.expectShown(t, "/debug 1 of ")
			p.resize(t, 200, 24)
			p.expectShown(t, "COST/H")
			p.typeKeys(t, "\r")
			p.expectShown(t, "claim team-ml/debug-session")
			p.typeKeys(t, "4\x1b[<0;5;7M\x1b[<0;5;7M") // two clicks
			p.expectShown(t, "dra-exporter explain pod")
			if raw := p.settings(t); raw == before {
				t.Error("keys would wait for Enter")
			}
			end(t, p, command)
			p.expectText(t, "\x1b[?1049l")
			p.expectText(t, "\x1b[?1002l")
			if err := command.Wait(); err != nil {
				t.Errorf("it ends with %v", err)
			}
			if after := p.settings(t); after != before {
				t.Errorf("the terminal was %+v, and is %+v", before, after)
			}
			p.mutex.Lock()
			defer p.mutex.Unlock()
			if coloured := regexp.MustCompile("\x1b\\[[0-9;]*3[0-7]m").FindString(p.all.String()); coloured != "" {
				t.Errorf("%q is written although NO_COLOR is set", coloured)
			}
		})
	}
}

// With --once the output on a terminal is that of a file, in the terminal's
// width.
func TestTopOnceOnTerminal(t *testing.T) {
	p := newPseudoterminal(t, 80, 24)
	command := p.run(t, "top", "--once", "--url="+serveAgent(t, ""))
	p.expectText(t, "debug-session")
	p.expectText(t, "* whole device")
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if strings.Contains(p.seen.String(), "\x1b") {
		t.Errorf("%q", p.seen.String())
	}
}

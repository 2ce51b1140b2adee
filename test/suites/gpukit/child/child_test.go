package child

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role is the variable that makes the test's program a child.
const role = "GPUKIT_TEST_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "wait":
		_, _ = os.Stdout.WriteString("ready\n")
		select {}
	case "parent":
		p, err := Start(context.Background(), Options{Path: os.Args[0], Environment: []string{role + "=wait"}, Out: os.Stdout})
		if err != nil {
			os.Exit(1)
		}
		_, _ = os.Stdout.WriteString(strconv.Itoa(p.PID) + "\n")
		select {}
	}
}

// start starts this program in a role, and sends its lines.
func start(t *testing.T, as string) (*Process, <-chan string) {
	t.Helper()
	lines := make(chan string, 10)
	p, err := Start(t.Context(), Options{
		Path: os.Args[0], Environment: []string{role + "=" + as},
		Out: &Lines{Most: 100, Each: func(line []byte) { lines <- string(line) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, lines
}

func TestStopEndsIt(t *testing.T) {
	p, lines := start(t, "wait")
	<-lines
	p.Stop()
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("it ends with %v", err)
	}
}

// A child ends with its parent, however that ends.
func TestParentEnds(t *testing.T) {
	parent, lines := start(t, "parent")
	pid := 0
	for range 2 { // "ready" and the pid, in any order
		if number, err := strconv.Atoi(<-lines); err == nil {
			pid = number
		}
	}
	if err := syscall.Kill(parent.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// The child has the parent's output, which ends only with both.
	_ = parent.Err()
	for !ended(t, pid) {
		time.Sleep(5 * time.Millisecond)
	}
}

// ended reports whether a process is gone, or waits only to be reaped.
func ended(t *testing.T, pid int) bool {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || bytes.Contains(stat, []byte(") Z "))
}

func TestMissingProgram(t *testing.T) {
	_, err := Start(t.Context(), Options{Path: "/no/such/program"})
	if !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(err.Error(), "start /no/such/program: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestLines(t *testing.T) {
	var got []string
	l := &Lines{Most: 5, Each: func(line []byte) { got = append(got, string(line)) }}
	for _, text := range []string{"a", "b\nc\n\nd", "e\n"} {
		if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	if !slices.Equal(got, []string{"ab", "c", "", "de"}) {
		t.Errorf("got %q", got)
	}
	if _, err := l.Write([]byte("123456")); err == nil {
		t.Error("a long line is no error")
	}
}

func TestTail(t *testing.T) {
	tail := &Tail{Bytes: 4}
	for _, text := range []string{"abc", "def", " \n"} {
		_, _ = tail.Write([]byte(text))
	}
	if tail.String() != "ef" {
		t.Errorf("got %q", tail.String())
	}
}

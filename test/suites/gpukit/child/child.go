// Package child runs programs that end with the program that started them.
package child

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Options are a program and its environment.
type Options struct {
	Path        string
	Arguments   []string
	Environment []string // added to that of this process
	Out, Err    io.Writer
	Grace       time.Duration // between SIGTERM and SIGKILL; 0: 10 s
}

// Process is a program that was started. Its methods are safe for concurrent
// use.
type Process struct {
	PID    int
	cancel context.CancelFunc
	done   chan struct{}
	err    error // once done is closed
}

// Start starts a program. It ends when ctx ends, by SIGTERM and after the grace
// period by SIGKILL, and by SIGKILL when this process ends in any way.
func Start(ctx context.Context, o Options) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, o.Path, o.Arguments...)
	command.Env = append(os.Environ(), o.Environment...)
	command.Stdout, command.Stderr = o.Out, o.Err
	// A group of its own: an interrupt from the terminal is for this process alone.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	command.Cancel = func() error {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		return os.ErrProcessDone                    // so that a program that ends with success does so here, too
	}
	command.WaitDelay = o.Grace
	if o.Grace == 0 {
		command.WaitDelay = 10 * time.Second
	}
	p := &Process{cancel: cancel, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The kernel sends the signal when the thread ends that has started the
		// program, so that this one has to live as long as the program.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer cancel()
		err := command.Start()
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Path, err)
	}
	p.PID = command.Process.Pid
	return p, nil
}

// Done is closed once the program has ended and all of its output was written.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err is how the program ended, nil with exit status 0. It waits for the end.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Stop ends the program and waits until it has ended.
func (p *Process) Stop() {
	p.cancel()
	<-p.done
}

// Lines is a writer that calls a function for each line, without its end. It
// must be used by one goroutine, as that of a process's output.
type Lines struct {
	Each func(line []byte) // the bytes are valid until it returns
	Most int               // bytes of a line; a longer one is an error of Write

	rest []byte
}

// Write takes more output.
func (l *Lines) Write(text []byte) (int, error) {
	taken := len(text)
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			break
		}
		l.Each(append(l.rest, text[:end]...))
		l.rest, text = l.rest[:0], text[end+1:]
	}
	if len(l.rest)+len(text) > l.Most {
		return 0, errors.New("a line of output is too long")
	}
	l.rest = append(l.rest, text...)
	return taken, nil
}

// Tail is a writer that keeps the end of what is written. It must be read after
// the last write.
type Tail struct {
	Bytes int // that are kept
	text  []byte
}

// Write takes more output.
func (t *Tail) Write(text []byte) (int, error) {
	t.text = append(t.text, text...)
	if over := len(t.text) - t.Bytes; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(text), nil
}

// String is what was kept, without blanks at its ends.
func (t *Tail) String() string { return strings.TrimSpace(string(t.text)) }

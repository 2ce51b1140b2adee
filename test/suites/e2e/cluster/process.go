package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is one process of the cluster. It can be stopped or killed and
// started again with the same arguments. Its log is appended to the same file.
type Process struct {
	name    string
	program string
	args    []string
	env     []string                    // in addition to PATH and HOME
	ready   func(context.Context) error // nil: ready as soon as it runs
	pidFile string
	logFile string

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

// Start starts the process and waits until it is ready. It returns an error if
// the process runs already or ends before it is ready.
func (p *Process) Start(ctx context.Context) error {
	exited, err := p.spawn()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	if err := p.wait(ctx, exited); err != nil {
		return fmt.Errorf("start %s: %w\n%s", p.name, err, p.LogTail(20))
	}
	return nil
}

// WaitReady waits until the process is ready again after one of its
// dependencies was down. It returns an error if the process does not run.
func (p *Process) WaitReady(ctx context.Context) error {
	p.mu.Lock()
	isRunning, exited := p.running(), p.exited
	p.mu.Unlock()
	if !isRunning {
		return fmt.Errorf("wait for %s: it is not running", p.name)
	}
	return p.wait(ctx, exited)
}

func (p *Process) wait(ctx context.Context, exited <-chan struct{}) error {
	if p.ready == nil {
		return nil
	}
	return Eventually(ctx, p.name+" ready", func(ctx context.Context) error {
		select {
		case <-exited:
			return Permanent(errors.New("the process ended"))
		default:
			return p.ready(ctx)
		}
	})
}

func (p *Process) spawn() (<-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		return nil, errors.New("it is running")
	}
	log, err := os.OpenFile(p.logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(p.program, p.args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/root"}, p.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt at the terminal goes to the test only
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.cmd, p.exited = cmd, make(chan struct{})
	go func(exited chan struct{}) {
		cmd.Wait()
		close(exited)
	}(p.exited)
	return p.exited, recordProcess(p.pidFile, cmd.Process.Pid)
}

// Stop sends SIGTERM to the process and kills it after five seconds, because
// an API server waits a minute for its watchers. It returns no error if the
// process is not running.
func (p *Process) Stop() error { return p.end(syscall.SIGTERM, 5*time.Second) }

// Kill ends the process with SIGKILL.
func (p *Process) Kill() error { return p.end(syscall.SIGKILL, 0) }

func (p *Process) end(signal syscall.Signal, timeout time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s: %w", p.name, err)
	}
	if timeout > 0 {
		select {
		case <-p.exited:
		case <-time.After(timeout):
			p.cmd.Process.Kill()
		}
	}
	<-p.exited
	p.cmd = nil
	os.Remove(p.pidFile)
	return nil
}

// PID returns the process's id, 0 while it is not running.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// running reports whether the process was started and has not ended. The
// caller holds mu.
func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// LogTail returns the last lines of the process's log.
func (p *Process) LogTail(lines int) string {
	data, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
)

// agent is a running agent.
type agent struct {
	process *child.Process
	address string
}

// agentFiles are paths that the agent is given.
type agentFiles struct {
	kubeconfig, socket, cdi, procfs string
}

// attempts is how often another port is tried.
const attempts = 3

// startAgent starts the agent and waits until it is ready. Between the choice
// of its port and its start, another program may take the port; then another
// one is tried.
func startAgent(ctx context.Context, o Options, files agentFiles) (*agent, error) {
	var err error
	for range attempts {
		var a *agent
		if a, err = tryAgent(ctx, o, files); err == nil || !strings.Contains(err.Error(), "address already in use") {
			return a, err
		}
	}
	return nil, err
}

func tryAgent(ctx context.Context, o Options, files agentFiles) (*agent, error) {
	address, err := porttest.Address()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(o.Log)
	if err != nil {
		return nil, fmt.Errorf("create the agent's log: %w", err)
	}
	defer log.Close() // the agent has it
	slow := o.SlowInterval
	if slow == 0 {
		slow = 5 * time.Second
	}
	arguments := []string{
		"node", "--metrics.level=full", "--node.name=" + Name, "--kubeconfig=" + files.kubeconfig, "--kubelet.pod-resources-socket=" + files.socket,
		"--cdi.dir=" + files.cdi, "--path.procfs=" + files.procfs, "--device.source=nvml", "--nvml.library=" + o.Recorder,
		"--device.slow-interval=" + slow.String(), "--web.listen-address=" + address,
	}
	if o.Profiling {
		arguments = append(arguments, "--device.profiling")
	}
	process, err := child.Start(ctx, child.Options{
		Path: o.Agent, Arguments: arguments,
		Environment: append([]string{"DRA_RECORDING=" + o.Recording, "DRA_RECORDER_LIBRARY=" + o.Library}, o.Environment...),
		Out:         log, Err: log,
	})
	if err != nil {
		return nil, err
	}
	a := &agent{process: process, address: address}
	if err := a.waitUntilReady(ctx, o); err != nil {
		process.Stop()
		return nil, fmt.Errorf("start the agent: %w; the last lines of its log:\n%s", err, lastLines(o.Log))
	}
	return a, nil
}

func (a *agent) waitUntilReady(ctx context.Context, o Options) error {
	if o.Timeout == 0 {
		o.Timeout = time.Minute
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var last error
	for {
		if last = a.ready(ctx); last == nil {
			return nil
		}
		select {
		case <-a.process.Done():
			return fmt.Errorf("it has ended: %w", errors.Join(a.process.Err(), errors.New("not ready before")))
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("it is not ready within %s: %w", o.Timeout, last)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (a *agent) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+"/-/ready", nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	return err
}

// lastLines are the last ten lines of a log.
func lastLines(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/test/fakes/generator"
)

// TestStage runs the API server of BenchmarkCluster if that starts this binary as a
// child process.
func TestStage(t *testing.T) {
	text := os.Getenv(generator.AsStage)
	if text == "" {
		t.Skip("this is the other process of BenchmarkCluster")
	}
	size, err := generator.SizeOf(text)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.Start(t.Context(), apiserver.Options{History: 2000})
	if err != nil {
		t.Fatal(err)
	}
	stage := generator.Stage{Size: size, Store: stageStore{server}, Kubeconfig: generator.Connection(server.Config().Host, "")}
	if err := stage.Serve(t.Context(), os.Stdin, os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// stageStore adapts the simulated API server to the generator.
type stageStore struct{ server *apiserver.Server }

func (s stageStore) Put(objects ...generator.Object) error {
	for _, object := range objects {
		if err := s.server.Put(object); err != nil {
			return err
		}
	}
	return nil
}

func (s stageStore) Delete(objects ...generator.Object) error {
	for _, object := range objects {
		if err := s.server.Delete(object); err != nil {
			return err
		}
	}
	return nil
}

// stage is the process of the API server, for the benchmark.
type stage struct {
	kubeconfig string
	orders     io.WriteCloser
	answers    *bufio.Scanner
}

// startStage returns when all objects exist. The process is this binary, or the program
// of DRA_EXPORTER_STAGE; it ends with the benchmark.
func startStage(ctx context.Context, b *testing.B, size generator.Size) *stage {
	b.Helper()
	wanted, err := json.Marshal(size)
	if err != nil {
		b.Fatal(err)
	}
	command := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStage$", "-test.timeout=30m")
	if other := os.Getenv("DRA_EXPORTER_STAGE"); other != "" {
		command = exec.CommandContext(ctx, other)
	}
	command.Env, command.Stderr = append(os.Environ(), generator.AsStage+"="+string(wanted)), os.Stderr
	orders, err := command.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	s := &stage{orders: orders, answers: bufio.NewScanner(output)}
	b.Cleanup(func() {
		_ = orders.Close()
		_, _ = io.Copy(io.Discard, output)
		_ = command.Wait() // a failure of its commands is an error of their responses
	})
	s.kubeconfig = s.answer(b)
	return s
}

// command sends a command and returns its result.
func (s *stage) command(b *testing.B, words ...any) string {
	b.Helper()
	if _, err := fmt.Fprintln(s.orders, words...); err != nil {
		b.Fatal(err)
	}
	return s.answer(b)
}

func (s *stage) answer(b *testing.B) string {
	b.Helper()
	for s.answers.Scan() {
		if answer, found := strings.CutPrefix(s.answers.Text(), generator.Prefix); found {
			return answer
		}
	}
	b.Fatal("the process with the API server has ended")
	return ""
}

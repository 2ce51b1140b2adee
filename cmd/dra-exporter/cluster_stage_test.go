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

	"github.com/dra-exporter/dra-exporter/internal/simulation/apiserver"
	"github.com/dra-exporter/dra-exporter/test/generator"
)

// TestStage is the API server of BenchmarkCluster, when that starts this
// binary once more.
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

// stageStore is the simulated API server, as the generator knows one.
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

// stage is the process, seen from the benchmark.
type stage struct {
	kubeconfig string
	orders     io.WriteCloser
	answers    *bufio.Scanner
}

// startStage returns once the cluster is there. The process is this binary, or
// the program that DRA_EXPORTER_STAGE names; it ends with the benchmark.
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
		_ = command.Wait() // what it could not do, it has told by not answering
	})
	s.kubeconfig = s.answer(b)
	return s
}

// tell gives an order and waits until it has been carried out.
func (s *stage) tell(b *testing.B, words ...any) {
	b.Helper()
	if _, err := fmt.Fprintln(s.orders, words...); err != nil {
		b.Fatal(err)
	}
	s.answer(b)
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

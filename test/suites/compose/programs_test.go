package compose

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program returns the path of a program that the makefile has built, or
// unpacked.
func program(name string) string { return filepath.Join("..", "..", ".bin", name) }

// start runs a program until the test ends, and waits until the URL answers.
func start(t *testing.T, name, ready string, arguments ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.Command(name, arguments...)
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		t.Fatalf("%v: see `make -C test compose`", err)
	}
	t.Cleanup(func() {
		process.Process.Kill()
		process.Wait()
		log.Close()
		if t.Failed() {
			t.Logf("%s:\n%s", name, read(t, log.Name()))
		}
	})
	eventually(t, name+" to be ready", func() error { return get(ready, nil) })
}

// get decodes a JSON document, or ignores the body if into is nil.
func get(address string, into any) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(address)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(into)
}

// eventually calls check every 200 ms until it succeeds, for at most two
// minutes.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("wait for %s: %v", what, err)
}

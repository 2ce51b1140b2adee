package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// registryConfig is the configuration of the registry. Its arguments are the
// folder and the address.
const registryConfig = `version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage:
  filesystem: {rootdirectory: %q}
http: {addr: %q}
`

// prepare starts the registry and makes two keys: the signer's, and another one
// that signs nothing.
func (r *rehearsal) prepare(ctx context.Context) error {
	address, err := porttest.Address()
	if err != nil {
		return err
	}
	r.release.registry = address + "/dra-exporter"
	config := filepath.Join(r.work, "registry.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, registryConfig, filepath.Join(r.work, "registry"), address), 0o600); err != nil {
		return err
	}
	r.registry, err = start(filepath.Join(r.work, "registry.log"), filepath.Join(r.bin, "rehearsal", "registry"), "serve", config)
	if err != nil {
		return err
	}
	if err := r.registry.waitReady(ctx, "http://"+address+"/v2/"); err != nil {
		return err
	}
	r.logf("the registry serves %s", address)
	for _, name := range []string{"signer", "other-signer"} {
		command := r.command(ctx, r.cosign(), "generate-key-pair", "--output-key-prefix", filepath.Join(r.work, name))
		if err := r.do(command); err != nil {
			return err
		}
	}
	return os.WriteFile(r.noRoot(), []byte(noTrustedRoot), 0o600)
}

// noTrustedRoot is a root of trust without any authority.
const noTrustedRoot = `{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}`

func (r *rehearsal) noRoot() string { return filepath.Join(r.work, "trusted-root.json") }

// key returns the path of a key without its suffix.
func (r *rehearsal) key(name string) string { return filepath.Join(r.work, name) }

func (r *rehearsal) cosign() string { return filepath.Join(r.bin, "rehearsal", "cosign") }

// signFlags are the flags with which cosign signs with a key, and asks no service.
func signFlags(key string) []string {
	return []string{"--key=" + key + ".key", "--use-signing-config=false", "--tlog-upload=false"}
}

// service is a program that runs until it is stopped.
type service struct {
	command *exec.Cmd
	log     *os.File
	exited  chan struct{} // closed when it has ended
}

func start(logFile, program string, args ...string) (*service, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	s := &service{command: exec.Command(program, args...), log: log, exited: make(chan struct{})}
	s.command.Stdout, s.command.Stderr = log, log
	s.command.Env = append(os.Environ(), "OTEL_TRACES_EXPORTER=none")
	if err := s.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", filepath.Base(program), err), log.Close())
	}
	go func() {
		_ = s.command.Wait() // it is killed
		close(s.exited)
	}()
	return s, nil
}

// waitReady waits until the URL answers 200, or the program has ended.
func (s *service) waitReady(ctx context.Context, url string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.exited:
			text, _ := os.ReadFile(s.log.Name())
			return fmt.Errorf("%s ended: %s", filepath.Base(s.command.Path), text)
		case <-time.After(100 * time.Millisecond):
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
}

func (s *service) stop() error {
	err := s.command.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-s.exited
	return errors.Join(err, s.log.Close())
}

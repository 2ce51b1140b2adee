package main

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// controlPlane is etcd and the API server.
type controlPlane struct {
	server, token string
	processes     []*exec.Cmd
}

// startPlane starts both and returns when the API server is ready. Its files
// are in the folder. stop ends it.
func startPlane(ctx context.Context, programs, folder string) (*controlPlane, error) {
	ports, err := porttest.Unused("127.0.0.1", 3)
	if err != nil {
		return nil, err
	}
	key, tokens := filepath.Join(folder, "service-account.key"), filepath.Join(folder, "tokens.csv")
	p := &controlPlane{server: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), token: rand.Text()}
	if err := writeKey(key); err != nil {
		return nil, err
	}
	if err := os.WriteFile(tokens, []byte(p.token+",admin,admin,\"system:masters\"\n"), 0o600); err != nil {
		return nil, err
	}
	clients, peers := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	err = p.start(folder, filepath.Join(programs, "etcd"),
		"--data-dir", filepath.Join(folder, "etcd"), "--unsafe-no-fsync", "--quota-backend-bytes", "8000000000",
		"--listen-client-urls", clients, "--advertise-client-urls", clients,
		"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)
	if err == nil {
		err = p.start(folder, filepath.Join(programs, "kube-apiserver"),
			"--etcd-servers", clients, "--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(ports[2]),
			"--cert-dir", folder, "--token-auth-file", tokens, "--authorization-mode", "RBAC",
			"--disable-admission-plugins", "ServiceAccount",
			"--service-account-issuer", "https://kubernetes.default.svc",
			"--service-account-key-file", key, "--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.96.0.0/16",
			"--max-requests-inflight", "0", "--max-mutating-requests-inflight", "0", "--enable-priority-and-fairness=false")
	}
	if err == nil {
		err = ready(ctx, p.server+"/readyz")
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

// start runs a program with its output in a file of its name in the folder.
func (p *controlPlane) start(folder, program string, args ...string) error {
	log, err := os.Create(filepath.Join(folder, filepath.Base(program)+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	p.processes = append(p.processes, command)
	return nil
}

// stop kills both. Their data is not used afterwards.
func (p *controlPlane) stop() {
	for i := len(p.processes) - 1; i >= 0; i-- {
		_ = p.processes[i].Process.Kill()
		_ = p.processes[i].Wait()
	}
}

func ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is self-signed
	}}
	for {
		if response, err := client.Get(url); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", url, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make the key of service accounts: %w", err)
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(path, pem.EncodeToMemory(&block), 0o600)
}

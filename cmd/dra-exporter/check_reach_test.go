package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/internal/demo"
)

// Behind a proxy, readiness is requested below the proxied path, not at the
// proxy's root; if only the page has a longer path, at the root.
func TestCheckOfAgentsBehindProxy(t *testing.T) {
	t.Parallel()
	exporter := func(ready int) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("dra_exporter_build_info 1\n")) })
		mux.HandleFunc("/-/ready", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(ready) })
		return mux
	}
	mux := http.NewServeMux()
	mux.Handle("/proxy/well/", http.StripPrefix("/proxy/well", exporter(http.StatusOK)))
	mux.Handle("/proxy/starting/", http.StripPrefix("/proxy/starting", exporter(http.StatusServiceUnavailable)))
	mux.HandleFunc("/root/page", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("dra_exporter_build_info 1\n")) })
	mux.HandleFunc("/-/ready", func(http.ResponseWriter, *http.Request) {}) // the proxy's own
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	found := runCheck(t, nil, "agent", server.URL+"/proxy/well/metrics", server.URL+"/proxy/starting/metrics", server.URL+"/root/page")
	found.expectFinding(t, server.URL+"/proxy/well/metrics", "cluster role", check.OK, "version")
	found.expectFinding(t, server.URL+"/proxy/starting/metrics", "cluster role", check.Failure, "is not ready: 503")
	found.expectFinding(t, server.URL+"/root/page", "cluster role", check.OK, "version")
}

// A wait of more than a second is reported with its reason.
func TestCheckReportsProgress(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := demo.WriteKubeconfig(kubeconfig, &rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	for what, args := range map[string][]string{
		"0 of 1 exporters":   {"agent", server.URL, "--timeout=3s"},
		"the API server":     {"cluster", "--kubeconfig=" + kubeconfig, "--timeout=3s"},
		", and the API serv": {"node", "--node.name=n", "--kubeconfig=" + kubeconfig, "--device.source=rdma", "--timeout=3s"},
	} {
		if found := runCheck(t, nil, args...); !strings.Contains(found.stderr, "still reading: ") || !strings.Contains(found.stderr, what) {
			t.Errorf("no progress of %s is shown: %s", what, found.stderr)
		}
	}
}

// Reports may be shown to others: they contain no credentials.
func TestCheckHidesPasswords(t *testing.T) {
	t.Parallel()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := demo.WriteKubeconfig(kubeconfig, &rest.Config{Host: "http://me:hunter2@127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	found := runCheck(t, nil, "cluster", "--kubeconfig="+kubeconfig)
	found.expectFinding(t, "API server", "connection", check.Failure, "the request to http://127.0.0.1:1 failed")
	if text := fmt.Sprint(found); strings.Contains(text, "hunter2") {
		t.Errorf("a password is shown: %s", text)
	}
	for _, address := range []string{"ftp://me:hunter2@a:1", "http://me:hunter2%zz@a:1"} {
		command := program(t.Context(), "check", "agent", address)
		said, err := command.CombinedOutput()
		if err == nil || strings.Contains(string(said), "hunter2") || !strings.Contains(string(said), "http://HOST:PORT") {
			t.Errorf("%v: %s", err, said)
		}
	}
}

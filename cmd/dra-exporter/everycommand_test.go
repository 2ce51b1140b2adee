package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// badServer is a server from which nothing good comes.
type badServer struct {
	name    string
	url     string
	timeout string // of the command
}

// badServers are those that a command may meet.
func badServers(t *testing.T) []badServer {
	t.Helper()
	simulated := func(refuse int, objects ...apiserver.Object) string {
		server, err := apiserver.Start(t.Context(), apiserver.Options{Intercept: func(apiserver.Request) int { return refuse }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(server.Stop)
		if err := server.Put(objects...); err != nil {
			t.Fatal(err)
		}
		return server.Config().Host
	}
	answering := func(answer http.HandlerFunc) string {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		return server.URL
	}
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	elsewhere := answering(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("a redirect was followed: %s", r.URL) })
	elsewhere = strings.Replace(elsewhere, "127.0.0.1", "localhost", 1)
	hang := make(chan struct{})
	node := &corev1.Node{}
	node.Name = "node-a"
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("128Gi"), corev1.ResourcePods: resource.MustParse("110")}
	class := &resourcev1.DeviceClass{}
	class.Name = "gpu.nvidia.com"
	servers := []badServer{
		{"refuses connections", "http://" + closed.Addr().String(), "1m"},
		{"an empty cluster", simulated(0), "1m"},
		{"no drivers", simulated(0, node, class), "1m"},
		{"no rights", simulated(http.StatusForbidden), "1m"},
		{"hangs", answering(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
		}), "1s"},
		{"redirects", answering(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere+r.URL.Path, http.StatusTemporaryRedirect)
		}), "1m"},
		{"forges lines", answering(func(w http.ResponseWriter, r *http.Request) {
			text := strings.Repeat("x\x1b[2J\r\nforged: all is well\n", 2200)
			if r.URL.Path == "/api/v1/query" {
				w.WriteHeader(http.StatusUnprocessableEntity)
				_ = json.NewEncoder(w).Encode(map[string]string{"status": "error", "errorType": "execution", "error": text})
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, text)
		}), "1m"},
	}
	t.Cleanup(func() { close(hang) }) // before its server is closed
	return servers
}

// TestEveryCommand: with a server from which nothing good comes, a command ends, with a
// status and a first line that say so. It does not panic, follows no redirect to another
// server, and what a server answers is neither long nor a line of its own.
func TestEveryCommand(t *testing.T) {
	servers := badServers(t)
	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	if err := os.WriteFile(manifest, []byte(`{kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := []struct {
		name string
		args []string
	}{
		{"check cluster", []string{"check", "--timeout=TIMEOUT", "cluster", "--kubeconfig=KUBECONFIG"}},
		{"check agent", []string{"check", "--timeout=TIMEOUT", "agent", "URL"}},
		{"explain pod", []string{"explain", "pod", "p", "--timeout=TIMEOUT", "--kubeconfig=KUBECONFIG"}},
		{"fit", []string{"fit", "-f", manifest, "--timeout=TIMEOUT", "--kubeconfig=KUBECONFIG"}},
		{"top", []string{"top", "--once", "--timeout=TIMEOUT", "--kubeconfig=KUBECONFIG"}},
		{"top of an agent", []string{"top", "--once", "--timeout=TIMEOUT", "--url=URL"}},
		{"topology", []string{"topology", "node", "--timeout=TIMEOUT", "--kubeconfig=KUBECONFIG"}},
		{"topology of an agent", []string{"topology", "node", "--timeout=TIMEOUT", "--url=URL"}},
		{"advise", []string{"advise", "--timeout=TIMEOUT", "--prometheus.url=URL"}},
	}
	rows := make([]string, len(commands)*len(servers))
	var running sync.WaitGroup
	for i, command := range commands {
		for j, server := range servers {
			kubeconfig, name := kubeconfigOf(t, server.url), command.name
			running.Go(func() {
				var args []string
				for _, arg := range command.args {
					args = append(args, strings.NewReplacer("TIMEOUT", server.timeout, "KUBECONFIG", kubeconfig, "URL", server.url).Replace(arg))
				}
				var stdout, stderr bytes.Buffer
				command := program(t.Context(), args...)
				command.Stdout, command.Stderr = &stdout, &stderr
				_ = command.Run() // its exit status is checked
				code := command.ProcessState.ExitCode()
				rows[i*len(servers)+j] = fmt.Sprintf("%-20s | %-19s | %d | %s", name, server.name, code, firstLine(stdout.String(), stderr.String()))
				if code == 0 && server.name != "an empty cluster" && server.name != "no drivers" {
					t.Errorf("%s, and the server %s: exit status 0\n%s", name, server.name, stdout.String())
				}
				for line := range strings.Lines(stdout.String() + stderr.String()) {
					if strings.HasPrefix(line, "forged") || strings.ContainsAny(line, "\x1b\r") || len(line) > 4096 {
						t.Errorf("%s, and the server %s: %.200q", name, server.name, line)
					}
				}
			})
		}
	}
	running.Wait()
	metrictest.CompareGolden(t, "testdata/everycommand.txt", strings.Join(rows, "\n")+"\n")
}

// TestAbsurdInput: nonsense on the command line, and in a manifest, is refused.
func TestAbsurdInput(t *testing.T) {
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	kubeconfig := kubeconfigOf(t, server.Config().Host)
	manifest := func(text string) []string {
		path := filepath.Join(t.TempDir(), "pod.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return []string{"fit", "--kubeconfig=" + kubeconfig, "-f", path}
	}
	pods := `, spec: {template: {spec: {containers: [{name: c, resources: {limits: {a/b: 1}}}]}}}}`
	long := strings.Repeat("x", 300)
	var rows []string
	for _, test := range []struct {
		name string
		args []string
	}{
		{"fit, a device file", []string{"fit", "-f", "/dev/zero"}},
		{"fit, a folder", []string{"fit", "-f", "/"}},
		{"fit, no file", []string{"fit", "-f", "absent"}},
		{"fit, no YAML", manifest("\x00\x01")},
		{"fit, nothing", manifest("")},
		{"fit, a forged kind", manifest(`{kind: "x\n\nforged: all fit", metadata: {name: a}` + pods)},
		{"fit, a forged name", manifest(`{kind: Job, metadata: {name: "x\n\nforged: all fit"}` + pods)},
		{"fit, a long name", manifest(`{kind: Job, metadata: {name: ` + long + `}` + pods)},
		{"fit, an error of YAML", manifest("kind: \"x\n\nforged\": [")},
		{"fit, many pods", append(manifest(`{kind: Job, metadata: {name: a}`+pods), "--count=9223372036854775807")},
		{"fit, no pods", append(manifest(`{kind: Job, metadata: {name: a}`+pods), "--count=-1")},
		{"fit, no time", append(manifest(`{kind: Job, metadata: {name: a}`+pods), "--timeout=0s")},
		{"explain, a path", []string{"explain", "pod", "a/b/c", "--kubeconfig=" + kubeconfig}},
		{"explain, forged", []string{"explain", "pod", "a\nforged", "--kubeconfig=" + kubeconfig}},
		{"top, no address", []string{"top", "--once", "--url=x y:1"}},
		{"topology, no address", []string{"topology", "node", "--url=ftp://x"}},
		{"advise, no address", []string{"advise", "--prometheus.url=forged\n"}},
		{"advise, another scheme", []string{"advise", "--prometheus.url=ftp://x"}},
		{"check agent, no address", []string{"check", "agent", "::"}},
		{"check cluster, no file", []string{"check", "cluster", "--kubeconfig=absent"}},
		{"no command", []string{"forged\n\x1b[2J"}},
	} {
		var stdout, stderr bytes.Buffer
		code := run(test.args, &stdout, &stderr)
		for line := range strings.Lines(stdout.String() + stderr.String()) {
			if strings.HasPrefix(line, "forged") || strings.ContainsAny(line, "\x1b\r\x00") || code == 0 {
				t.Errorf("%s: exit status %d: %.200q", test.name, code, line)
			}
		}
		line := firstLine(stdout.String(), stderr.String())
		rows = append(rows, fmt.Sprintf("%-24s | %d | %s", test.name, code, regexp.MustCompile(`/\S+/pod.yaml`).ReplaceAllString(line, "FILE")))
	}
	metrictest.CompareGolden(t, "testdata/absurdinput.txt", strings.Join(rows, "\n")+"\n")
}

// firstLine returns the first line of an error, or else of the output, without what
// differs from run to run.
func firstLine(stdout, stderr string) string {
	text := stdout
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "dra-exporter: ") {
			text = line
		}
	}
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if letters := []rune(line); len(letters) > 250 {
		line = string(letters[:250]) + "…"
	}
	return regexp.MustCompile(`(127\.0\.0\.1|localhost):\d+`).ReplaceAllString(line, "$1:PORT")
}

// TestEveryRole: the roles and check of a node run without any of what they read, say
// where they listen, and end well.
func TestEveryRole(t *testing.T) {
	for _, server := range badServers(t) {
		for _, role := range []string{"node", "cluster"} {
			t.Run(role+", "+server.name, func(t *testing.T) {
				t.Parallel()
				args := []string{role, "--kubeconfig=" + kubeconfigOf(t, server.url), "--web.listen-address=127.0.0.1:0"}
				if role == "node" {
					folder := t.TempDir()
					args = append(args, "--node.name=n", "--device.source=rdma", "--kubelet.pod-resources-socket="+filepath.Join(folder, "none.sock"), "--cdi.dir="+folder)
				}
				ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
				defer stop()
				command := program(ctx, args...)
				output, err := command.StderrPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := command.Start(); err != nil {
					t.Fatal(err)
				}
				var log bytes.Buffer
				for lines := bufio.NewScanner(output); lines.Scan(); {
					fmt.Fprintln(&log, lines.Text())
					if strings.Contains(strings.ToLower(lines.Text()), "listening on") {
						_ = command.Process.Signal(syscall.SIGTERM) // Wait reports what went wrong
					}
				}
				if err := command.Wait(); err != nil || strings.Contains(log.String(), "panic") {
					t.Errorf("%v\n%s", err, log.String())
				}
			})
		}
	}
}

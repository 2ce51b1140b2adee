package examples

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// names returns the first groups of all matches.
func names(text, pattern string) (found []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

// TestFaults: with any fault of the agent, the training ends with every line
// of loss, reports why values are unknown, and invents no number. The hanging
// server hangs until the training has ended, so that a client that waits for
// it never ends.
func TestFaults(t *testing.T) {
	answers := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
	}
	for name, fault := range map[string]struct {
		handler http.HandlerFunc
		says    string
	}{
		"hangs":   {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "timed out"},
		"drips":   {drip, "no answer in time"},
		"endless": {endless, "longer than"},
		"cut":     {cut, "Unterminated"},
		"busy":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "503"},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost/", http.StatusFound)
		}, "302"},
		"html":      {answers("<html>not found</html>"), "Expecting value"},
		"list":      {answers("[]"), "no JSON object"},
		"deep":      {answers(strings.Repeat("[", 1<<20)), "recursion"},
		"text":      {answers(strings.Replace(document, `"heldSeconds": 1`, `"heldSeconds": "long"`, 1)), "heldSeconds is no number"},
		"huge":      {answers(strings.Replace(document, `"heldSeconds": 1`, `"heldSeconds": 1`+strings.Repeat("0", 400), 1)), "large"},
		"no claims": {answers(`{"node": "gpu-node-1", "claims": null}`), "knows no claim"},
		"elsewhere": {answers(`{"node": "gpu-node-2", "claims": []}`), "internalTrafficPolicy"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(fault.handler)
			defer server.Close()
			unknown(t, server.URL, fault.says)
		})
	}
	t.Run("away", func(t *testing.T) { unknown(t, "http://"+porttest.OneAddress(t), "refused") })
	t.Run("no such name", func(t *testing.T) { unknown(t, "http://agent.invalid:9420", "http://agent.invalid:9420") })
}

// document is a minimal answer of the agent.
const document = `{"node": "gpu-node-1", "claims": [{"namespace": "ml-training", "name": "gpus", "adminAccess": false,
	"consumers": [{"pod": "llama-pretrain-mlttn", "podUid": "u", "container": "c"}],
	"devices": [{"uuid": "GPU-1", "held": true, "heldSeconds": 1, "accounts": []}]}]}`

func unknown(t *testing.T, url, says string) {
	t.Helper()
	lines, log := runTraining(t, []string{"DRA_EXPORTER_URL=" + url, "NODE_NAME=gpu-node-1", "CLAIMWATCH_INTERVAL=0.1", "CLAIMWATCH_TIMEOUT=0.5"},
		"--steps=200", "--log-every=20")
	if len(lines) != 11 || lines[10].Steps != 200 {
		t.Fatalf("there are %d lines", len(lines))
	}
	for _, line := range lines {
		if line.Loss <= 0 || line.Claim != (claim{Unknown: line.Claim.Unknown}) {
			t.Errorf("it has no loss, or invents a number: %+v", line)
		}
	}
	if got := lines[10].Claim.Unknown; !strings.Contains(got, says) {
		t.Errorf("it says %q, and nothing of %q", got, says)
	}
	if strings.Contains(log, "Traceback") || strings.Count(log, "\n") > 3 {
		t.Errorf("it is to say it once:\n%s", log)
	}
}

// drip sends a byte periodically, so that no single read times out.
func drip(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		io.WriteString(w, " ")
		w.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

func endless(w http.ResponseWriter, r *http.Request) {
	for block := strings.Repeat(" ", 1<<16); r.Context().Err() == nil; {
		if _, err := io.WriteString(w, block); err != nil {
			return
		}
	}
}

// cut ends in the middle of its body.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, `{"node": "gpu`)
}

// proxy forwards the agent's answers if allowed returns true.
func proxy(t *testing.T, agent string, allowed func(w http.ResponseWriter, r *http.Request) bool) http.Handler {
	t.Helper()
	target, err := url.Parse(agent)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})
}

// TestAgentReplaced: an agent that is replaced while the training runs costs a
// few answers, and nothing of the counters.
func TestAgentReplaced(t *testing.T) {
	agent, _ := startDemo(t)
	var requests atomic.Int64
	server := httptest.NewServer(proxy(t, agent, func(w http.ResponseWriter, _ *http.Request) bool {
		away := requests.Add(1)
		if away > 2 && away < 6 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return false
		}
		return true
	}))
	defer server.Close()
	lines, log := runTraining(t, []string{"DRA_EXPORTER_URL=" + server.URL, "CLAIMWATCH_INTERVAL=0.5"}, "--steps=1200", "--log-every=100")
	if strings.Count(log, ": 503 ") != 1 || strings.Count(log, "there again") != 1 {
		t.Errorf("it is to say once that the agent is away, and once that it is back:\n%s", log)
	}
	last := lines[len(lines)-1].Claim
	if last.Unknown != "" || last.HeldSeconds == nil || last.BusySeconds == nil {
		t.Fatalf("nothing is known at the end: %+v", last)
	}
	sum := 0.0
	for _, line := range lines[:len(lines)-1] {
		if line.Claim.HeldSeconds != nil {
			sum += *line.Claim.HeldSeconds
		}
	}
	within(t, "the sum of the lines' held_seconds", &sum, *last.HeldSeconds/2, *last.HeldSeconds+0.1*float64(len(lines)))
}

// TestCredentials: TLS with a CA of its own, and each kind of authorization.
// Without credentials, or without the CA, there is no data.
func TestCredentials(t *testing.T) {
	agent, _ := startDemo(t)
	folder := t.TempDir()
	server := httptest.NewTLSServer(proxy(t, agent, func(w http.ResponseWriter, r *http.Request) bool {
		name, password, _ := r.BasicAuth()
		if r.Header.Get("Authorization") == "Bearer of good news" || name == "train" && password == "p:w" {
			return true
		}
		w.WriteHeader(http.StatusUnauthorized)
		return false
	}))
	defer server.Close()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := "CLAIMWATCH_CA_FILE=" + file("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	token := "CLAIMWATCH_TOKEN_FILE=" + file("token", "of good news\n")
	basic := "CLAIMWATCH_BASIC_AUTH_FILE=" + file("basic", "train:p:w\n")
	for _, try := range []struct {
		environment []string
		unknown     string
	}{
		{[]string{ca, token}, ""},
		{[]string{ca, basic}, ""},
		{[]string{ca}, "401"},
		{[]string{token}, "CERTIFICATE_VERIFY_FAILED"},
		{[]string{ca, "CLAIMWATCH_TOKEN_FILE=" + folder + "/none"}, "No such file"},
	} {
		lines, _ := runTraining(t, append(try.environment, "DRA_EXPORTER_URL="+server.URL, "CLAIMWATCH_INTERVAL=0.2"), "--steps=200", "--log-every=100")
		got := lines[len(lines)-1].Claim
		if !strings.Contains(got.Unknown, try.unknown) || (try.unknown == "") != (got.HeldSeconds != nil) {
			t.Errorf("with %v: %s", try.environment, fmt.Sprintf("%+v", got))
		}
	}
}

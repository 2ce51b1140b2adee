package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/internal/demo"
)

// serveAgent serves the golden answers of internal/page, with a password unless
// it is empty.
func serveAgent(t testing.TB, password string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given, _ := r.BasicAuth(); given != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		name := filepath.Base(r.URL.Path)
		if r.URL.Query().Get("devices") == "all" {
			name = "devices"
		}
		body, err := os.ReadFile(filepath.Join("../../internal/page/testdata", name+".json"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// serveRole serves the JSON of one role only: claims or pending.
func serveRole(t testing.TB, document string) string {
	t.Helper()
	answer, err := os.ReadFile("../../internal/page/testdata/" + document + ".json")
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	routes.HandleFunc("/api/v1/"+document, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	return server.URL
}

// A table without rows states that nothing is held only if an agent has reported
// this.
func TestTopWithUnknownClaims(t *testing.T) {
	agent := "--url=" + serveRole(t, "claims")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no listener":            {[]string{"--url=127.0.0.1:1"}, "No agent could be read, so the claims that hold devices are unknown."},
		"the cluster role":       {[]string{"--url=" + serveRole(t, "pending")}, "No agent could be read"},
		"a node without agent":   {[]string{agent, "--node=elsewhere"}, "No agent of elsewhere has answered"},
		"a namespace without":    {[]string{agent, "-n", "unused"}, "No claim of the namespace unused holds a device here."},
		"one of two fails":       {[]string{agent, "--url=127.0.0.1:1", "-n", "unused"}, "according to 1 of 2 agents"},
		"an agent for a cluster": {[]string{agent, "--cluster-" + agent[2:]}, "pending claims: not known: this is a node agent, not the cluster role"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, _ := runTopProgram(t, test.args...)
			if !strings.Contains(stdout, test.want) {
				t.Errorf("want %q:\n%s", test.want, stdout)
			}
			if strings.Contains(test.want, "are unknown") && (strings.Contains(stdout, "No claim") || strings.Contains(stdout, "0 claims")) {
				t.Errorf("it says that nothing is held:\n%s", stdout)
			}
		})
	}
}

func runTopProgram(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	command := program(ctx, append([]string{"top"}, args...)...)
	command.Env = append(command.Env, "KUBERNETES_SERVICE_HOST=", "KUBECONFIG=/does/not/exist", "HOME=/does/not/exist")
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	_ = command.Run() // its exit code is checked
	return out.String(), errors.String(), command.ProcessState.ExitCode()
}

// If the output is not a terminal, the table is printed once, with the agents
// that failed.
func TestTopOnce(t *testing.T) {
	stdout, stderr, code := runTopProgram(t, "--url="+serveAgent(t, ""), "--url=127.0.0.1:1", "--cluster-url="+serveAgent(t, ""), "--sort=name")
	for _, want := range []string{", on 1 node, ", "pending claims: 10 (and 1 gated)", "debug-session", "127.0.0.1:1: ", "connection refused"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not there", want)
		}
	}
	if code != 0 || stderr != "" || strings.Contains(stdout, "\x1b") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, stdout)
	}
}

func TestTopJSON(t *testing.T) {
	stdout, _, code := runTopProgram(t, "--url="+serveAgent(t, ""), "-o", "json", "-n", "team-ml")
	var document struct {
		APIVersion string
		Answered   int
		Devices    []struct{ Namespace, Claim string }
	}
	if err := json.Unmarshal([]byte(stdout), &document); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d\n%s", err, code, stdout)
	}
	if document.APIVersion != "v1" || document.Answered != 1 || len(document.Devices) != 1 || document.Devices[0].Claim != "debug-session" {
		t.Errorf("%+v", document)
	}
}

// Passwords are read from a file or the address, and are in no message.
func TestTopWithPassword(t *testing.T) {
	config := filepath.Join(t.TempDir(), "client.yaml")
	if err := os.WriteFile(config, []byte("basic_auth: {username: me, password: hunter2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := serveAgent(t, "hunter2")
	within := strings.Replace(address, "http://", "http://me:hunter2@", 1)
	for _, args := range [][]string{{"--url=" + address, "--http.config.file=" + config}, {"--url=" + within}} {
		if stdout, stderr, code := runTopProgram(t, args...); code != 0 || strings.Contains(stdout+stderr, "hunter2") {
			t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
		}
	}
	wrong := strings.Replace(within, "hunter2", "wrongpass", 1)
	if stdout, stderr, code := runTopProgram(t, "--url="+wrong); code != 1 || !strings.Contains(stderr, "401") || strings.Contains(stdout+stderr, "wrongpass") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A wait of more than a second for the API server is reported.
func TestTopReportsProgress(t *testing.T) {
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(1500 * time.Millisecond)
		_, _ = w.Write([]byte(`{"items": []}`))
	}))
	t.Cleanup(slow.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := demo.WriteKubeconfig(path, &rest.Config{Host: slow.URL}); err != nil {
		t.Fatal(err)
	}
	if _, stderr, _ := runTopProgram(t, "--kubeconfig="+path); !strings.Contains(stderr, "still reading: the exporters' pods at the API server") {
		t.Errorf("no progress is shown: %s", stderr)
	}
}

// Invalid flags are refused with a reason that names the flag.
func TestTopStartErrors(t *testing.T) {
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind": "Status", "message": "pods is forbidden: User \"me\" cannot list resource \"pods\""}`))
	}))
	t.Cleanup(forbidden.Close)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"items": []}`)) }))
	t.Cleanup(empty.Close)
	kubeconfig := func(server string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		text := `{"clusters": [{"name": "c", "cluster": {"server": "` + server + `"}}], "contexts": [{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "--kubeconfig=" + path
	}
	environment := []string{"no API server", "no permission to list", "nothing is installed", "all are silent", "a missing file", "no listener", "the cluster role's", "the path of a page"}
	for name, test := range map[string]struct{ args, want []string }{
		"no API server":             {nil, []string{"--kubeconfig", "--url"}},
		"no permission to list":     {[]string{kubeconfig(forbidden.URL)}, []string{`cannot list resource "pods"`, "pods/proxy", "--exporter-namespace", "docs/top.md"}},
		"nothing is installed":      {[]string{kubeconfig(empty.URL)}, []string{"app.kubernetes.io/name=dra-exporter", "installed", "--url"}},
		"all are silent":            {[]string{"--url=127.0.0.1:1"}, []string{"no agent has answered", "connection refused"}},
		"too often":                 {[]string{"--url=a:1", "--interval=1ms"}, []string{"--interval"}},
		"too short":                 {[]string{"--url=a:1", "--timeout=0s"}, []string{"--timeout"}},
		"no address":                {[]string{"--url=ftp://me:hunter2@a"}, []string{"ftp://xxxxx@a", "http://HOST:PORT"}},
		"no address at all":         {[]string{"--url=http://me:hunter2@[a"}, []string{"http://HOST:PORT"}},
		"twice the same":            {[]string{"--url=a:1", "--url=http://a:1"}, []string{"twice"}},
		"the cluster role alone":    {[]string{"--cluster-url=a:1"}, []string{"--cluster-url", "--url"}},
		"both ways":                 {[]string{"--url=a:1", "--context=x"}, []string{"--context"}},
		"a file without an address": {[]string{"--http.config.file=x"}, []string{"--http.config.file"}},
		"a missing file":            {[]string{"--url=a:1", "--http.config.file=/does/not/exist"}, []string{"--http.config.file", "/does/not/exist"}},
		"sorted by what is no key":  {[]string{"--url=a:1", "--sort=size"}, []string{"dra-exporter: --sort: ", "utilization"}},
		"no format":                 {[]string{"--url=a:1", "--url=b:1", "-o", "yaml"}, []string{"dra-exporter: --output: ", "json"}},
		"no duration":               {[]string{"--url=a:1", "--cluster-url=a:2", "--interval=soon"}, []string{"dra-exporter: --interval: ", "soon"}},
		"the wrong of two":          {[]string{"--url=a:1", "--url=ftp://b", "--sort=name"}, []string{"dra-exporter: --url: ", "ftp://b"}},
		"no listener":               {[]string{"--url=127.0.0.1:1"}, []string{"connection refused", "9420"}},
		"the cluster role's":        {[]string{"--url=" + serveRole(t, "pending")}, []string{"this is the cluster role", "node agent", "9420", "--cluster-url"}},
		"the path of a page":        {[]string{"--url=" + serveRole(t, "claims") + "/metrics"}, []string{"404", "without the path", "http://HOST:9420"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, stderr, code := runTopProgram(t, test.args...)
			want := 2 // the command line itself is wrong
			if slices.Contains(environment, name) {
				want = 1
			}
			if code != want || strings.Contains(stderr, "hunter2") {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("the message does not name %s: %s", want, stderr)
				}
			}
		})
	}
}

package top

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// agent serves like a node agent.
func testAgent(t testing.TB, name string, handler http.HandlerFunc) Agent {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	return Agent{Name: name, Base: base}
}

func answers(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/claims" && r.URL.Path != "/api/v1/pending" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}
}

// testClient returns a Client with its own connections.
func testClient(t testing.TB) *Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{
		HTTP: &http.Client{Transport: transport, CheckRedirect: noRedirects}, Clock: clock.System(), Timeout: 30 * time.Second, Parallel: 4,
	}
}

// hangs never answers, until the test ends.
func hangingAgent(t testing.TB) http.HandlerFunc {
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}
}

// Each agent that fails is reported with a reason; the others are not affected.
func TestRoundWithFaults(t *testing.T) {
	good := withReplies(t, "claims.json")
	elsewhere := testAgent(t, "elsewhere", func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked %s at the redirect", r.URL) })
	zipped := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		packer := gzip.NewWriter(w)
		_, _ = packer.Write(bytes.Repeat([]byte(" "), MaxBody+2))
		_ = packer.Close()
	}
	dead := testAgent(t, "dead", answers(good))
	dead.Base.Host = "127.0.0.1:1"
	dead.Base.User = url.UserPassword("me", "hunter2")
	pending := testAgent(t, "no pod yet", answers(good))
	pending.Err = errors.New("its pod is Pending")
	faults := map[string]struct {
		agent Agent
		want  string
	}{
		"no snapshot": {testAgent(t, "", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"apiVersion": "v1", "error": "no snapshot yet"}`)
		}), "503 Service Unavailable: no snapshot yet"},
		"forbidden": {testAgent(t, "", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind": "Status", "message": "pods \"x\" is forbidden"}`)
		}), `403 Forbidden: pods "x" is forbidden`},
		"a page of an error": {testAgent(t, "", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "bad\x1b[31m gateway\nmore", http.StatusBadGateway)
		}), "502 Bad Gateway: bad?[31m gateway"},
		"leads elsewhere": {testAgent(t, "", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.Base.String(), http.StatusFound)
		}), "302 Found"},
		"no JSON":   {testAgent(t, "", answers([]byte("<html>"))), "not a document of dra-exporter"},
		"too large": {testAgent(t, "", answers(make([]byte, MaxBody+1))), "larger than 4 MiB"},
		"endless": {testAgent(t, "", func(w http.ResponseWriter, r *http.Request) {
			for blanks := make([]byte, 1<<16); r.Context().Err() == nil; {
				_, _ = w.Write(blanks)
			}
		}), "larger than 4 MiB"},
		"too large unpacked": {testAgent(t, "", zipped), "larger than 4 MiB"},
		"breaks off": {testAgent(t, "", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		}), "unexpected EOF"},
		"dead":          {dead, "connection refused"},
		"not there yet": {pending, "its pod is Pending"},
	}
	var listing AgentList
	for name, fault := range faults {
		fault.agent.Name = name
		listing.Agents = append(listing.Agents, fault.agent, testAgent(t, "well beside "+name, answers(good)))
	}
	reading := round(t, testClient(t), listing)
	if reading.Answered != len(faults) || len(reading.Rows) != len(faults)*len(claims(t, "claims.json").Rows) {
		t.Errorf("%d agents have answered with %d rows", reading.Answered, len(reading.Rows))
	}
	if len(reading.Failures) != len(faults) {
		t.Fatalf("failures: %+v", reading.Failures)
	}
	for _, failure := range reading.Failures {
		if want := faults[failure.Agent].want; !strings.Contains(failure.Error, want) || strings.Contains(failure.Error, "hunter2") {
			t.Errorf("%s: %s, want %s", failure.Agent, failure.Error, want)
		}
	}
}

func round(t testing.TB, client *Client, listing AgentList) FleetState {
	t.Helper()
	fleet := NewFleet()
	client.Round(t.Context(), listing, func(change FleetChange) { change(fleet) })
	if asked, all := fleet.Asked(); asked != all {
		t.Errorf("%d of %d agents were asked", asked, all)
	}
	return fleet.Reading(noon, Wanted{})
}

// An agent that hangs takes its deadline, and the number of concurrent requests
// is bounded.
func TestRoundWithHangingAgents(t *testing.T) {
	var listing AgentList
	var now, most atomic.Int32
	good, hanging := withReplies(t, "claims.json"), hangingAgent(t)
	for i := range 12 {
		listing.Agents = append(listing.Agents, testAgent(t, fmt.Sprintf("well-%d", i), func(w http.ResponseWriter, r *http.Request) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(5 * time.Millisecond)
			answers(good)(w, r)
		}), testAgent(t, fmt.Sprintf("hangs-%d", i), hanging))
	}
	client := testClient(t)
	client.Timeout = 2 * time.Second
	reading := round(t, client, listing)
	if reading.Answered != 12 || len(reading.Failures) != 12 || !strings.Contains(reading.Failures[0].Error, "no answer in time (2s)") {
		t.Errorf("%d answered, failures %+v", reading.Answered, reading.Failures)
	}
	if most.Load() > int32(client.Parallel) {
		t.Errorf("%d were asked at a time", most.Load())
	}
}

// The request is for the selected namespaces, with the password of the address.
func TestRequest(t *testing.T) {
	asked := make(chan *http.Request, 2)
	to := testAgent(t, "a", func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		answers([]byte(`{"apiVersion": "v1", "claims": []}`))(w, r)
	})
	to.Base = to.Base.JoinPath("prefix")
	to.Base.User = url.UserPassword("me", "hunter2")
	client := testClient(t)
	client.Namespaces = []string{"team a", "b"}
	reading := round(t, client, AgentList{Agents: []Agent{to}})
	request := <-asked
	user, password, _ := request.BasicAuth()
	if request.URL.String() != "/prefix/api/v1/claims?namespace=team+a&namespace=b" || user != "me" || password != "hunter2" {
		t.Errorf("asked %s as %s:%s", request.URL, user, password)
	}
	if len(reading.Failures) != 1 || !strings.Contains(reading.Failures[0].Error, "404") { // answers has no prefix
		t.Errorf("%+v", reading)
	}
}

// The pending claims are those of the cluster role; if it cannot be read, that
// is reported.
func TestWaiting(t *testing.T) {
	cluster := testAgent(t, "cluster", answers(withReplies(t, "pending.json")))
	reading := round(t, testClient(t), AgentList{Cluster: &cluster})
	if reading.Pending == nil || reading.Pending.Count < 5 || len(reading.Pending.Reasons) < 3 || reading.Pending.Oldest.IsZero() {
		t.Errorf("%+v", reading.Pending)
	}
	broken := testAgent(t, "cluster", answers([]byte("x")))
	reading = round(t, testClient(t), AgentList{Cluster: &broken})
	if reading.Pending != nil || !strings.Contains(reading.PendingError, "not a document") {
		t.Errorf("%+v, %s", reading.Pending, reading.PendingError)
	}
	reading = round(t, testClient(t), AgentList{Err: errors.New("no cluster role found")})
	if reading.PendingError != "no cluster role found" {
		t.Errorf("%s", reading.PendingError)
	}
}

// A round that is cancelled ends at once, without failures of agents.
func TestRoundEndsWithContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	asked := make(chan struct{}, 1)
	hanging := hangingAgent(t)
	one := testAgent(t, "a", func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		hanging(w, r)
	})
	go func() {
		<-asked
		stop()
	}()
	fleet := NewFleet()
	testClient(t).Round(ctx, AgentList{Agents: []Agent{one}}, func(change FleetChange) { change(fleet) })
	if reading := fleet.Reading(noon, Wanted{}); len(reading.Failures) != 0 {
		t.Errorf("%+v", reading.Failures)
	}
}

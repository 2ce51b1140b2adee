package sample

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const metrics = `# TYPE dra_exporter_build_info gauge
dra_exporter_build_info{version="1.2.3"} 1
# TYPE dra_device_power_watts gauge
dra_device_power_watts{uuid="GPU-1"} 300
# TYPE dra_exporter_source_up gauge
dra_exporter_source_up{source="nvml"} 1
# TYPE go_goroutines gauge
go_goroutines 20
`

// script is a program that stands for nvidia-smi.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// collect collects until a condition is true, and returns all that was taken.
func collect(t *testing.T, o Options, condition func(Taken) bool) (*Collector, Taken) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Interval, o.SMIInterval = time.Millisecond, time.Millisecond
	c := New()
	c.Start(ctx, o)
	var all Taken
	for !condition(all) {
		more := c.Take()
		all.Observations.Agent = append(all.Observations.Agent, more.Observations.Agent...)
		all.Observations.SMI = append(all.Observations.SMI, more.Observations.SMI...)
		all.Usage = append(all.Usage, more.Usage...)
		all.Failures = append(all.Failures, more.Failures...)
		time.Sleep(time.Millisecond)
	}
	cancel()
	c.Wait()
	return c, all
}

func TestCollector(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = w.Write([]byte(metrics))
		}
	}))
	defer server.Close()
	xml, err := filepath.Abs("../smi/testdata/v13-h200-580.xml")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c, taken := collect(t, Options{URL: server.URL, AgentPID: os.Getpid(), SMI: script(t, `[ "$*" = "-q -x" ] && exec cat `+xml)}, func(all Taken) bool {
		return len(all.Observations.Agent) > 1 && len(all.Observations.SMI) > 1 && len(all.Usage) > 1
	})
	first, second := taken.Observations.Agent[0], taken.Observations.Agent[1]
	if first.Time.Before(began) || !first.Time.Before(second.Time) {
		t.Errorf("pages of %s and %s", first.Time, second.Time)
	}
	if first.Families["dra_device_power_watts"].GetMetric()[0].GetGauge().GetValue() != 300 || len(first.Families) != 2 || c.AgentVersion() != "1.2.3" {
		t.Errorf("the page is %v, of version %q", first.Families, c.AgentVersion())
	}
	if log := taken.Observations.SMI[0]; log.Log.GPUs[0].UUID == "" || log.Time.Before(began) {
		t.Errorf("nvidia-smi is %+v", log)
	}
	if u := taken.Usage[0]; u.Resident <= 0 || u.CPU < 0 || u.Time.Before(began) {
		t.Errorf("the use is %+v", u)
	}
	if len(taken.Failures) != 0 {
		t.Errorf("failures: %q", taken.Failures)
	}
}

// What cannot be read is a sentence for each part, and stops nothing else.
func TestFailures(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	_, taken := collect(t, Options{URL: server.URL, AgentPID: 1 << 30, SMI: script(t, "echo broken >&2; exit 9")}, func(all Taken) bool {
		text := strings.Join(all.Failures, "\n")
		return strings.Contains(text, agentPart) && strings.Contains(text, smiPart) && strings.Contains(text, usagePart)
	})
	text := strings.Join(taken.Failures, "\n")
	for _, part := range []string{"404 Not Found", "exit status 9: broken", "no such file or directory"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
}

func TestAddLibrary(t *testing.T) {
	c := New()
	c.AddLibrary([]byte("no JSON"))
	select {
	case <-c.First():
		t.Error("a line that is none is the first sample")
	default:
	}
	for i := range 2 {
		c.AddLibrary(fmt.Appendf(nil, `{"time":"2026-01-02T03:04:0%dZ","devices":[{"uuid":"GPU-1"}]}`, i))
	}
	<-c.First()
	taken := c.Take()
	if len(taken.Observations.Library) != 2 || c.Newest().Time.Second() != 1 || len(taken.Failures) != 1 {
		t.Errorf("got %+v", taken)
	}
	if again := c.Take(); len(again.Observations.Library)+len(again.Failures) != 0 {
		t.Errorf("got %+v again", again)
	}
}

func TestLoad(t *testing.T) {
	l := NewLoad()
	for _, line := range []string{`{"event":"ready","uuid":"GPU-1","pid":7}`, `{"event":"progress","busy_seconds":1}`, `{"event":"done","busy_seconds":2}`} {
		l.Add([]byte(line))
	}
	<-l.Started()
	ready, progress := l.Events()
	if ready.UUID != "GPU-1" || ready.PID != 7 || len(progress) != 2 || progress[1].Busy != 2 || l.Err() != nil {
		t.Errorf("got %+v, %+v, %v", ready, progress, l.Err())
	}
	l.Add([]byte(`{"event":"error","error":"too hot"}`))
	l.Add([]byte(`{`))
	if err := l.Err(); err == nil || !strings.HasPrefix(err.Error(), "too hot\ndecode ") {
		t.Errorf("the error is %v", err)
	}
}

func TestDecodeUsage(t *testing.T) {
	stat := "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 100 1000000 25 18446744073709551615"
	u, err := decodeUsage([]byte(stat))
	if err != nil || u.CPU != 2 || u.Resident != 25*float64(os.Getpagesize()) {
		t.Errorf("got %+v, %v", u, err)
	}
	for _, bad := range []string{"", "7 (a) S 1", strings.Replace(stat, "150", "x", 1)} {
		if _, err := decodeUsage([]byte(bad)); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

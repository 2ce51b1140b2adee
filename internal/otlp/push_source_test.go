package otlp

import (
	"bytes"
	"crypto/tls"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/test/fakes/otelcollector"
)

// pushSource is a snapshot that grows: a counter of energy and a gauge of power,
// each of some devices.
type pushSource struct {
	energy, power *metric.Family
	labels        []*metric.Labels
	start         time.Time

	newest atomic.Pointer[page]
	looks  atomic.Int64
}

type page struct {
	rows []metric.Row
	at   time.Time
}

func newPushSource(devices int) *pushSource {
	w := &pushSource{
		energy: &metric.Family{Name: "dra_test_energy_joules_total", Help: "Energy", Unit: "joules", Type: metric.Counter, Labels: []string{"device"}},
		power:  &metric.Family{Name: "dra_test_power_watts", Help: "Power", Unit: "watts", Type: metric.Gauge, Labels: []string{"device"}},
		start:  time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
	}
	for i := range devices {
		w.labels = append(w.labels, metric.NewLabels([]string{"device"}, "gpu-"+strconv.Itoa(i)))
	}
	return w
}

// set makes a snapshot in which every counter stands at this value.
func (w *pushSource) set(value float64) {
	newest := &page{at: w.start.Add(time.Duration(value) * time.Second)}
	for _, labels := range w.labels {
		newest.rows = append(newest.rows, metric.Row{Family: w.energy, Labels: labels, Value: value, Start: w.start})
	}
	for _, labels := range w.labels {
		newest.rows = append(newest.rows, metric.Row{Family: w.power, Labels: labels, Value: 100})
	}
	w.newest.Store(newest)
}

func (w *pushSource) snapshot() ([]metric.Row, *model.Node, time.Time) {
	w.looks.Add(1)
	if newest := w.newest.Load(); newest != nil {
		return newest.rows, nil, newest.at
	}
	return nil, nil, time.Time{}
}

// lines is what was logged. It is safe for concurrent use.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// with are the lines that hold a text.
func (l *lines) with(text string) []string {
	var found []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

// checkLogged wants so many lines of each way, and no other.
func (p *pushing) checkLogged(t *testing.T, failing, working int) {
	t.Helper()
	all, fails, works := p.logged.with(""), p.logged.with("push fails"), p.logged.with("push works again")
	if len(fails) != failing || len(works) != working || len(all) != failing+working {
		t.Errorf("want %d lines of failing and %d of working again, got:\n%s", failing, working, p.logged)
	}
}

// secret makes TLS for a collector that an authority vouches for, and for who
// trusts that authority.
func secret(t *testing.T) (collector, trusting *tls.Config) {
	t.Helper()
	authority, err := otelcollector.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	collector, err = authority.Server()
	if err != nil {
		t.Fatal(err)
	}
	return collector, &tls.Config{RootCAs: authority.Pool(), MinVersion: tls.VersionTLS12}
}

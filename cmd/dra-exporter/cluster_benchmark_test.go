package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/generator"
)

// The window of BenchmarkCluster in which claims change and no page is read, and the
// number of pages that are read afterwards, while claims still change.
const (
	clusterWindow = 20 * time.Second
	clusterPages  = 20
)

// BenchmarkCluster runs the whole program as a separate process against an API
// server in another, at three sizes, and reports
//
//   - sync-s: from the start of the process to the first page with all
//   - diagnosed-s: likewise, to the first page with a diagnosis of each pending reference
//   - tainted-s, untainted-s: from a taint on every device to the new diagnosis
//     of each pending reference, and back
//   - its share of a core while nothing changes, and while claims do. No page is
//     read meanwhile
//   - lag-ms, worst-lag-ms: the age of the oldest change that a page does not show,
//     when it is requested. Pages are requested at random times, so that the ages
//     have the distribution of the time from a change to the first page with it,
//     for which no page has to be read before
//   - its anonymous memory after the lists, and after all changes; its highest
//   - the time of a scrape, uncompressed and with the first rendering of its
//     snapshot, and its series
//   - the number of series that were left out
func BenchmarkCluster(b *testing.B) {
	for _, claims := range []int{1_000, 10_000, 100_000, 200_000} {
		b.Run(fmt.Sprintf("claims=%d", claims), func(b *testing.B) {
			for b.Loop() {
				measureCluster(b, generator.Of(claims), min(500, float64(claims)/20))
			}
		})
	}
}

func measureCluster(b *testing.B, size generator.Size, rate float64) {
	b.Helper()
	r := startRole(b, size)
	r.measureDiagnoses(b, size)
	r.measureIdle(b)
	r.measureChanges(b, rate)
	r.scrapes(b)
	r.end(b)
}

// BenchmarkClusterScale is the same benchmark against the real API server of
// `make -C test scale`.
func BenchmarkClusterScale(b *testing.B) {
	if os.Getenv("DRA_EXPORTER_STAGE") == "" {
		b.Skip("the API server is a program that DRA_EXPORTER_STAGE names")
	}
	for b.Loop() {
		measureCluster(b, generator.Of(10_000), 50)
	}
}

// BenchmarkClusterSpecifications measures the diagnosis of 1,000 references in
// the largest cluster, by the number of different ones.
func BenchmarkClusterSpecifications(b *testing.B) {
	for _, specifications := range []int{1, 10, 50, 200, 1_000} {
		b.Run(fmt.Sprintf("specifications=%d", specifications), func(b *testing.B) {
			for b.Loop() {
				size := generator.Of(100_000)
				size.Specifications = specifications
				r := startRole(b, size)
				r.measureDiagnoses(b, size)
				r.end(b)
			}
		})
	}
}

// BenchmarkClusterStorm measures the page when 20,000 pods are pending, with
// three claims each: the families of pending references reach their caps.
func BenchmarkClusterStorm(b *testing.B) {
	for b.Loop() {
		r := startRole(b, generator.Size{Nodes: 10_000, Running: 10_000, ClaimsPerPod: 4, Waiting: 20_000, ClaimsWaiting: 3, Specifications: 50})
		r.until(b, time.Minute, func(p rolePage) bool { return p.dropped > 0 })
		r.measureIdle(b)
		r.scrapes(b)
		r.end(b)
	}
}

// clusterRun is the process that is measured.
type clusterRun struct {
	stage   *stage
	process *exec.Cmd
	address string
	stop    context.CancelFunc
	began   time.Time
}

// startRole returns once the page has all claims of the cluster.
func startRole(b *testing.B, size generator.Size) *clusterRun {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	r := &clusterRun{stage: startStage(context.Background(), b, size), stop: stop}
	b.Cleanup(stop)
	r.began = time.Now()
	r.start(ctx, b)
	r.until(b, 5*time.Minute, func(p rolePage) bool {
		return p.claims == size.Claims() && p.devices >= size.Nodes*generator.DevicesPerNode
	})
	b.ReportMetric(time.Since(r.began).Seconds(), "sync-s")
	b.ReportMetric(memory(b, r.process.Process.Pid, "RssAnon"), "synced-MiB")
	b.ReportMetric(processorTime(b, r.process.Process.Pid).Seconds(), "sync-cpu-s")
	return r
}

func (r *clusterRun) start(ctx context.Context, b *testing.B) {
	b.Helper()
	kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
	write(b, kubeconfig, r.stage.kubeconfig)
	args := []string{"cluster", "--kubeconfig=" + kubeconfig, "--web.listen-address=127.0.0.1:0", "--web.enable-pprof"}
	r.process = program(ctx, args...)
	if binary := os.Getenv("DRA_EXPORTER_BINARY"); binary != "" {
		r.process = exec.CommandContext(ctx, binary, args...)
	}
	output, err := r.process.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := r.process.Start(); err != nil {
		b.Fatal(err)
	}
	lines, log := bufio.NewScanner(output), ""
	for lines.Scan() {
		log += lines.Text() + "\n"
		if _, after, found := strings.Cut(lines.Text(), "address=127.0.0.1:"); found {
			r.address = "http://127.0.0.1:" + strings.Fields(after)[0]
			go func() { _, _ = io.Copy(io.Discard, output) }()
			return
		}
	}
	b.Fatalf("the cluster role does not say where it listens:\n%s", log)
}

// measureDiagnoses waits for the first diagnoses, for those after every device has got a
// taint, and for those after the taints are removed.
func (r *clusterRun) measureDiagnoses(b *testing.B, size generator.Size) {
	b.Helper()
	diagnosed := func(p rolePage) bool { return p.reasons["unknown"] == 0 && p.candidates >= size.Waiting }
	before := r.until(b, 5*time.Minute, diagnosed)
	b.ReportMetric(time.Since(r.began).Seconds(), "diagnosed-s")
	began := time.Now()
	r.stage.command(b, "taint")
	// A reference that no device matches is independent of taints.
	r.until(b, 5*time.Minute, func(p rolePage) bool { return p.reasons["tainted"]+p.reasons["no_matching_device"] == size.Waiting })
	b.ReportMetric(time.Since(began).Seconds(), "tainted-s")
	began = time.Now()
	r.stage.command(b, "untaint")
	r.until(b, 5*time.Minute, func(p rolePage) bool {
		for reason, count := range before.reasons {
			if p.reasons[reason] != count {
				return false
			}
		}
		return diagnosed(p)
	})
	b.ReportMetric(time.Since(began).Seconds(), "untainted-s")
}

// measureIdle measures the process while nothing changes.
func (r *clusterRun) measureIdle(b *testing.B) {
	b.Helper()
	before := processorTime(b, r.process.Process.Pid)
	const window = 5 * time.Second
	profiled := r.profile(b, "rest", "profile?seconds=4")
	time.Sleep(window)
	spent := processorTime(b, r.process.Process.Pid) - before
	b.ReportMetric(spent.Seconds()/window.Seconds()*100, "rest-%core")
	<-profiled
}

// measureChanges changes claims at a rate. First no page is read, then pages are read
// for their lag.
func (r *clusterRun) measureChanges(b *testing.B, rate float64) {
	b.Helper()
	r.stage.command(b, "play", rate)
	time.Sleep(5 * time.Second) // lifecycles end as often as they begin
	began, before := time.Now(), processorTime(b, r.process.Process.Pid)
	allocated := r.profile(b, "allocated", "allocs?seconds=15")
	profiled := r.profile(b, "change", "profile?seconds=15")
	time.Sleep(clusterWindow)
	spent := processorTime(b, r.process.Process.Pid) - before
	b.ReportMetric(spent.Seconds()/time.Since(began).Seconds()*100, "change-%core")
	<-profiled
	<-allocated
	lags := make([]time.Duration, clusterPages)
	for i := range lags {
		time.Sleep(time.Second/2 + rand.N(time.Second)) // unlike the exporter's own intervals
		lags[i] = r.lag(b)
	}
	slices.Sort(lags)
	b.ReportMetric(float64(lags[len(lags)/2].Milliseconds()), "lag-ms")
	b.ReportMetric(float64(lags[len(lags)-1].Milliseconds()), "worst-lag-ms")
	b.ReportMetric(memory(b, r.process.Process.Pid, "RssAnon"), "anonymous-MiB")
	<-r.profile(b, "memory", "heap?debug=1")
	<-r.profile(b, "heap", "heap")
}

// lag returns the age of the oldest life that a page does not show, when it is
// requested.
func (r *clusterRun) lag(b *testing.B) time.Duration {
	b.Helper()
	requested := time.Now()
	newest := r.page(b).newest
	nanos, err := strconv.ParseInt(r.stage.command(b, "born", newest+1), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return max(requested.Sub(time.Unix(0, nanos)), 0)
}

// scrapes measures pages as Prometheus reads them, each of another snapshot.
func (r *clusterRun) scrapes(b *testing.B) {
	b.Helper()
	const times = 7
	took := make([]time.Duration, times)
	for i := range took {
		time.Sleep(1200 * time.Millisecond)
		took[i] = r.scrape(b)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[times/2].Milliseconds()), "scrape-ms")
	page := r.page(b)
	b.ReportMetric(float64(page.dropped), "dropped-series")
	b.ReportMetric(float64(page.series), "series")
	b.ReportMetric(memory(b, r.process.Process.Pid, "VmHWM"), "highest-resident-MiB")
}

// scrape returns the time to read a page on an open connection.
func (r *clusterRun) scrape(b *testing.B) time.Duration {
	b.Helper()
	began := time.Now()
	response, err := http.Get(r.address + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		b.Fatal(err)
	}
	return time.Since(began)
}

func (r *clusterRun) end(b *testing.B) {
	b.Helper()
	r.stop()
	_ = r.process.Wait() // it was signalled
}

// profile writes a profile to the directory of DRA_EXPORTER_PROFILES, if that
// is set.
func (r *clusterRun) profile(b *testing.B, name, what string) <-chan struct{} {
	done := make(chan struct{})
	folder := os.Getenv("DRA_EXPORTER_PROFILES")
	if folder == "" {
		close(done)
		return done
	}
	path := filepath.Join(folder, strings.NewReplacer("/", "-", "=", "-").Replace(b.Name())+"."+name)
	go func() {
		defer close(done)
		response, err := http.Get(r.address + "/debug/pprof/" + what)
		if err != nil {
			b.Error(err)
			return
		}
		defer response.Body.Close()
		profile, err := io.ReadAll(response.Body)
		if err == nil {
			err = os.WriteFile(path, profile, 0o600)
		}
		if err != nil {
			b.Error(err)
		}
	}()
	return done
}

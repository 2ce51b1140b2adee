package prometheus

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// demoClaims are claims of the demo (internal/demo) with a week of history.
func demoClaims() []sizedClaim {
	gpu := func(namespace, name, template string, use func(int, int, *rand.Rand) use) sizedClaim {
		return sizedClaim{namespace: namespace, name: name, template: template, price: 2.99, model: h100, memory: 80, devices: 1, from: 8 * days, attribution: "exclusive", use: use}
	}
	partition := func(c sizedClaim, profile string, memory, price float64) sizedClaim {
		c.profile, c.memory, c.price, c.attribution = profile, memory, price, "partition"
		return c
	}
	with := func(c sizedClaim, change func(c *sizedClaim)) sizedClaim {
		change(&c)
		return c
	}
	unused := noisy(0.5, 0.5, 0, 0, 0)
	all := []sizedClaim{
		partition(gpu("research", "notebook-0-gpu", "notebook-gpu", unused), "3g.40gb", 40, 1.45),
		with(gpu("research", "interactive-0-gpus", "interactive-gpus", unused), func(c *sizedClaim) { c.devices = 2 }),
		partition(gpu("vision", "detector-gpu", "prefer-b200", noisy(5, 8, 0.6, 0.3, 0.2)), "2g.20gb", 20, 0.85),
		partition(gpu("chat", "assistant-gpu", "", noisy(30, 36, 0.9, 0.6, 0.5)), "3g.40gb", 40, 1.45),
		with(gpu("search", "embedder-gpu", "half-gpu", noisy(20, 30, 0.5, 0.3, 0.2)), func(c *sizedClaim) { c.attribution, c.share = "process", 0.5 }),
		with(gpu("ml-training", "llama-pretrain-gpus", "two-gpus", noisy(60, 70, 1, 0.9, 0.6)), func(c *sizedClaim) { c.devices, c.nvlink = 2, true }),
	}
	for i := range 8 { // jobs of twelve hours, one after the other
		all = append(all, with(gpu("ml-training", "finetune-"+strconv.Itoa(i), "single-gpu", noisy(20, 28, 0.8, 0.3, 0.3)), func(c *sizedClaim) {
			c.from, c.to = time.Duration(160-20*i)*time.Hour, time.Duration(148-20*i)*time.Hour
		}))
	}
	for rank := range 6 {
		all = append(all, with(gpu("pretraining", "gpt-"+strconv.Itoa(rank), "rank-gpu", noisy(60, 70, 1, 0.9, 0.6)), func(c *sizedClaim) { c.nvlink = true }))
	}
	return all
}

// TestDemoWeek: the recorded week of the demo (internal/demo/week.json) is what a real
// Prometheus answers to the queries of advise over a week of the demo's claims.
func TestDemoWeek(t *testing.T) {
	end := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	address := prometheusWith(t, recordedOfRequesters(t, demoClaims(), end))
	var mu sync.Mutex
	answers := map[string]json.RawMessage{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		response, err := http.PostForm("http://"+address+"/api/v1/query", url.Values{"query": {query}, "time": {strconv.FormatInt(end.Unix(), 10)}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		var answer struct {
			Data struct{ Result json.RawMessage }
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		mu.Lock()
		answers[query] = answer.Data.Result
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer proxy.Close()
	output, err := exec.CommandContext(t.Context(), demoBinary(t), "advise", "--prometheus.url="+proxy.URL).CombinedOutput()
	t.Logf("%s", output)
	if err != nil || !strings.Contains(string(output), "interactive-gpus") || !strings.Contains(string(output), "rank-gpu") {
		t.Fatalf("%v", err)
	}
	recorded, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "internal", "demo", "week.json")
	if *update {
		if err := os.WriteFile(file, compactResults(t, recorded), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := compactResults(t, recorded); !sameResults(t, stored, want) {
		t.Errorf("%s is not what Prometheus answers: go test -run DemoWeek -update", file)
	}
}

// compactResults writes each query with its result on a line.
func compactResults(t *testing.T, data []byte) []byte {
	t.Helper()
	var results map[string]json.RawMessage
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(results); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(text.Bytes(), []byte(`}]}],"`), []byte("}]}],\n\""))
}

// sameResults reports whether two recordings have the same series, with values that are
// the same but for rounding.
func sameResults(t *testing.T, a, b []byte) bool {
	t.Helper()
	parse := func(data []byte) map[string]float64 {
		var results map[string][]struct {
			Metric map[string]string
			Value  [2]any
		}
		if err := json.Unmarshal(data, &results); err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for query, series := range results {
			values[query] = 0
			for _, one := range series {
				labels, _ := json.Marshal(one.Metric)
				text, _ := one.Value[1].(string)
				value, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				values[query+string(labels)] = value
			}
		}
		return values
	}
	first, second := parse(a), parse(b)
	for key, value := range first {
		other, ok := second[key]
		if !ok || math.Abs(value-other) > 1e-9*math.Max(math.Abs(value), math.Abs(other)) {
			return false
		}
	}
	return len(first) == len(second)
}

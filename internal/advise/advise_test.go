package advise

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const gib = 1 << 30

func readFor(d time.Duration) map[string]time.Duration {
	return map[string]time.Duration{"exclusive": d}
}

// sample returns a history of a whole H100 that a 1g.10gb would have held.
func sample() *history {
	h := &history{
		requester: Requester{Namespace: "ml", Kind: "ResourceClaim", Name: "a", Model: "NVIDIA H100 80GB HBM3"},
		held:      7 * 24 * time.Hour, devices: 1, used: 1, heldSeconds: 168 * 3600, deviceSeconds: 168 * 3600,
		allocated: 80 * gib, lowest: 4 * gib, activity: map[string]*usage{},
	}
	h.memory = usage{readFor(h.held), 9 * gib, 9 * gib, 9 * gib, 9 * gib, 9 * gib}
	h.activity[engineSM] = &usage{readFor(h.held), 0.09, 0.09, 0.09, 0.09, 0.09}
	h.activity[engineDRAM] = &usage{readFor(h.held), 0.09, 0.09, 0.09, 0.09, 0.09}
	h.activity[utilization] = &usage{readFor(h.held), 0.9, 0.9, 0.9, 0.9, 0.9}
	return h
}

// The advice at the limits: a little more, and it is another one.
func TestLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		change     func(h *history)
		want       string
		confidence Confidence
	}{
		"enough":              {func(*history) {}, "1g.10gb", ConfidenceHigh},
		"memory":              {func(h *history) { h.memory.peak = 9.01 * gib }, "1g.20gb", ConfidenceHigh},
		"peaks of activity":   {func(h *history) { h.activity[engineSM].p99 = 0.1 }, "2g.20gb", ConfidenceHigh},
		"sustained activity":  {func(h *history) { h.activity[engineSM].sustained = 0.1 }, "2g.20gb", ConfidenceHigh},
		"rare short peaks":    {func(h *history) { h.activity[engineSM].peak = 1 }, "1g.10gb", ConfidenceHigh},
		"bandwidth":           {func(h *history) { h.activity[engineDRAM].p99 = 0.11 }, "1g.20gb", ConfidenceHigh},
		"all compute":         {func(h *history) { h.activity[engineSM].p99 = 0.4 }, string(ReasonActivity), ""},
		"all memory":          {func(h *history) { h.memory.peak = 37 * gib }, string(ReasonMemory), ""},
		"pool":                {func(h *history) { h.memory.peak, h.lowest = 70*gib, 69*gib }, string(ReasonMemoryPool), ""},
		"no pool":             {func(h *history) { h.memory.peak, h.lowest = 70*gib, 68*gib }, string(ReasonMemory), ""},
		"constant":            {func(h *history) { h.lowest = 9 * gib }, "1g.10gb", ConfidenceLow},
		"a day":               {func(h *history) { h.held = 24 * time.Hour }, "1g.10gb", ConfidenceMedium},
		"less than a day":     {func(h *history) { h.held = 24*time.Hour - every }, string(ReasonHistory), ""},
		"shared":              {func(h *history) { h.shared = 9 * time.Hour }, string(ReasonShared), ""},
		"shared for a moment": {func(h *history) { h.shared = 8 * time.Hour }, "1g.10gb", ConfidenceHigh},
		"half of a device":    {func(h *history) { h.deviceSeconds /= 2 }, string(ReasonShared), ""},
		"by process":          {func(h *history) { h.byProcesses = time.Hour }, "1g.10gb", ConfidenceMedium},
		"gaps":                {func(h *history) { h.memory.known = readFor(160 * time.Hour) }, "1g.10gb", ConfidenceMedium},
		"large gaps":          {func(h *history) { h.memory.known = readFor(150 * time.Hour) }, string(ReasonMemoryUnknown), ""},
		"size unknown":        {func(h *history) { h.allocated = math.NaN() }, string(ReasonMemoryUnknown), ""},
		"gaps of activity": {func(h *history) {
			h.activity[engineSM].known, h.activity[utilization].known = readFor(time.Hour), readFor(time.Hour)
		}, string(ReasonActivityUnknown), ""},
		"utilization instead": {func(h *history) { h.activity[engineSM].known = readFor(time.Hour) }, string(ReasonActivity), ""},
		"low utilization": {func(h *history) {
			delete(h.activity, engineSM)
			delete(h.activity, engineDRAM)
			h.activity[utilization].p99, h.activity[utilization].sustained = 0.09, 0.05
		}, "1g.10gb", ConfidenceMedium},
		"bandwidth unknown": {func(h *history) {
			delete(h.activity, engineDRAM)
			delete(h.activity, utilization)
		}, "1g.10gb", ConfidenceMedium},
		"bandwidth by utilization": {func(h *history) { delete(h.activity, engineDRAM) }, string(ReasonBandwidth), ""},
		"grows":                    {func(h *history) { h.memory.before = 8.5 * gib }, string(ReasonGrowing), ""},
		"grew":                     {func(h *history) { h.memory.after = 8.5 * gib }, "1g.10gb", ConfidenceHigh},
		"ended":                    {func(h *history) { h.memory.after, h.activity[engineSM].after = math.NaN(), math.NaN() }, "1g.10gb", ConfidenceHigh},
		"activity grows":           {func(h *history) { h.activity[engineSM].before, h.activity[engineSM].after = 0.05, 0.16 }, string(ReasonGrowing), ""},
		"activity varies":          {func(h *history) { h.activity[engineSM].before, h.activity[engineSM].after = 0.05, 0.14 }, "1g.10gb", ConfidenceHigh},
		"unused, but unmeasured":   {func(h *history) { h.used, h.unmeasured = math.NaN(), 2*time.Hour }, string(ReasonActivityUnknown), ""},
		"one of two unmeasured":    {func(h *history) { h.devices, h.unmeasured = 2, 2*time.Hour }, string(ReasonActivityUnknown), ""},
		"unmeasured for a moment":  {func(h *history) { h.devices, h.unmeasured = 2, time.Hour }, KindDevices, ConfidenceHigh},
		"unmeasured now and then":  {func(h *history) { h.unmeasured = 10 * time.Hour }, "1g.10gb", ConfidenceMedium},
		"unmeasured":               {func(h *history) { h.unmeasured = 17 * time.Hour }, string(ReasonActivityUnknown), ""},
		"unused":                   {func(h *history) { h.used = math.NaN() }, KindRelease, ConfidenceHigh},
		"one of two":               {func(h *history) { h.devices = 2 }, KindDevices, ConfidenceHigh},
		"two of two":               {func(h *history) { h.devices, h.used = 2, 2 }, string(ReasonSeveralDevices), ""},
		"NVLink":                   {func(h *history) { h.nvlink = 1 }, string(ReasonLinked), ""},
		"video":                    {func(h *history) { h.activity[decoder] = &usage{readFor(h.held), 0.1, 0, 0, 0, 0} }, "1g.10gb", ConfidenceMedium},
		"no model":                 {func(h *history) { h.requester.Model = "" }, string(ReasonProfileUnknown), ""},
		"no profile":               {func(h *history) { h.requester.Profile = "5g.50gb" }, string(ReasonProfileUnknown), ""},
		"smallest":                 {func(h *history) { h.requester.Profile, h.allocated = "1g.10gb", 10*gib }, string(ReasonSmallest), ""},
		"no GPU":                   {func(h *history) { h.requester.Model = "tpu-v4-podslice" }, string(ReasonProfileUnknown), ""},
		"other model":              {func(h *history) { h.requester.Model = "NVIDIA L40S" }, KindShare, ConfidenceHigh},
	} {
		h := sample()
		tt.change(h)
		advice, reason := adviceFor(h)
		got, confidence := string(reason), Confidence("")
		if advice != nil {
			got, confidence = advice.Profile, advice.Confidence
			if got == "" {
				got = advice.Kind
			}
		}
		if got != tt.want || confidence != tt.confidence || (advice == nil) == (reason == "") {
			t.Errorf("%s: %s %s %+v, want %s %s", name, got, confidence, advice, tt.want, tt.confidence)
		}
	}
}

// Each reason has a meaning, and adviceFor returns no other.
func TestMeanings(t *testing.T) {
	for _, row := range meanings() {
		if row.Meaning == "" || strings.HasSuffix(row.Meaning, ".") {
			t.Errorf("%s: %q", row.Reason, row.Meaning)
		}
	}
	if order("unheard of") != -1 {
		t.Error("an unknown reason has a meaning")
	}
}

// answering returns the URL of a server that answers each query.
func answering(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

const nothing = `{"status":"success","data":{"resultType":"vector","result":[]}}`

func result(rows string) string { return strings.Replace(nothing, "[]", "["+rows+"]", 1) }

// What is wrong is named, with what to do about it.
func TestProblems(t *testing.T) {
	says := func(status int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	known := func(names ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			for _, name := range names {
				if strings.HasPrefix(r.FormValue("query"), "count(last_over_time("+name) {
					_, _ = io.WriteString(w, result(`{"metric":{},"value":[1,"1"]}`))
					return
				}
			}
			_, _ = io.WriteString(w, nothing)
		}
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"not allowed":     {says(http.StatusForbidden, "text/plain", "no"), "give credentials with --http.config.file"},
		"unauthorized":    {says(http.StatusUnauthorized, "text/html", "<html>"), "give credentials with --http.config.file"},
		"another path":    {says(http.StatusNotFound, "text/html", "<html>"), "is this the URL of a Prometheus"},
		"a page":          {says(http.StatusOK, "text/html", "<html>"), "is this the URL of a Prometheus"},
		"a gateway":       {says(http.StatusBadGateway, "text/html", "<html>"), "502"},
		"half an answer":  {says(http.StatusOK, "application/json", nothing[:30]), "is this the URL of a Prometheus"},
		"a failed query":  {says(http.StatusUnprocessableEntity, "application/json", `{"status":"error","errorType":"execution","error":"query processing would load too many samples"}`), "too many samples"},
		"another result":  {says(http.StatusOK, "application/json", `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`), "not a vector"},
		"a long answer":   {says(http.StatusOK, "application/json", strings.Repeat(" ", maxAnswer+1)+nothing), "more than 64 MiB"},
		"not scraped":     {known(), "no metrics of dra-exporter"},
		"no rules":        {known("dra_exporter_build_info"), "load alerts/recording.yaml"},
		"no claims there": {known("dra_exporter_build_info", "requester:"), "no claim of the namespace team-a"},
	} {
		client, err := NewClient(answering(t, tt.answer), "")
		if err != nil {
			t.Fatal(err)
		}
		report, err := Run(t.Context(), client, Options{Namespace: "team-a", Window: 7 * 24 * time.Hour, Until: time.Unix(1e9, 0)})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v %v, want %q", name, report, err, tt.want)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	client, err := NewClient(answering(t, func(_ http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // the server sees that the client is gone once it has read the body
		<-r.Context().Done()
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(ctx, client, Options{Window: 7 * 24 * time.Hour}); err == nil || !strings.Contains(err.Error(), "--timeout") {
		t.Errorf("a slow server: %v", err)
	}
	for _, wrong := range []string{"", "prometheus:9090", "localhost", "http://", "ftp://a", "http://a b", ":"} {
		if _, err := NewClient(wrong, ""); err == nil {
			t.Errorf("%q is a URL", wrong)
		}
	}
}

// Credentials of the configuration file are sent, and an unknown key is named.
func TestConfigurationOfTheClient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "client.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sent := make(chan string, 100)
	address := answering(t, func(w http.ResponseWriter, r *http.Request) {
		sent <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, nothing)
	})
	write("authorization:\n  credentials: secret\n")
	client, err := NewClient(address, file)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = Run(t.Context(), client, Options{Window: 24 * time.Hour})
	if got := <-sent; got != "Bearer secret" {
		t.Errorf("sent %q", got)
	}
	write("autorization: {}\n")
	if _, err := NewClient(address, file); err == nil || !strings.Contains(err.Error(), "autorization") || !strings.Contains(err.Error(), file) {
		t.Errorf("an unknown key: %v", err)
	}
}

// Warnings of a store that has not everything are in the report, and names cannot change
// the terminal.
func TestText(t *testing.T) {
	labels := `"namespace":"a\u001b[31m","requester_kind":"ResourceClaim","requester":"x\ny","cluster":"east"`
	client, err := NewClient(answering(t, func(w http.ResponseWriter, r *http.Request) {
		query := r.FormValue("query")
		answer := nothing
		if strings.HasPrefix(query, "count_over_time(requester:dra_claim_held_seconds") {
			rows := []string{}
			for i := range 8 {
				rows = append(rows, fmt.Sprintf(`{"metric":{%s,"model":"%d"},"value":[1,"12"]}`, labels, i))
			}
			answer = strings.Replace(result(strings.Join(rows, ",")), `"success"`, `"success","warnings":["a store is missing"]`, 1)
		}
		if strings.HasPrefix(query, "max_over_time(requester:dra_claim_devices") {
			answer = result(`{"metric":{` + labels + `,"model":"0"},"value":[1,"NaN"]}`)
		}
		_, _ = io.WriteString(w, answer)
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	report, err := Run(t.Context(), client, Options{Window: 7 * 24 * time.Hour, Until: time.Unix(1e9, 0)})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Warnings) != 1 || len(report.NotAdvised) != 8 {
		t.Errorf("the report is %+v", report)
	}
	text := report.Text()
	want := "Nothing to advise for the last 7 days.\n\nNo advice for:\n  history: devices were held for less than a day in the range\n"
	if !strings.HasPrefix(text, want) || strings.Contains(text, "\x1b") || strings.Count(text, "\n") != 5 || !strings.Contains(text, "3 more") {
		t.Errorf("the text is\n%q", text)
	}
}

// TestReplicas: the series of two Prometheus servers that are not deduplicated count once,
// and those of two attributions, which follow each other, both.
func TestReplicas(t *testing.T) {
	client, err := NewClient(answering(t, func(w http.ResponseWriter, r *http.Request) {
		answer := nothing
		if query := r.FormValue("query"); strings.HasPrefix(query, "count_over_time(requester:dra_claim_memory") && strings.Contains(query, "!=") {
			answer = result(`{"metric":{"replica":"a","attribution":"exclusive"},"value":[1,"120"]},{"metric":{"replica":"b","attribution":"exclusive"},"value":[1,"118"]},{"metric":{"replica":"a","attribution":"process"},"value":[1,"60"]}`)
		}
		_, _ = io.WriteString(w, answer)
	}), "")
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := read(t.Context(), client, "", 7*24*time.Hour, time.Unix(1e9, 0))
	if err != nil || len(all) != 1 || all[Requester{}].memory.time() != 15*time.Hour {
		t.Errorf("%v %v", all[Requester{}], err)
	}
}

// always is a transport that returns an answer to each request.
type always []byte

func (a always) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a))}, nil
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(nothing))
	f.Add([]byte(result(`{"metric":{"namespace":"a","requester":"b","currency":"EUR","engine":"sm"},"value":[1,"600"]}`)))
	f.Add([]byte(result(`{"metric":{"model":"NVIDIA A100-SXM4-80GB","partition_profile":"3g.40gb"},"value":[1,"+Inf"]}`)))
	f.Add([]byte(`{"status":"error","errorType":"bad_data","error":"x"}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		client, err := newClient("http://prometheus", always(answer))
		if err != nil {
			t.Fatal(err)
		}
		report, err := Run(t.Context(), client, Options{Window: 7 * 24 * time.Hour, Until: time.Unix(1e9, 0)})
		if (report == nil) == (err == nil) {
			t.Fatalf("%v %v", report, err)
		}
		if report != nil && report.Text() == "" {
			t.Fatal("the report is empty")
		}
	})
}

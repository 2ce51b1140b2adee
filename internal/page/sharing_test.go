package page

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// sharing is a node on which devices are shared in every way: split by
// process, split in part, through device plugins, and not used by any holder.
func sharing(t testing.TB) []metric.Row {
	t.Helper()
	text, err := os.ReadFile("testdata/sharing.metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	return rowsOf(t, text)
}

func TestPageOfSharedDevices(t *testing.T) {
	status, text := get(t, handler(t, sharing(t)), "/")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/sharing.html", text)
}

func TestClaimsOnSharedDevices(t *testing.T) {
	_, text := get(t, handler(t, sharing(t)), "/api/v1/claims")
	metrictest.CompareGolden(t, "testdata/sharing.json", text)
}

// claimOn finds what a claim gets of its only device.
func claimOn(t *testing.T, view View, name string) ClaimDevice {
	t.Helper()
	for _, claim := range view.Claims {
		if claim.Name == name {
			return claim.Devices[0]
		}
	}
	t.Fatalf("there is no claim %s", name)
	return ClaimDevice{}
}

// Each of the two quantities is split separately, and values that are not split
// are not those of the claim.
func TestAttributionOfEachQuantity(t *testing.T) {
	view := newView(parseNode(sharing(t)), noon)
	for name, want := range map[string][4]string{ // attribution, utilization, memory, shown text
		"draft":    {"shared", "process", "process", "process"},
		"embedder": {"shared", "shared", "process", "process"},
		"slice":    {"partition", "", "partition", "partition"},
	} {
		d := claimOn(t, view, name)
		if got := [4]string{d.Attribution, d.UtilizationAttribution, d.MemoryAttribution, d.UseAttribution()}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if use := claimOn(t, view, "embedder").use(); use == nil || use.Utilization != nil || *use.MemoryUsed != 25769803776 {
		t.Errorf("of the embedder's own use %+v is known, want its memory alone", use)
	}
}

// The order of families does not matter: power is always shared.
func TestPowerIsNotSplit(t *testing.T) {
	claim := []string{"namespace", "n", "resourceclaim", "c", "uuid", "a", "attribution"}
	rows := []metric.Row{
		row("dra_claim_held", 1, claim[:6]...),
		row("dra_claim_power_watts", 300, append(claim, "shared")...),
		row("dra_claim_utilization_ratio", 0.5, append(claim, "process")...),
	}
	for range 2 {
		if d := newView(parseNode(rows), noon).Claims[0].Devices[0]; d.Attribution != "shared" || d.UseAttribution() != "process" {
			t.Errorf("held as %q, shown as %q", d.Attribution, d.UseAttribution())
		}
		slices.Reverse(rows)
	}
	if d := newView(parseNode(rows[:0:0]), noon); len(d.Claims) != 0 {
		t.Errorf("of nothing there are %v", d.Claims)
	}
}

// Without power, the split alone shows that others hold the device too; and
// accounts of processes are those of a shared device.
func TestAttributionWithoutPower(t *testing.T) {
	claim := []string{"namespace", "n", "resourceclaim", "c", "uuid", "a"}
	of := func(rows ...metric.Row) string {
		rows = append(rows, row("dra_claim_held", 1, claim...))
		return newView(parseNode(rows), noon).Claims[0].Devices[0].Attribution
	}
	with := func(family, attribution string) metric.Row {
		return row(family, 1, append(slices.Clip(claim), "attribution", attribution)...)
	}
	for want, rows := range map[string][]metric.Row{
		"shared": {with("dra_claim_busy_seconds_total", "process"), with("dra_claim_energy_joules_total", "shared")},
		"":       {with("dra_claim_busy_seconds_total", "process"), with("dra_claim_energy_joules_total", "exclusive")},
	} {
		if got := of(rows...); got != want {
			t.Errorf("held as %q, want %q", got, want)
		}
	}
	if got := of(with("dra_claim_memory_used_bytes", "process")); got != "shared" {
		t.Errorf("held as %q where memory is split", got)
	}
}

func TestHoldersOfSharedDevice(t *testing.T) {
	view := newView(parseNode(sharing(t)), noon)
	devices := map[string]Device{}
	for _, d := range view.Devices {
		devices[d.Title()] = d
	}
	text := func(use *Use) string {
		if use == nil {
			return "-"
		}
		return useText(*use)
	}
	var got []string
	for _, name := range []string{"gpu-1", "gpu-4", "gpu-6", "gpu-7"} {
		for _, h := range devices[name].Holders {
			got = append(got, strings.Join([]string{name, h.Namespace, h.Claim + h.Resource, text(h.Use)}, " "))
			for _, pod := range h.Pods {
				if pod.Use != nil {
					got = append(got, strings.Join([]string{name, pod.Name, text(pod.Use)}, " "))
				}
			}
		}
		got = append(got, name+" unattributed "+text(devices[name].Unattributed))
	}
	want := `gpu-1 inference embedder 24 GiB
gpu-1 research trial 12 GiB
gpu-1 unattributed -
gpu-4 unattributed 0% · 2 GiB
gpu-6 inference draft 48% · 30 GiB
gpu-6 draft-0 28% · 20 GiB
gpu-6 draft-1 20% · 10 GiB
gpu-6 ranking rerank 20% · 12.5 GiB
gpu-6 unattributed 12% · 6 GiB
gpu-7 legacy nvidia.com/gpu 15% · 10 GiB
gpu-7 legacy nvidia.com/gpu 35% · 20 GiB
gpu-7 unattributed 0% · 0 B`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got:\n%s\nwant:\n%s", text, want)
	}
	if !devices["gpu-4"].Free() || !devices["gpu-4"].Unattributed.Something() || devices["gpu-7"].Unattributed.Something() {
		t.Error("the unattributed part is missing on the free device, or is not missing without use")
	}
}

// Ended holders only have info rows: they hold nothing.
func TestEndedHolders(t *testing.T) {
	rows := sharing(t)
	for i, r := range rows {
		of := r.Labels.Get("pod")
		rows[i].Past = strings.HasSuffix(r.Family.Name, "_consumer_info") && (of == "draft-1" || of == "notebook-0")
	}
	view := newView(parseNode(rows), noon)
	if pods := findDevice(t, view.Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000006").Holders[0].Pods; len(pods) != 1 || pods[0].Name != "draft-0" {
		t.Errorf("draft is used by %+v", pods)
	}
	if holders := findDevice(t, view.Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000007").Holders; len(holders) != 1 || holders[0].Pods[0].Name != "captioner-0" {
		t.Errorf("the device plugin's GPU is held by %+v", holders)
	}
	ended := map[string]bool{}
	for _, claim := range view.Claims {
		for _, consumer := range claim.Consumers {
			ended[consumer.Pod] = consumer.Ended
		}
	}
	if !ended["draft-1"] || ended["draft-0"] || ended["rerank-0"] {
		t.Errorf("ended are %v", ended)
	}
	if _, page := get(t, handler(t, rows), "/"); strings.Count(page, "· ended") != 1 {
		t.Error("the page does not show which pods have ended")
	}
}

func TestLabelsOfPods(t *testing.T) {
	for _, claim := range newView(parseNode(sharing(t)), noon).Claims {
		labels := claim.Labels()
		team := slices.ContainsFunc(labels, func(l Label) bool { return l.Name == "team" })
		if team == (claim.Name == "trial") || len(labels) == 0 || labels[0].Name != "app_kubernetes_io_name" {
			t.Errorf("%s has the labels %v", claim.Name, labels)
		}
	}
}

// Every state but ok has a remedy.
func TestSplitRemedies(t *testing.T) {
	for state, want := range map[string]string{
		"ok": "", "disabled": "--no-device.processes", "pid_namespace": "hostPID", "no_procfs": "procfs",
		"no_pods": "--kubernetes.disable", "unsupported": "NVML",
	} {
		rows := sharing(t)
		for i, r := range rows {
			if r.Family.Name == "dra_exporter_process_attribution" {
				rows[i].Value = 0
				if r.Labels.Get("reason") == state {
					rows[i].Value = 1
				}
			}
		}
		_, page := get(t, handler(t, rows), "/")
		_, notice, shown := strings.Cut(page, `data-field="process-attribution" data-value="`+state+`"`)
		notice, _, _ = strings.Cut(notice, "</p>")
		if shown != (want != "") || !strings.Contains(notice, want) {
			t.Errorf("%s: the page says %q, want %q", state, notice, want)
		}
	}
}

func TestBarsOfHolders(t *testing.T) {
	view := newView(parseNode(sharing(t)), noon)
	got := newShares("load", findDevice(t, view.Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000006"))
	want := []part{{"p0", "0.0%", "48.0%"}, {"p1", "48.0%", "20.0%"}, {"unattributed", "68.0%", "12.0%"}}
	if got.Width != "80.0%" || !slices.Equal(got.Parts, want) {
		t.Errorf("the bar is %+v", got)
	}
	if memory := newShares("memory", findDevice(t, view.Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000006")); len(memory.Parts) != 3 || memory.Parts[0].Width != "37.5%" {
		t.Errorf("the bar of memory is %+v", memory)
	}
	half, most := 0.5, 0.8
	crowded := Device{Utilization: &half, Holders: []Holder{{Use: &Use{Utilization: &most}}, {Use: &Use{Utilization: &most}}}}
	if got := newShares("load", crowded).Parts; len(got) != 2 || got[1].Width != "20.0%" {
		t.Errorf("what cannot be is drawn beyond the bar: %+v", got)
	}
	if whole := newShares("load", findDevice(t, view.Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000001")); len(whole.Parts) != 0 {
		t.Errorf("what is not split is divided: %+v", whole)
	}
	if none := newShares("load", findDevice(t, view.Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000002")); none != nil {
		t.Errorf("an unknown utilization is drawn: %+v", none)
	}
}

// Of several accounts those are shown with something in them, by name.
func TestShownAccounts(t *testing.T) {
	busy := func(attribution string, seconds float64) Account {
		return Account{Attribution: attribution, Busy: &seconds}
	}
	for _, c := range []struct {
		accounts []Account
		want     string
	}{
		{nil, ""},
		{[]Account{{Attribution: "shared", Energy: new(float64)}}, ""},
		{[]Account{busy("exclusive", 0)}, "exclusive false"},
		{[]Account{busy("exclusive", 3)}, "exclusive false"},
		{[]Account{busy("shared", 0.01), busy("process", 3)}, "process false"},
		{[]Account{busy("shared", 3)}, "shared true"},
		{[]Account{busy("exclusive", 7), busy("process", 3)}, "exclusive true process true"},
	} {
		var words []string
		for _, a := range (ClaimDevice{Accounts: c.accounts}).BusyAccounts() {
			words = append(words, fmt.Sprint(a.Attribution, " ", a.Named))
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%+v are shown as %q, want %q", c.accounts, got, c.want)
		}
	}
}

package prometheus

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

// Minutes of the fresh cluster's week.
const (
	hour, day = 60, 24 * 60
	weekEnds  = 7 * day

	startsClaims = 2 * hour     // the first claim
	idlesClaim   = day          // one holds its device without using it, three hours
	taintsNode   = 1*day + 600  // an administrator, for eight hours: two of four devices
	cordonsNode  = 1*day + 1200 // the same, for two hours
	wishes       = 2 * day      // a pod requests sixteen devices, for a day
	losesVolume  = 3*day + 300  // Prometheus starts again, and has no data
	upgrades     = 4*day + 200  // of all exporters, one after the other
	fillsUp      = 5 * day      // claims hold every device, for two hours
	fails        = 6 * day      // Xid 79 of a held GPU, which is unhealthy for two hours
)

// cause is why an alert may fire, and has to, between two minutes.
type cause struct {
	alert, why string
	from, to   int
}

func causes() []cause {
	return []cause{
		{"DRAClassHeadroomLow", "one claim has two of three devices, and no other of two fits", startsClaims + 2*hour + 15, startsClaims + 5*hour + 10},
		{"DRAClaimIdle", "a claim holds a device and does not use it", idlesClaim + 2*hour, idlesClaim + 3*hour + 10},
		{"DRAClaimPendingTooLong", "a pod requests sixteen devices of four", wishes + 15, wishes + day},
		{"DRADeviceXIDFatal", "a held GPU has Xid 79", fails, fails + 40},
		{"DRADeviceUnhealthy", "the same GPU is unhealthy", fails + 5, fails + 2*hour + 10},
		{"DRADeviceHealthDisagreement", "its driver does not say so", fails + 15, fails + 2*hour + 10},
	}
}

// TestFreshWeek: on a fresh cluster, from the first scrape of an empty store to the end
// of a week with first claims, an administrator's work, a lost volume of Prometheus, and
// an upgrade of the exporters, no alert of any set fires without a cause, and each
// cause is alerted on.
func TestFreshWeek(t *testing.T) {
	if testing.Short() {
		t.Skip("a week takes minutes")
	}
	belongs, err := sets.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	fired := playWeek(t)
	alerted := map[int]bool{}
	for _, key := range slices.Sorted(maps.Keys(fired)) {
		for _, at := range fired[key] {
			alert, _, _ := strings.Cut(key, "{")
			match := slices.IndexFunc(causes(), func(c cause) bool { return c.alert == alert && at >= c.from && at <= c.to })
			if match < 0 {
				t.Errorf("%s, of the set %s, fires on day %d at %02d:%02d without a cause", key, belongs.Alerts[alert], at/day, at%day/hour, at%hour)
				break
			}
			if !alerted[match] {
				t.Logf("%s, of the set %s: %s; %d minutes after", key, belongs.Alerts[alert], causes()[match].why, at-causes()[match].from)
			}
			alerted[match] = true
		}
	}
	for i, c := range causes() {
		if !alerted[i] {
			t.Errorf("%s never fires, although %s", c.alert, c.why)
		}
	}
}

// playWeek returns the minutes in which each alert fires, by its name and labels.
func playWeek(t *testing.T) map[string][]int {
	t.Helper()
	families := documented(t)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	groups, watched := groups(t), alerts(t)
	needed := map[string]bool{}
	for _, rule := range neededRules(t, watched) {
		needed[rule.Record] = true
	}
	fired := map[string][]int{}
	var db *tsdb.DB
	var recorded map[string]map[string]labels.Labels
	var since map[string]int
	seen := map[string]labels.Labels{}
	for minute := range weekEnds {
		if minute == 0 || minute == losesVolume {
			db = emptyStore(t)
			recorded, since = map[string]map[string]labels.Labels{}, map[string]int{}
		}
		at := time.UnixMilli(0).Add(time.Duration(minute) * time.Minute)
		appender := db.Appender(t.Context())
		for _, s := range scrapedMinute(minute) {
			key := s.key()
			if _, ok := seen[key]; !ok {
				seen[key] = s.labelSet(t, families)
			}
			if _, err := appender.Append(0, seen[key], at.UnixMilli(), s.value); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
		if !isEvaluated(minute) {
			continue
		}
		for _, group := range groups {
			if group.Interval.String() == "5m" && minute%5 != 0 {
				continue
			}
			for i, rule := range group.Rules {
				if key := fmt.Sprint(group.Name, i); needed[rule.Record] {
					recorded[key] = evaluateRule(t, engine, db, rule, at, recorded[key])
				}
			}
		}
		active := map[string]bool{}
		for i, rule := range watched {
			for _, row := range vector(t, engine, db, rule.Expr, at) {
				key := fmt.Sprintf("%s%s %d", rule.Alert, row.Metric, i)
				active[key] = true
				if _, ok := since[key]; !ok {
					since[key] = minute
				}
				if time.Duration(minute-since[key])*time.Minute >= time.Duration(rule.For) {
					fired[key] = append(fired[key], minute)
				}
			}
		}
		maps.DeleteFunc(since, func(key string, _ int) bool { return !active[key] })
	}
	return fired
}

// isEvaluated says whether rules are evaluated in a minute: in each for some hours after
// something has changed, else in every fifth.
func isEvaluated(minute int) bool {
	for _, at := range []int{0, startsClaims, idlesClaim, taintsNode, taintsNode + 480, cordonsNode, wishes, losesVolume, upgrades, fillsUp, fails} {
		if minute >= at && minute < at+3*hour/2 {
			return true
		}
	}
	return minute%5 == 0
}

func emptyStore(t *testing.T) *tsdb.DB {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	db.DisableCompactions()
	return db
}

// weekSample is a scraped value. pairs are names and values of labels.
type weekSample struct {
	name  string
	value float64
	pairs []string
}

func (s weekSample) key() string { return s.name + "\xff" + strings.Join(s.pairs, "\xff") }

// labelSet returns the labels, of which the documented family must have each.
func (s weekSample) labelSet(t *testing.T, families promlabels.Families) labels.Labels {
	t.Helper()
	documented, ok := families[s.name]
	builder := labels.NewScratchBuilder(len(s.pairs)/2 + 1)
	builder.Add("__name__", s.name)
	for i := 0; i < len(s.pairs); i += 2 {
		if !ok || !slices.Contains(documented, s.pairs[i]) && s.pairs[i] != "le" && documented[0] != "*" {
			t.Fatalf("%s has no label %s", s.name, s.pairs[i])
		}
		builder.Add(s.pairs[i], s.pairs[i+1])
	}
	builder.Sort()
	return builder.Labels()
}

// weekClaim is a claim of a one-pod Job. It uses its devices but while it is idle.
type weekClaim struct {
	name, node       string
	devices          []int
	from, to         int
	idleFrom, idleTo int
}

func weekClaims() []weekClaim {
	claims := []weekClaim{
		{name: "first", node: "n1", devices: []int{0}, from: startsClaims, to: weekEnds, idleFrom: idlesClaim, idleTo: idlesClaim + 3*hour},
		{name: "pair", node: "n2", devices: []int{0, 1}, from: startsClaims + hour, to: startsClaims + 5*hour},
		{name: "fills-1", node: "n1", devices: []int{1}, from: fillsUp, to: fillsUp + 2*hour},
		{name: "fills-2", node: "n2", devices: []int{0, 1}, from: fillsUp, to: fillsUp + 2*hour},
	}
	for start := day; start < weekEnds; start += 3 * hour { // short jobs
		if start < fillsUp-hour || start > fillsUp+2*hour {
			claims = append(claims, weekClaim{name: fmt.Sprintf("short-%d", start), node: "n2", devices: []int{1}, from: start, to: start + 10})
		}
	}
	return claims
}

// weekNode are the nodes, with the minutes from which their agents run, at first and
// after the upgrade.
func weekNodes() map[string][2]int {
	return map[string][2]int{"n1": {0, upgrades + 2}, "n2": {4, upgrades + 5}}
}

// scrapedMinute returns what Prometheus scrapes in a minute.
func scrapedMinute(minute int) (all []weekSample) {
	var held []weekClaim
	for _, claim := range weekClaims() {
		if minute >= claim.from && minute < claim.to {
			held = append(held, claim)
		}
	}
	for node, starts := range weekNodes() {
		all = append(all, nodeMinute(minute, node, starts, held)...)
	}
	return append(all, clusterMinute(minute, held)...)
}

// weekTarget adds the labels of a target to samples.
func weekTarget(instance string, all *[]weekSample) func(name string, value float64, pairs ...string) {
	return func(name string, value float64, pairs ...string) {
		*all = append(*all, weekSample{name, value, append(pairs, "job", "dra-exporter", "instance", instance)})
	}
}

// started returns when the present process has begun, and whether it answers.
func started(minute int, starts [2]int) (begins int, version string, ok bool) {
	if minute < upgrades {
		return starts[0], "v0.1.0", minute >= starts[0]
	}
	return starts[1], "v0.2.0", minute >= starts[1]
}

func nodeMinute(minute int, node string, starts [2]int, held []weekClaim) (all []weekSample) {
	add := weekTarget(node, &all)
	begins, version, ok := started(minute, starts)
	if !ok {
		add("up", 0)
		return all
	}
	now := float64(minute * 60)
	add("up", 1)
	add("dra_exporter_build_info", 1, "version", version, "revision", "r", "goversion", "go")
	add("dra_exporter_sample_timestamp_seconds", now-1)
	add("dra_exporter_device_access", 1, "node", node, "state", "open", "reason", "")
	for _, source := range []string{"nvml", "podresources", "cdi", "pods", "resourceclaims", "resourceslices"} {
		add("dra_exporter_source_up", 1, "source", source)
	}
	for _, side := range []string{"published", "found"} {
		unmatched := 0.0
		if minute < begins+3 { // the driver starts
			unmatched = 2
		}
		add("dra_exporter_unmatched_devices", unmatched, "driver", "gpu.nvidia.com", "side", side)
	}
	for d := range 2 {
		uuid := fmt.Sprintf("GPU-%s-%d", node, d)
		device := []string{"node", node, "uuid", uuid, "parent_uuid", ""}
		with := func(more ...string) []string { return append(slices.Clone(device), more...) }
		bad := node == "n1" && d == 0 && minute >= fails && minute < fails+2*hour
		at := slices.IndexFunc(held, func(c weekClaim) bool { return c.node == node && slices.Contains(c.devices, d) })
		use := 0.0
		if at >= 0 && (minute < held[at].idleFrom || minute >= held[at].idleTo) {
			use = 0.8
		}
		add("dra_device_info", 1, with("vendor", "nvidia", "model", "H100", "pci_bus_id", fmt.Sprint(d), "partition_profile", "", "driver_version", "580", "source", "nvml")...)
		add("dra_device_published_info", 1, with("driver", "gpu.nvidia.com", "pool", node, "device", fmt.Sprint(d))...)
		add("dra_device_utilization_ratio", use, device...)
		add("dra_device_power_watts", 70+500*use, device...)
		add("dra_device_clock_hertz", 1.98e9, with("clock", "sm")...)
		add("dra_device_throttled_seconds_total", 0, with("reason", "hw_thermal")...)
		add("dra_device_ecc_errors_total", 0, with("severity", "uncorrected")...)
		add("dra_device_row_remap_pending", 0, device...)
		add("dra_device_row_remap_failed", 0, device...)
		add("dra_device_nvlink_errors_total", 0, with("kind", "crc")...)
		healthy := 1.0
		if bad {
			healthy = 0
			add("dra_device_health_signal_info", 1, with("signal", "xid_79", "severity", "critical")...)
		}
		if minute >= fails && node == "n1" && d == 0 {
			add("dra_device_xid_errors_total", 1, with("xid", "79")...)
			add("dra_device_xid_last_timestamp_seconds", fails*60, with("xid", "79")...)
		}
		add("dra_device_healthy", healthy, with("by", "hardware")...)
		add("dra_device_healthy", 1, with("by", "driver")...)
		if at >= 0 {
			add("dra_device_holders", 1, with("kind", "claim")...)
			add("dra_device_healthy", 1, with("by", "kubelet")...)
			heldMinute(add, minute, begins, held[at], uuid, use)
		}
	}
	return all
}

// heldMinute adds what is scraped about a device of a claim.
func heldMinute(add func(string, float64, ...string), minute, begins int, claim weekClaim, uuid string, use float64) {
	of := []string{"node", claim.node, "namespace", "ml", "resourceclaim", claim.name}
	with := func(more ...string) []string { return append(slices.Clone(of), more...) }
	device := with("uuid", uuid)
	attributed := append(slices.Clone(device), "attribution", "exclusive")
	seconds := float64(minute-max(begins, claim.from)) * 60
	idle := 0.0
	if claim.idleTo > 0 {
		idle = float64(max(0, min(minute, claim.idleTo)-max(begins, claim.idleFrom))) * 60
	}
	used := float64(minute * 60)
	if use == 0 {
		used = float64(claim.idleFrom * 60)
	}
	add("dra_claim_info", 1, with("claim_uid", claim.name, "deviceclass", "gpu", "template", claim.name, "sharing", "", "admin_access", "false", "extended_resource", "")...)
	add("dra_claim_consumer_info", 1, append(slices.Clone(device), "pod", claim.name, "pod_uid", claim.name, "container", "main", "owner_kind", "Job", "owner_name", claim.name)...)
	add("dra_pod_workload_info", 1, "node", claim.node, "namespace", "ml", "pod", claim.name, "workload_kind", "Job", "workload", claim.name, "role", "", "replica", "", "rank", "0", "queue", "")
	add("dra_claim_held", 1, device...)
	add("dra_claim_held_seconds_total", seconds, device...)
	add("dra_claim_device_seconds_total", seconds, device...)
	add("dra_claim_memory_allocated_bytes", 80e9, device...)
	add("dra_claim_memory_used_bytes", 40e9, attributed...)
	add("dra_claim_utilization_ratio", use, attributed...)
	add("dra_claim_idle_since_timestamp_seconds", used, attributed...)
	add("dra_claim_busy_seconds_total", max(0, seconds-idle)*0.8, attributed...)
	add("dra_claim_energy_joules_total", seconds*400, attributed...)
	for _, way := range []string{"transmit", "receive"} {
		add("dra_claim_nvlink_"+way+"_bytes_total", max(0, seconds-idle)*1e9, attributed...)
	}
}

func clusterMinute(minute int, held []weekClaim) (all []weekSample) {
	add := weekTarget("cluster", &all)
	begins, version, ok := started(minute, [2]int{1, upgrades + 1})
	if !ok {
		add("up", 0)
		return all
	}
	add("up", 1)
	add("dra_exporter_build_info", 1, "version", version, "revision", "r", "goversion", "go")
	for _, source := range []string{"pods", "resourceclaims", "resourceslices", "deviceclasses", "nodes"} {
		add("dra_exporter_source_up", 1, "source", source)
	}
	down := map[string]float64{}
	if minute >= taintsNode && minute < taintsNode+8*hour {
		down["rule_taint"] = 2
	}
	if minute >= cordonsNode && minute < cordonsNode+2*hour {
		down["node_cordoned"] = 2
	}
	allocated := map[string]float64{}
	for _, claim := range held {
		allocated[claim.node] += float64(len(claim.devices))
	}
	for node := range weekNodes() {
		add("dra_devices", allocated[node], "driver", "gpu.nvidia.com", "pool", node, "node", node, "state", "allocated")
		add("dra_devices", 2-allocated[node], "driver", "gpu.nvidia.com", "pool", node, "node", node, "state", "free")
	}
	total := allocated["n1"] + allocated["n2"]
	free := 4 - total
	add("dra_class_devices", total, "deviceclass", "gpu", "state", "allocated")
	add("dra_class_devices", free, "deviceclass", "gpu", "state", "free")
	for reason, count := range down {
		add("dra_class_devices_down", count, "deviceclass", "gpu", "reason", reason)
	}
	requests := map[string]float64{"1": float64(len(held)), "2": 1}
	if minute >= wishes && minute < wishes+day {
		requests["16"] = 1
		pod := []string{"namespace", "research", "pod", "large", "pod_claim", "gpus"}
		add("dra_claim_pending_since_timestamp_seconds", wishes*60, append(slices.Clone(pod), "resourceclaim", "large", "deviceclass", "gpu")...)
		add("dra_claim_pending_reason_info", 1, append(slices.Clone(pod), "reason", "insufficient_devices")...)
	}
	for shape, count := range requests {
		fits := map[string]float64{"1": free, "2": float64(int(2-allocated["n1"])/2 + int(2-allocated["n2"])/2)}[shape]
		add("dra_class_shape_claims", count, "deviceclass", "gpu", "shape", shape)
		add("dra_class_headroom_info", 1, "deviceclass", "gpu", "shape", shape, "exact", "true", "limit", "insufficient_devices")
		add("dra_class_headroom_claims", fits, "deviceclass", "gpu", "shape", shape)
		add("dra_class_headroom_pods", fits, "deviceclass", "gpu", "shape", shape)
	}
	for node := range weekNodes() {
		for d := range 2 { // driver and kubelet agree, also when hardware fails
			add("dra_device_health_disagreement", 0, "driver", "gpu.nvidia.com", "pool", node, "device", fmt.Sprint(d))
		}
	}
	ended := 0.0
	for _, claim := range weekClaims() {
		if claim.from >= begins && claim.from <= minute {
			ended++
		}
	}
	if ended > 0 {
		for _, phase := range []string{"scheduling", "allocation", "preparation"} {
			for _, le := range []string{"1", "10", "300", "+Inf"} {
				add("dra_allocation_duration_seconds_bucket", ended, "deviceclass", "gpu", "phase", phase, "le", le)
			}
			add("dra_allocation_duration_seconds_count", ended, "deviceclass", "gpu", "phase", phase)
		}
	}
	return all
}

package prometheus

import (
	"cmp"
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

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

const (
	minutes     = 15 // of samples, one a minute
	windowEvery = 5  // minutes between evaluations of all rules
)

// contradictory returns all rows that two exporters can export of a small
// fleet together: each family with each combination of its labels' values,
// except that no device has two models, and no claim two attributions. Another pod
// has four devices for itself.
func contradictory(families promlabels.Families, cluster string) (all []labels.Labels) {
	for _, name := range slices.Sorted(maps.Keys(families)) {
		if families[name][0] == "*" { // not scraped
			continue
		}
		rows := []map[string]string{{"__name__": name}}
		if cluster != "" {
			rows[0]["cluster"] = cluster
		}
		for _, label := range families[name] {
			if label != "cluster" {
				rows = combined(rows, label)
			}
		}
		for _, row := range rows {
			all = append(all, labels.FromMap(row))
		}
	}
	return append(all, devicesOfOnePod(families, cluster)...)
}

// devicesOfOnePod returns what the rules of dra-exporter.workload-devices read about
// four devices of a pod, by two exporters.
func devicesOfOnePod(families promlabels.Families, cluster string) (all []labels.Labels) {
	own := map[string]string{
		"node": "n1", "namespace": "ml", "resourceclaim": "ring", "pod": "ring", "workload_kind": "JobSet", "workload": "ring", "model": "H100",
		"attribution": "exclusive", "clock": "sm", "reason": "thermal", "deviceclass": "gpu", "kind": "crc", "job": "dra-exporter",
	}
	for _, name := range []string{
		"dra_device_info", "dra_claim_info", "dra_claim_held", "dra_claim_consumer_info", "dra_pod_workload_info", "dra_claim_busy_seconds_total", "dra_claim_energy_joules_total",
		"dra_claim_nvlink_transmit_bytes_total", "dra_claim_nvlink_receive_bytes_total", "dra_device_clock_hertz", "dra_device_throttled_seconds_total", "dra_device_nvlink_errors_total", "dra_device_network_errors_total",
	} {
		devices := []string{"GPU-2", "GPU-3", "GPU-4", "GPU-5"}
		if !slices.Contains(families[name], "uuid") {
			devices = []string{""}
		}
		for _, device := range devices {
			for _, instance := range []string{"old", "new"} {
				row := map[string]string{"__name__": name, "cluster": cluster}
				for _, label := range families[name] {
					row[label] = own[label]
				}
				row["instance"], row["uuid"], row["cluster"] = instance, device, cluster
				delete(row, "label_*")
				all = append(all, labels.FromMap(row))
			}
		}
	}
	return all
}

// combined multiplies rows by the values of a label. Claims keep their
// namespace, and partitions their parent.
func combined(rows []map[string]string, label string) (more []map[string]string) {
	for _, row := range rows {
		of := values(label)
		if label == "namespace" && row["__name__"] == "dra_pod_workload_info" { // those of the claims' pods
			of = []string{"ml", "web"}
		}
		for _, value := range of {
			with := maps.Clone(row)
			with[label] = value
			switch label {
			case "uuid":
				with["parent_uuid"] = map[string]string{"MIG-1": "GPU-1"}[value]
			case "parent_uuid": // next to its device
				with[label] = row[label]
			case "resourceclaim":
				with["namespace"] = map[string]string{"train": "ml", "chat": "web"}[value]
			case "namespace":
				with[label] = cmp.Or(row[label], value)
			case "label_*":
				delete(with, label)
				with["label_team"] = value
			}
			more = append(more, with)
		}
	}
	return more
}

// values returns the values of a label: two where rules select by it.
func values(label string) []string {
	several := map[string][]string{
		"instance": {"old", "new"}, "node": {"n1", "n2"}, "uuid": {"GPU-1", "MIG-1"}, "resourceclaim": {"train", "chat"},
		"pod": {"p1", "p2"}, "queue": {"q", "r"}, "deviceclass": {"", "gpu", "multiple"}, "attribution": {"exclusive", "shared"}, "model": {"H100", "T4"},
		"kind": {"claim", "device_plugin"}, "by": {"hardware", "driver", "kubelet"}, "currency": {"EUR", "USD"}, "label_*": {"", "red"},
		"sensor": {"gpu", "memory"}, "reason": {"thermal", "power"}, "signal": {"parent", "xid_79"}, "severity": {"critical", "warning"},
		"le": {"0.1", "+Inf"}, "state": {"free", "allocated"}, "source": {"nvml", "cdi"}, "engine": {"sm", "dram"}, "xid": {"31", "79"},
	}
	if found, is := several[label]; is {
		return found
	}
	return []string{map[string]string{"job": "dra-exporter", "parent_uuid": "", "workload_kind": "Job", "workload": "train"}[label]}
}

// value returns the value of a series at a minute. Counters rise, and each
// cluster has its own speed. Exporters of one device agree.
func value(series labels.Labels, minute int) float64 {
	name, pace := series.Get("__name__"), float64(1+len(strings.TrimPrefix(series.Get("cluster"), "a")))
	switch {
	case strings.HasSuffix(name, "_total") && series.Get("namespace")+series.Get("attribution") == "webshared":
		return 1 // a device that is no longer shared
	case name == "dra_namespace_shared_device_seconds_total": // a part of all
		return pace * float64(minute*minute) / 2
	case strings.HasSuffix(name, "_total"), strings.HasSuffix(name, "_bucket"), strings.HasSuffix(name, "_count"), strings.HasSuffix(name, "_sum"):
		return pace * float64(minute*minute)
	case name == "dra_device_healthy": // for one device the kubelet disagrees
		if series.Get("uuid")+series.Get("by") == "MIG-1kubelet" {
			return 1
		}
		return 0
	case name == "dra_device_holders": // a claim on one node, a device plugin's pod on the other
		switch series.Get("node") + series.Get("uuid") + series.Get("kind") {
		case "n1GPU-1claim", "n2MIG-1device_plugin":
			return 1
		}
		return 0
	case strings.HasSuffix(name, "_info"), name == "dra_claim_held", name == "up":
		return 1
	case name == "process_start_time_seconds": // a restart in the last window
		return 100 + 600*float64(minute/12)
	}
	return pace / 4
}

// store returns a Prometheus store with these series.
func store(t *testing.T, series []labels.Labels) *tsdb.DB {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	for minute := range minutes + 1 {
		appender := db.Appender(t.Context())
		for _, one := range series {
			if _, err := appender.Append(0, one, int64(minute)*time.Minute.Milliseconds(), value(one, minute)); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// evaluated returns the rows of each rule after the last minute, by their
// labels. It fails the test if a rule fails.
func evaluated(t *testing.T, series []labels.Labels) map[string]map[string]float64 {
	t.Helper()
	db := store(t, series)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	rows := map[string]map[string]float64{}
	for minute := windowEvery; minute <= minutes; minute += windowEvery {
		clear(rows)
		for _, rule := range rules(t) {
			at := time.UnixMilli(0).Add(time.Duration(minute) * time.Minute)
			query, err := engine.NewInstantQuery(t.Context(), db, nil, rule.Expr, at)
			if err != nil {
				t.Fatal(err)
			}
			result := query.Exec(t.Context())
			if result.Err != nil {
				t.Fatalf("%s: %v", rule.Record, result.Err)
			}
			appender := db.Appender(t.Context())
			for _, sample := range result.Value.(promql.Vector) {
				builder := labels.NewBuilder(sample.Metric).Set("__name__", rule.Record)
				for name, text := range rule.Labels {
					builder.Set(name, text)
				}
				if _, err := appender.Append(0, builder.Labels(), at.UnixMilli(), sample.F); err != nil {
					t.Fatalf("%s: %v", rule.Record, err)
				}
				if rows[rule.Record] == nil {
					rows[rule.Record] = map[string]float64{}
				}
				rows[rule.Record][builder.Labels().String()] = sample.F
			}
			if err := appender.Commit(); err != nil {
				t.Fatal(err)
			}
			query.Close()
		}
	}
	return rows
}

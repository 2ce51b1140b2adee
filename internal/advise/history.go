// Package advise says which claims hold more of their devices than they use, and what
// would be enough. It reads the use of devices by requester, which the recording rules
// store every five minutes, from Prometheus, and compares each history with the
// partition profiles of the device's model.
//
// Read → History → Advice → Report, in this order.
package advise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

const (
	// every is the interval of the recording rules that store the histories.
	every = 5 * time.Minute
	// recently is the last part of a history, which must not need more than the part
	// before: otherwise the need still grows.
	recently = 12 * time.Hour
	// Enough is the shortest history for an advice.
	Enough = 24 * time.Hour
)

// Requester is what requests devices, and the devices that it was given.
type Requester struct {
	Cluster     string `json:"cluster,omitempty"`
	Namespace   string `json:"namespace"`
	Kind        string `json:"kind"` // ResourceClaimTemplate, ResourceClaim, or the kind of a workload
	Name        string `json:"name"`
	DeviceClass string `json:"deviceClass,omitempty"`
	Model       string `json:"model,omitempty"`
	Profile     string `json:"partitionProfile,omitempty"` // of the partitions that it holds; empty: whole devices
}

// history is how a requester used its devices in the range. Values are NaN if they are
// not known.
type history struct {
	requester Requester

	held    time.Duration // time in which it held a device
	devices float64       // of its largest claim
	used    float64       // devices that a claim has used at the same time; NaN: none of those that are measured

	unmeasured time.Duration // time in which the use of some device was not known

	heldSeconds, deviceSeconds float64            // the second is weighted by the share of the device
	cost                       map[string]float64 // by currency

	allocated float64 // memory of its smallest device, bytes
	memory    usage   // bytes
	lowest    float64 // the memory of one device that it used in nine windows of ten, bytes
	activity  map[string]*usage

	nvlink      float64       // bytes over NVLink
	shared      time.Duration // time in which the use of a device was not split between its holders
	byProcesses time.Duration // time in which it was split by process
}

// usage is one quantity of the busiest device.
type usage struct {
	known     map[string]time.Duration // by attribution, of which only one applies at a time
	peak      float64                  // in the range
	p99       float64                  // of the peaks of windows of five minutes
	sustained float64                  // the largest mean of such a window
	before    float64                  // the peak, or the largest mean, of all but the last hours of the range
	after     float64                  // that of the last hours
}

func unknownUsage() usage {
	return usage{known: map[string]time.Duration{}, peak: math.NaN(), p99: math.NaN(), sustained: math.NaN(), before: math.NaN(), after: math.NaN()}
}

// time returns for how long the quantity was read; 0 if it never was.
func (u *usage) time() (sum time.Duration) {
	if u != nil {
		for _, known := range u.known {
			sum += known
		}
	}
	return sum
}

// isKnown reports whether the quantity was read for nearly as long as the device was
// held.
func (u *usage) isKnown(held time.Duration) bool {
	return float64(u.time()) >= 0.9*float64(held) && held > 0 && !math.IsNaN(u.peak)
}

// Quantities of activity: utilization, and the engines of dra_claim_engine_active_ratio.
const (
	utilization = "utilization"
	engineSM    = "sm"
	engineDRAM  = "dram"
	decoder     = "decoder"
	encoder     = "encoder"
)

// Querier is an instant query of Prometheus' API.
type Querier interface {
	Query(ctx context.Context, query string, at time.Time, options ...v1.Option) (model.Value, v1.Warnings, v1.Infos, error)
}

// question is a query, and what to do with a value of its result.
type question struct {
	query string
	store func(h *history, labels model.Metric, value float64)
}

// errNoHistory is that Prometheus has nothing that the recording rules store.
var errNoHistory = errors.New("no history")

// read returns the histories in the range before a time. Warnings are what Prometheus
// says about results that may be incomplete.
func read(ctx context.Context, prometheus Querier, namespace string, window time.Duration, at time.Time) (all map[Requester]*history, warnings []string, err error) {
	all = map[Requester]*history{}
	seen := map[string]bool{}
	for _, q := range questions(namespace, window) {
		rows, more, err := ask(ctx, prometheus, q.query, at)
		if err != nil {
			return nil, nil, err
		}
		for _, warning := range more {
			if !seen[warning] {
				seen[warning] = true
				warnings = append(warnings, warning)
			}
		}
		for _, row := range rows {
			value := float64(row.Value)
			if math.IsNaN(value) || math.IsInf(value, 0) {
				continue
			}
			requester := newRequester(row.Metric)
			h := all[requester]
			if h == nil {
				h = &history{
					requester: requester, devices: math.NaN(), used: math.NaN(), cost: map[string]float64{},
					allocated: math.NaN(), memory: unknownUsage(), lowest: math.NaN(), activity: map[string]*usage{},
				}
				all[requester] = h
			}
			q.store(h, row.Metric, value)
		}
	}
	if len(all) > 0 {
		return all, warnings, nil
	}
	return nil, warnings, whyNone(ctx, prometheus, namespace, window, at)
}

// whyNone returns why there are no histories.
func whyNone(ctx context.Context, prometheus Querier, namespace string, window time.Duration, at time.Time) error {
	for _, look := range []struct{ series, says string }{
		{"requester:dra_claim_held_seconds:increase5m", fmt.Sprintf("no claim of the namespace %s has held a device in the last %s", namespace, duration(window))},
		{metric.ExporterBuildInfo, "this Prometheus scrapes dra-exporter, but has no series requester:dra_claim_held_seconds:increase5m: load alerts/recording.yaml (docs/rules.md), or wait until a claim has held a device for ten minutes"},
	} {
		rows, _, err := ask(ctx, prometheus, "count(last_over_time("+look.series+over(window)+"))", at)
		if err != nil {
			return err
		}
		if len(rows) > 0 {
			return fmt.Errorf("%w: %s", errNoHistory, look.says)
		}
	}
	return fmt.Errorf("%w: this Prometheus has no metrics of dra-exporter: see docs/install.md for how it is scraped", errNoHistory)
}

func ask(ctx context.Context, prometheus Querier, query string, at time.Time) (model.Vector, []string, error) {
	value, warnings, _, err := prometheus.Query(ctx, query, at)
	if err != nil {
		return nil, nil, explained(err)
	}
	rows, ok := value.(model.Vector)
	if !ok {
		return nil, nil, fmt.Errorf("query Prometheus: the answer to %s is not a vector", query)
	}
	return rows, warnings, nil
}

func over(window time.Duration) string { return "[" + model.Duration(window).String() + "]" }

// questions returns the queries. Series with several values of a label that is no part of
// a requester are stored one after the other: the largest value counts.
func questions(namespace string, window time.Duration) (all []question) {
	unit := ""
	if namespace != "" {
		unit = "namespace=" + strconv.Quote(namespace)
	}
	add := func(function, series, matchers, suffix string, store func(h *history, labels model.Metric, value float64)) {
		selected := slices.DeleteFunc([]string{matchers, unit}, func(matcher string) bool { return matcher == "" })
		all = append(all, question{function + "requester:" + series + "{" + strings.Join(selected, ",") + "}" + suffix + ")", store})
	}
	simple := func(function, series, matchers string, store func(h *history, value float64)) {
		add(function, series, matchers, over(window), func(h *history, _ model.Metric, value float64) { store(h, value) })
	}
	simple("count_over_time(", "dra_claim_held_seconds:increase5m", "", func(h *history, v float64) { h.held = windows(v) })
	simple("sum_over_time(", "dra_claim_held_seconds:increase5m", "", func(h *history, v float64) { h.heldSeconds = v })
	simple("sum_over_time(", "dra_claim_device_seconds:increase5m", "", func(h *history, v float64) { h.deviceSeconds = v })
	add("sum_over_time(", "dra_claim_cost:increase5m", "", over(window), func(h *history, labels model.Metric, v float64) { h.cost[string(labels["currency"])] = v })
	simple("max_over_time(", "dra_claim_devices:max", "", func(h *history, v float64) { h.devices = v })
	simple("max_over_time(", "dra_claim_used_devices:max5m", "", func(h *history, v float64) { h.used = v })
	simple("count_over_time(", "dra_claim_unmeasured_devices:max5m", "", func(h *history, v float64) { h.unmeasured = windows(v) })
	simple("sum_over_time(", "dra_claim_nvlink_bytes:increase5m", "", func(h *history, v float64) { h.nvlink = v })
	simple("min_over_time(", "dra_claim_memory_allocated_bytes:min5m", "", func(h *history, v float64) { h.allocated = v })
	simple("quantile_over_time(0.1, ", "dra_claim_memory_used_bytes:max5m", `attribution!="shared"`, func(h *history, v float64) { h.lowest = larger(h.lowest, v) })
	for _, quantity := range []string{"dra_claim_memory_used_bytes:max5m", "dra_claim_utilization_ratio:max5m"} {
		simple("count_over_time(", quantity, `attribution="shared"`, func(h *history, v float64) { h.shared = max(h.shared, windows(v)) })
		simple("count_over_time(", quantity, `attribution="process"`, func(h *history, v float64) { h.byProcesses = max(h.byProcesses, windows(v)) })
	}
	quantity := func(maxima, means, matchers string, find func(h *history, labels model.Metric) *usage) {
		values := func(function, series, suffix string, store func(u *usage, v float64)) {
			add(function, series, matchers, suffix, func(h *history, labels model.Metric, v float64) { store(find(h, labels), v) })
		}
		add("count_over_time(", maxima, matchers, over(window), func(h *history, labels model.Metric, v float64) {
			known, as := find(h, labels).known, string(labels["attribution"])
			known[as] = max(known[as], windows(v))
		})
		values("max_over_time(", maxima, over(window), func(u *usage, v float64) { u.peak = larger(u.peak, v) })
		values("quantile_over_time(0.99, ", maxima, over(window), func(u *usage, v float64) { u.p99 = larger(u.p99, v) })
		values("max_over_time(", means, over(window), func(u *usage, v float64) { u.sustained = larger(u.sustained, v) })
		values("max_over_time(", means, over(window-recently)+" offset "+model.Duration(recently).String(), func(u *usage, v float64) { u.before = larger(u.before, v) })
		values("max_over_time(", means, over(recently), func(u *usage, v float64) { u.after = larger(u.after, v) })
	}
	quantity("dra_claim_memory_used_bytes:max5m", "dra_claim_memory_used_bytes:max5m", `attribution!="shared"`,
		func(h *history, _ model.Metric) *usage { return &h.memory })
	quantity("dra_claim_utilization_ratio:max5m", "dra_claim_utilization_ratio:avg5m", `attribution!="shared"`,
		func(h *history, _ model.Metric) *usage { return h.of(utilization) })
	quantity("dra_claim_engine_active_ratio:max5m", "dra_claim_engine_active_ratio:avg5m", "",
		func(h *history, labels model.Metric) *usage { return h.of(string(labels["engine"])) })
	return all
}

// of returns the usage of a quantity of activity.
func (h *history) of(quantity string) *usage {
	if h.activity[quantity] == nil {
		u := unknownUsage()
		h.activity[quantity] = &u
	}
	return h.activity[quantity]
}

func windows(count float64) time.Duration { return time.Duration(count) * every }

// larger returns the larger of two values, of which the first may be unknown.
func larger(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	return max(a, b)
}

func newRequester(labels model.Metric) Requester {
	value := func(name model.LabelName) string { return string(labels[name]) }
	return Requester{
		Cluster: value("cluster"), Namespace: value("namespace"), Kind: value("requester_kind"), Name: value("requester"),
		DeviceClass: value("deviceclass"), Model: value("model"), Profile: value("partition_profile"),
	}
}

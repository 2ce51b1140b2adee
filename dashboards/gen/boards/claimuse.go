package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// byDevice is a family of the claim by device; its attribution says whether the
// value is the claim's own, or that of a whole device which others use as well.
func byDevice(family string) query {
	return over(withDevice("@node", `max by (cluster, node, uuid, attribution) (`+family+`{`+claimHere+`})`), "{{device}} ({{attribution}})")
}

// rateByDevice is the same of a counter.
func rateByDevice(family, direction string) query {
	return over(withDevice("@node", `max by (cluster, node, uuid, attribution) (rate(`+family+`{`+claimHere+`}[$__rate_interval]))`),
		"{{device}} "+direction+" ({{attribution}})")
}

// ofShared says how to read values in brackets.
const ofShared = " In brackets is the attribution (docs/sharing.md): shared is the whole device's, do not add up."

func claimUse() []panel {
	return []panel{
		timeline(12, about{
			title: "Utilization by device", unit: units.PercentUnit,
			reads: "Share of time with work." + ofShared,
			empty: "not reported, or " + needsClaim,
		}, byDevice("dra_claim_utilization_ratio")).Max(1),
		timeline(12, about{
			title: "Memory by device", unit: units.BytesIEC,
			reads: "Used, and given: if equal, the next allocation fails." + ofShared,
			empty: "not reported, or " + needsClaim,
		}, byDevice("dra_claim_memory_used_bytes"),
			over(withDevice("@node", `max by (cluster, node, uuid) (dra_claim_memory_allocated_bytes{`+claimHere+`})`), "{{device}} allocated")),
	}
}

func claimActivity() []panel {
	return []panel{
		timeline(12, about{
			title: "Power by device", unit: units.Watt,
			reads: "Power drawn for it." + ofShared,
			empty: "not reported (partitions do not), or " + needsClaim,
		}, byDevice("dra_claim_power_watts")),
		timeline(12, about{
			title: "NVLink by device", unit: units.BytesPerSecondSI,
			reads: "Over all NVLinks of a device. Several GPUs without NVLink traffic use PCIe." + ofShared,
			empty: "no NVLink, or no counter of its bytes (DCGM has it), or " + needsClaim,
		}, rateByDevice("dra_claim_nvlink_transmit_bytes_total", "sent"), rateByDevice("dra_claim_nvlink_receive_bytes_total", "received")),
		timeline(12, about{
			title: "Engine activity", unit: units.PercentUnit,
			reads: "Mean over devices; of shared ones, with all holders. High utilization with low sm or tensor is inefficient.",
			empty: needsDefault + "not reported (DCGM and profiling do), or " + needsClaim,
		}, over(`avg by (engine) (max by (cluster, node, uuid, engine) (dra_claim_engine_active_ratio{`+claimHere+`}))`, "{{engine}}")).Max(1),
		timeline(12, about{
			title: "Throttling by reason", unit: units.PercentUnit,
			reads: "Mean over devices; reasons may overlap. The power limit is normal for a busy device; thermal reasons and power_brake are problems of the machine.",
			empty: needsDefault + "not reported, or " + needsClaim,
		}, over(`avg by (reason) (max by (cluster, node, uuid, reason) (rate(dra_claim_throttled_seconds_total{`+claimHere+`}[$__rate_interval])))`, "{{reason}}")).Max(1),
		timeline(12, about{
			title: "PCIe and network by device", unit: units.BytesPerSecondSI,
			reads: "PCIe, and network or RDMA devices." + ofShared,
			empty: "not counted, or " + needsClaim,
		},
			rateByDevice("dra_claim_pcie_transmit_bytes_total", "PCIe sent"), rateByDevice("dra_claim_pcie_receive_bytes_total", "PCIe received"),
			rateByDevice("dra_claim_network_transmit_bytes_total", "network sent"), rateByDevice("dra_claim_network_receive_bytes_total", "network received")),
		timeline(12, about{
			title: "Utilization by pod", unit: units.PercentUnit,
			reads: "By the processes of each pod, on devices of several pods.",
			empty: "no device of several pods, not split (reason: dra_exporter_process_attribution), or " + needsClaim,
		}, over(withDevice("@node", `max by (cluster, node, namespace, pod, uuid) (dra_pod_utilization_ratio{@node, namespace="$namespace"})
and on (cluster, node, namespace, pod, uuid)
max by (cluster, node, namespace, pod, uuid) (dra_claim_consumer_info{`+claimHere+`})`), "{{pod}} on {{device}}")).Max(1),
	}
}

// accrued is what a counter of the claim has gained in the time range, over its
// devices. What it had when it was first scraped is left out: some seconds.
func accrued(family, matchers string) string {
	return `sum(max by (cluster, node, uuid) (increase(` + family + `{` + claimHere + matchers + `}[$__range])))`
}

// busyAlone is the busy time of each device, without those where a part of it
// cannot be attributed to one claim: their held time is not split likewise.
const busyAlone = `max by (cluster, node, uuid) (increase(dra_claim_busy_seconds_total{` + claimHere + unshared + `}[$__range]))
  unless on (cluster, node, uuid) increase(dra_claim_busy_seconds_total{` + claimHere + `, attribution="shared"}[$__range]) > 0`

const unshared = `, attribution!="shared"`

func claimTotals() []panel {
	return []panel{
		number(5, about{
			title: "Device-hours in the range", unit: units.Short,
			reads: "Weighted by the held share: half a device for two hours is one.",
			empty: needsClaim,
		}, at(accrued("dra_claim_device_seconds_total", "")+` / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy hours in the range", unit: units.Short,
			reads: "Without shared devices that are not split.",
			empty: "not reported or not split, or " + needsClaim,
		}, at(accrued("dra_claim_busy_seconds_total", unshared)+` / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy share in the range", unit: units.PercentUnit,
			reads: "Of device-hours that are reported and split. Above 1, the claim uses more of a shared device than given. If low, fewer or smaller devices are enough.",
			empty: "not reported or not split, or " + needsClaim,
		}, at(`sum(`+busyAlone+`)
/ (sum(
  max by (cluster, node, uuid) (increase(dra_claim_device_seconds_total{`+claimHere+`}[$__range]))
  and on (cluster, node, uuid) (`+busyAlone+`)
) > 0)`)).Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(5, about{
			title: "Energy in the range", unit: units.WattHour,
			reads: "Drawn for the claim, without shared devices.",
			empty: "not reported (partitions do not), shared, or " + needsClaim,
		}, at(accrued("dra_claim_energy_joules_total", unshared)+` / 3600`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Cost in the range", unit: units.Short,
			reads: "Device-hours by the price list, in the heading's currency." + whereverItIs,
			empty: "no price list (--cost.prices), no matching rule, or " + needsAccounting,
		}, each(`sum by (currency) (sum_over_time(claim:dra_claim_cost:increase5m{@claim}[$__range]))`, "{{currency}}")).
			TextMode(common.BigValueTextModeValueAndName).ColorScheme(always(neutral)).Decimals(2),
	}
}

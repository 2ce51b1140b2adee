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
const ofShared = " In brackets is whose value it is: exclusive and partition, the claim has the device alone; process, it is what its processes do; " +
	"shared, it is the whole device's, others' use included, and must not be added up."

func claimUse() []panel {
	return []panel{
		timeline(12, about{
			title: "Utilization by device", unit: units.PercentUnit,
			reads: "Share of time with work on the device." + ofShared,
			empty: "its devices do not tell, or " + needsClaim,
		}, byDevice("dra_claim_utilization_ratio")).Max(1),
		timeline(12, about{
			title: "Memory by device", unit: units.BytesIEC,
			reads: "Device memory in use, and what the claim was given: where the two meet, the next allocation fails." + ofShared,
			empty: "its devices do not tell, or " + needsClaim,
		}, byDevice("dra_claim_memory_used_bytes"),
			over(withDevice("@node", `max by (cluster, node, uuid) (dra_claim_memory_allocated_bytes{`+claimHere+`})`), "{{device}} allocated")),
		timeline(12, about{
			title: "Power by device", unit: units.Watt,
			reads: "Power drawn for the claim." + ofShared,
			empty: "its devices do not tell (partitions do not), or " + needsClaim,
		}, byDevice("dra_claim_power_watts")),
		timeline(12, about{
			title: "NVLink by device", unit: units.BytesPerSecondSI,
			reads: "Bytes sent and received over all NVLinks of the device. A job on several GPUs that shows none goes over PCIe." + ofShared,
			empty: "its devices have no NVLink, or do not count its bytes (DCGM does), or " + needsClaim,
		}, rateByDevice("dra_claim_nvlink_transmit_bytes_total", "sent"), rateByDevice("dra_claim_nvlink_receive_bytes_total", "received")),
	}
}

func claimDetails() []panel {
	return []panel{
		timeline(12, about{
			title: "Engine activity", unit: units.PercentUnit,
			reads: "Share of time in which each engine was active, mean over the claim's devices; of a device that others use as well, theirs too. " +
				"A high utilization with little sm or tensor activity: the job keeps the device waiting.",
			empty: "its devices do not tell engines apart (DCGM and profiling do), or " + needsClaim,
		}, over(`avg by (engine) (max by (cluster, node, uuid, engine) (dra_claim_engine_active_ratio{`+claimHere+`}))`, "{{engine}}")).Max(1),
		timeline(12, about{
			title: "Throttling by reason", unit: units.PercentUnit,
			reads: "Share of time in which a device of the claim slowed itself down, mean over its devices. Several reasons may hold at once. " +
				"At the power limit that is how a busy device works; thermal reasons and power_brake are trouble of the machine.",
			empty: "its devices do not tell, or " + needsClaim,
		}, over(`avg by (reason) (max by (cluster, node, uuid, reason) (rate(dra_claim_throttled_seconds_total{`+claimHere+`}[$__rate_interval])))`, "{{reason}}")).Max(1),
		timeline(12, about{
			title: "PCIe and network by device", unit: units.BytesPerSecondSI,
			reads: "Bytes over PCIe, and over network or RDMA devices." + ofShared,
			empty: "its devices do not count these bytes, or " + needsClaim,
		},
			rateByDevice("dra_claim_pcie_transmit_bytes_total", "PCIe sent"), rateByDevice("dra_claim_pcie_receive_bytes_total", "PCIe received"),
			rateByDevice("dra_claim_network_transmit_bytes_total", "network sent"), rateByDevice("dra_claim_network_receive_bytes_total", "network received")),
		timeline(12, about{
			title: "Utilization by pod", unit: units.PercentUnit,
			reads: "What the processes of each of the claim's pods do on each device, where several pods use the device and their processes are known.",
			empty: "no other pod uses the devices, processes are not told apart (dra_exporter_process_attribution says why), or " + needsClaim,
		}, over(withDevice("@node", `max by (cluster, node, namespace, pod, uuid) (dra_pod_utilization_ratio{@node, namespace="$namespace"})
and on (cluster, node, namespace, pod, uuid)
max by (cluster, node, namespace, pod, uuid) (dra_claim_consumer_info{`+claimHere+`})`), "{{pod}} on {{device}}")).Max(1),
	}
}

// accrued is what a counter of the claim has gained in the chosen time, over its
// devices. What it had when it was first scraped is left out: some seconds.
func accrued(family, matchers string) string {
	return `sum(max by (cluster, node, uuid) (increase(` + family + `{` + claimHere + matchers + `}[$__range])))`
}

// busyAlone is the busy time of each device, but of those where a part of it is
// nobody's own: the time for which they were held is not split likewise.
const busyAlone = `max by (cluster, node, uuid) (increase(dra_claim_busy_seconds_total{` + claimHere + unshared + `}[$__range]))
  unless on (cluster, node, uuid) increase(dra_claim_busy_seconds_total{` + claimHere + `, attribution="shared"}[$__range]) > 0`

const unshared = `, attribution!="shared"`

func claimTotals() []panel {
	const ended = "; a claim that has ended counts as long as the chosen time reaches back to it"
	return []panel{
		number(5, about{
			title: "Device-hours", unit: units.Short,
			reads: "Hours for which the claim held devices in the chosen time, weighted by its share of each: half a device for two hours is one.",
			empty: needsClaim + ended,
		}, at(accrued("dra_claim_device_seconds_total", "")+` / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy device-hours", unit: units.Short,
			reads: "Busy time of the claim in the chosen time, where it is the claim's own.",
			empty: "its devices do not tell, are shared without a split, or " + needsClaim + ended,
		}, at(accrued("dra_claim_busy_seconds_total", unshared)+` / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy share", unit: units.PercentUnit,
			reads: "Busy time as a share of the device-hours of those of its devices that tell, but for devices that others used as well in that time without a split. Above 1 where it uses more of a shared device than it was given. Low: fewer or smaller devices would do.",
			empty: "its devices do not tell, are shared without a split, or " + needsClaim + ended,
		}, at(`sum(`+busyAlone+`)
/ (sum(
  max by (cluster, node, uuid) (increase(dra_claim_device_seconds_total{`+claimHere+`}[$__range]))
  and on (cluster, node, uuid) (`+busyAlone+`)
) > 0)`)).Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(5, about{
			title: "Energy", unit: units.WattHour,
			reads: "Energy drawn for the claim in the chosen time, where it is the claim's own.",
			empty: "its devices do not tell (partitions do not), are shared, or " + needsClaim + ended,
		}, at(accrued("dra_claim_energy_joules_total", unshared)+` / 3600`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Cost", unit: units.Short,
			reads: "What the device-hours of the chosen time cost by the price list, in the currency above it." + whereverItIs,
			empty: "the exporters were given no price list (--cost.prices), none of its rules fits, or " + needsAccounting,
		}, each(`sum by (currency) (sum_over_time(claim:dra_claim_cost:increase5m{@claim}[$__range]))`, "{{currency}}")).
			TextMode(common.BigValueTextModeValueAndName).ColorScheme(always(neutral)).Decimals(2),
	}
}

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
const ofShared = " In brackets is the attribution: exclusive and partition, the claim has the device alone; process, the value of its processes; " +
	"shared, the value of the whole device with all its holders, which must not be added up."

func claimUse() []panel {
	return []panel{
		timeline(12, about{
			title: "Utilization by device", unit: units.PercentUnit,
			reads: "Share of time with work on the device." + ofShared,
			empty: "its devices do not report it, or " + needsClaim,
		}, byDevice("dra_claim_utilization_ratio")).Max(1),
		timeline(12, about{
			title: "Memory by device", unit: units.BytesIEC,
			reads: "Device memory used, and the memory given to the claim: if both are equal, the next memory allocation fails." + ofShared,
			empty: "its devices do not report it, or " + needsClaim,
		}, byDevice("dra_claim_memory_used_bytes"),
			over(withDevice("@node", `max by (cluster, node, uuid) (dra_claim_memory_allocated_bytes{`+claimHere+`})`), "{{device}} allocated")),
	}
}

func claimActivity() []panel {
	return []panel{
		timeline(12, about{
			title: "Power by device", unit: units.Watt,
			reads: "Power drawn for the claim." + ofShared,
			empty: "its devices do not report it (partitions do not), or " + needsClaim,
		}, byDevice("dra_claim_power_watts")),
		timeline(12, about{
			title: "NVLink by device", unit: units.BytesPerSecondSI,
			reads: "Bytes sent and received over all NVLinks of the device. A job on several GPUs without NVLink traffic uses PCIe." + ofShared,
			empty: "its devices have no NVLink, or do not count its bytes (DCGM does), or " + needsClaim,
		}, rateByDevice("dra_claim_nvlink_transmit_bytes_total", "sent"), rateByDevice("dra_claim_nvlink_receive_bytes_total", "received")),
		timeline(12, about{
			title: "Engine activity", unit: units.PercentUnit,
			reads: "Share of time in which each engine was active, mean over the claim's devices; for a shared device, with all its holders. " +
				"High utilization with low sm or tensor activity means that the job does not use the device efficiently.",
			empty: "its devices do not report engines (DCGM and profiling do), or " + needsClaim,
		}, over(`avg by (engine) (max by (cluster, node, uuid, engine) (dra_claim_engine_active_ratio{`+claimHere+`}))`, "{{engine}}")).Max(1),
		timeline(12, about{
			title: "Throttling by reason", unit: units.PercentUnit,
			reads: "Share of time in which the claim's devices were throttled, mean over its devices. Several reasons may apply at once. " +
				"Throttling at the power limit is normal for a busy device; thermal reasons and power_brake are problems of the machine.",
			empty: "its devices do not report it, or " + needsClaim,
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
			reads: "Utilization by the processes of each of the claim's pods on each device, if several pods use it and it is split by process.",
			empty: "no other pod uses the devices, use is not split by process (dra_exporter_process_attribution has the reason), or " + needsClaim,
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
	const ended = "; a claim that has ended counts while the time range includes it"
	return []panel{
		number(5, about{
			title: "Device-hours in the range", unit: units.Short,
			reads: "Hours for which the claim held devices in the time range, weighted by its share: half a device for two hours is one.",
			empty: needsClaim + ended,
		}, at(accrued("dra_claim_device_seconds_total", "")+` / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy device-hours in the range", unit: units.Short,
			reads: "Busy time of the claim in the time range, without devices that are shared without a split.",
			empty: "its devices do not report it, are shared without a split, or " + needsClaim + ended,
		}, at(accrued("dra_claim_busy_seconds_total", unshared)+` / 3600`)).ColorScheme(always(neutral)).Decimals(2),
		number(5, about{
			title: "Busy share in the range", unit: units.PercentUnit,
			reads: "Busy time as a share of the device-hours of devices that report it, without devices that were shared without a split in that time. Above 1, the claim uses more of a shared device than it was given. If it is low, fewer or smaller devices are enough.",
			empty: "its devices do not report it, are shared without a split, or " + needsClaim + ended,
		}, at(`sum(`+busyAlone+`)
/ (sum(
  max by (cluster, node, uuid) (increase(dra_claim_device_seconds_total{`+claimHere+`}[$__range]))
  and on (cluster, node, uuid) (`+busyAlone+`)
) > 0)`)).Thresholds(steps(critical, step{0.2, warning}, step{0.5, good})).ColorScheme(byThresholds()),
		number(5, about{
			title: "Energy in the range", unit: units.WattHour,
			reads: "Energy drawn for the claim in the time range, without shared devices.",
			empty: "its devices do not report it (partitions do not), are shared, or " + needsClaim + ended,
		}, at(accrued("dra_claim_energy_joules_total", unshared)+` / 3600`)).ColorScheme(always(neutral)),
		number(4, about{
			title: "Cost in the range", unit: units.Short,
			reads: "Cost of the device-hours of the time range by the price list, in the currency in the heading." + whereverItIs,
			empty: "the exporters have no price list (--cost.prices), none of its rules matches, or " + needsAccounting,
		}, each(`sum by (currency) (sum_over_time(claim:dra_claim_cost:increase5m{@claim}[$__range]))`, "{{currency}}")).
			TextMode(common.BigValueTextModeValueAndName).ColorScheme(always(neutral)).Decimals(2),
	}
}

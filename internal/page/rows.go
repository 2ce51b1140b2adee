package page

import (
	"math"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// FromRows makes the view of a snapshot's rows, as of a moment. It goes by
// the names of the families and their labels, as any reader of a scrape does;
// families that it does not know are passed over.
func FromRows(rows []metric.Row, at time.Time) View {
	r := newReader(at)
	readRows(rows, r, familyReaders())
	return r.finish()
}

// readRows gives each row to the one who reads its family, if there is one.
func readRows[R any](rows []metric.Row, r R, readers map[string]func(R, metric.Row)) {
	var (
		family *metric.Family
		read   func(R, metric.Row)
	)
	for _, row := range rows {
		if row.Family != family { // the rows of a family stand together
			family, read = row.Family, readers[row.Family.Name]
		}
		if read != nil {
			read(r, row)
		}
	}
}

// familyReaders says what each family adds to a view.
func familyReaders() map[string]func(*reader, metric.Row) {
	return map[string]func(*reader, metric.Row){
		"dra_device_info":                 (*reader).deviceInfo,
		"dra_device_published_info":       (*reader).publishedInfo,
		"dra_device_utilization_ratio":    ofDevice(func(d *Device) **float64 { return &d.Utilization }),
		"dra_device_memory_used_bytes":    ofDevice(func(d *Device) **float64 { return &d.MemoryUsed }),
		"dra_device_memory_size_bytes":    ofDevice(func(d *Device) **float64 { return &d.MemorySize }),
		"dra_device_power_watts":          ofDevice(func(d *Device) **float64 { return &d.Power }),
		"dra_device_power_limit_watts":    ofDevice(func(d *Device) **float64 { return &d.PowerLimit }),
		"dra_device_temperature_celsius":  (*reader).temperature,
		"dra_device_plugin_consumer_info": (*reader).pluginConsumer,
		"dra_device_partition_info":       (*reader).partitionInfo,
		"dra_device_price_per_hour":       (*reader).price,

		"dra_device_unattributed_utilization_ratio": ofUnattributed(func(u *Use) **float64 { return &u.Utilization }),
		"dra_device_unattributed_memory_bytes":      ofUnattributed(func(u *Use) **float64 { return &u.MemoryUsed }),
		"dra_pod_utilization_ratio":                 ofPod(func(u *Use) **float64 { return &u.Utilization }),
		"dra_pod_memory_used_bytes":                 ofPod(func(u *Use) **float64 { return &u.MemoryUsed }),

		"dra_device_healthy":                    (*reader).healthy,
		"dra_device_health_signal_info":         (*reader).healthSignal,
		"dra_device_taint_info":                 (*reader).taint,
		"dra_device_xid_errors_total":           (*reader).xidCount,
		"dra_device_xid_last_timestamp_seconds": (*reader).xidLast,

		"dra_claim_info":          (*reader).claimInfo,
		"dra_claim_device_info":   (*reader).claimDevice,
		"dra_claim_consumer_info": (*reader).claimConsumer,
		"dra_claim_held":          (*reader).claimHeld,

		"dra_claim_utilization_ratio": ofSplittable(func(c *ClaimDevice) (**float64, *string) {
			return &c.Utilization, &c.UtilizationAttribution
		}),
		"dra_claim_memory_used_bytes": ofSplittable(func(c *ClaimDevice) (**float64, *string) {
			return &c.MemoryUsed, &c.MemoryAttribution
		}),
		"dra_claim_power_watts":                  ofPresent(func(c *ClaimDevice) **float64 { return &c.Power }),
		"dra_claim_idle_since_timestamp_seconds": (*reader).claimIdle,
		"dra_claim_memory_allocated_bytes":       ofClaim(func(c *ClaimDevice) **float64 { return &c.MemoryAllocated }),
		"dra_claim_held_seconds_total":           ofClaim(func(c *ClaimDevice) **float64 { return &c.HeldSeconds }),
		"dra_claim_device_seconds_total":         ofClaim(func(c *ClaimDevice) **float64 { return &c.DeviceSeconds }),
		"dra_claim_busy_seconds_total":           ofAccount(func(a *Account) **float64 { return &a.Busy }),
		"dra_claim_energy_joules_total":          ofAccount(func(a *Account) **float64 { return &a.Energy }),
		"dra_claim_nvlink_transmit_bytes_total":  ofAccount(func(a *Account) **float64 { return &a.NVLinkTransmit }),
		"dra_claim_nvlink_receive_bytes_total":   ofAccount(func(a *Account) **float64 { return &a.NVLinkReceive }),

		"dra_namespace_device_seconds_total":        ofNamespace(func(t *Totals) **float64 { return &t.DeviceSeconds }),
		"dra_namespace_shared_device_seconds_total": ofNamespace(func(t *Totals) **float64 { return &t.SharedSeconds }),
		"dra_namespace_busy_seconds_total":          ofNamespace(func(t *Totals) **float64 { return &t.BusySeconds }),
		"dra_namespace_energy_joules_total":         ofNamespace(func(t *Totals) **float64 { return &t.Energy }),
		"dra_namespace_cost_total":                  (*reader).cost,

		"dra_exporter_process_attribution":                   (*reader).processAttribution,
		"dra_exporter_build_info":                            (*reader).buildInfo,
		"dra_exporter_sample_timestamp_seconds":              (*reader).sampleTime,
		"dra_exporter_source_up":                             (*reader).sourceUp,
		"dra_exporter_source_error_info":                     (*reader).sourceError,
		"dra_exporter_source_last_success_timestamp_seconds": (*reader).sourceSuccess,
	}
}

// known is the value of a row, nil if it is not a number that could be shown.
func known(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	return &value
}

// moment is the time of a _timestamp_seconds row, to the millisecond.
func moment(row metric.Row) time.Time {
	if known(row.Value) == nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(row.Value * 1000))).UTC()
}

// ofDevice stores a quantity of a device.
func ofDevice(field func(*Device) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) { *field(&r.device(row).Device) = known(row.Value) }
}

// ofClaim stores what a claim gets of a device, whatever its attribution.
func ofClaim(field func(*ClaimDevice) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) { *field(r.held(row)) = known(row.Value) }
}

// ofPresent stores a gauge of a claim that is never split. Gauges are there
// under the present attribution alone, and so tell it.
func ofPresent(field func(*ClaimDevice) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) {
		device := r.held(row)
		device.Attribution = row.Labels.Get("attribution")
		*field(device) = known(row.Value)
	}
}

// ofAccount stores a total of a claim under the row's attribution.
func ofAccount(field func(*Account) **float64) func(*reader, metric.Row) {
	return func(r *reader, row metric.Row) { *field(r.account(row)) = known(row.Value) }
}

package cluster

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

func healthFamilies() definitions {
	return definitions{
		keyed(
			metric.Family{
				Name: metric.DeviceHealthDisagreement, Labels: []string{"driver", "pool", "device"},
				Help: "1 if driver (taints) and kubelet (pod status) disagree on the device's health, 0 if they agree; absent if one is unknown",
			},
			func(m *labelled) []*model.DeviceHealth { return m.Health },
			func(h *model.DeviceHealth) *model.DeviceHealth { return h },
			func(h *model.DeviceHealth) rowValues { return rowValues{h.Device.Driver, h.Device.Pool, h.Device.Name} },
			func(h *model.DeviceHealth) (float64, time.Time) { return number(flag(h.Disagree)) },
		),
		counted(
			metric.Family{
				Name: metric.PodTaintEvictions, Type: metric.Counter, Labels: []string{"namespace"},
				Help: "Pods that were evicted because of a device taint",
			},
			func(m *labelled) []model.Counter { return m.Evictions },
		),
		counted(
			metric.Family{
				Name: metric.ExporterClockAnomalies, Type: metric.Counter, Labels: []string{"phase"},
				Help: "Durations for which clocks contradict each other; most are not observed (docs/pending.md)",
			},
			func(m *labelled) []model.Counter { return m.ClockErrors },
		),
	}
}

func diagnosisFamilies() definitions {
	return definitions{
		counted(
			metric.Family{
				Name: "dra_exporter_diagnosis_seconds_total", Unit: "seconds", Type: metric.Counter, Labels: []string{"namespace"},
				Help: "Time spent on diagnoses; namespace is empty for device classes and after the first 100 namespaces",
			},
			func(m *labelled) []model.Counter { return m.DiagnosisSeconds },
		),
		counted(
			metric.Family{
				Name: "dra_exporter_queued_diagnoses", Labels: []string{"kind"},
				Help: "Queued diagnoses, the first or again after changes; pods whose claims ask for the same share one",
			},
			func(m *labelled) []model.Counter { return m.QueuedDiagnoses },
		),
		listed(
			metric.Family{
				Name: "dra_exporter_undiagnosed_since_timestamp_seconds", Unit: "seconds", Labels: []string{"cause"},
				Help: "Unix time since which the oldest pending claim waits for a diagnosis (queued) or exceeds its limit (over_limit)",
			},
			func(m *labelled) []model.Undiagnosed { return m.Undiagnosed },
			func(u model.Undiagnosed) rowValues { return rowValues{u.Cause} },
			func(u model.Undiagnosed) (float64, time.Time) {
				return float64(u.Since.UnixMilli()) / 1000, time.Time{}
			},
		),
	}
}

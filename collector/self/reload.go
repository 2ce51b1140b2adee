package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// Reload are the families of reading configuration files again, under the names
// that Prometheus' programs give them. They live in the registry, and are there
// only where a file can be reloaded.
type Reload struct {
	Successful *metric.Family
	// LastSuccess is at the start of the process before the first reload.
	LastSuccess *metric.Family
}

// NewReload makes the families.
func NewReload() *Reload {
	return &Reload{
		Successful: &metric.Family{Name: "dra_exporter_config_last_reload_successful", Type: metric.Gauge,
			Help: "1 if the last reload of the price list succeeded, 0 if the previous list is in use"},
		LastSuccess: &metric.Family{Name: "dra_exporter_config_last_reload_success_timestamp_seconds", Unit: "seconds", Type: metric.Gauge,
			Help: "Unix time of the last successful read of the price list"},
	}
}

// All returns the families, for the documentation and for checks.
func (r *Reload) All() []*metric.Family { return []*metric.Family{r.Successful, r.LastSuccess} }

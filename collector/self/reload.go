package self

import "github.com/dra-exporter/dra-exporter/collector/metric"

// Reload are the families of reading configuration files again, under the names
// that Prometheus' programs give them. They are in the registry if a file can
// be reloaded.
type Reload struct {
	Successful *metric.Family
	// LastSuccess is at the start of the process before the first reload.
	LastSuccess *metric.Family
}

// NewReload makes the families.
func NewReload() *Reload {
	return &Reload{
		Successful: &metric.Family{Name: "dra_exporter_config_last_reload_successful", Type: metric.Gauge,
			Help: "1 if the price list was read by the last reload, 0 if the one before it is still in force"},
		LastSuccess: &metric.Family{Name: "dra_exporter_config_last_reload_success_timestamp_seconds", Unit: "seconds", Type: metric.Gauge,
			Help: "When the price list was last read with success"},
	}
}

// All returns the families, for the documentation and for checks.
func (r *Reload) All() []*metric.Family { return []*metric.Family{r.Successful, r.LastSuccess} }

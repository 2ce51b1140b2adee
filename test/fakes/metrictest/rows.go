package metrictest

import (
	"fmt"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// DenseRows are 5,632 rows, for benchmarks: 64 accounts of 64 gauges and 24
// counters each, with the labels of a claim's rows and values of many digits.
func DenseRows() []metric.Row {
	const accounts, gauges, counters = 64, 64, 24
	names := []string{"node", "namespace", "resourceclaim", "uuid", "attribution"}
	var labels []*metric.Labels
	for i := range accounts {
		labels = append(labels, metric.NewLabels(names, "gpu-node-17.example.com", "research",
			fmt.Sprintf("training-job-%d-gpu-x7k2p", i), fmt.Sprintf("GPU-4c1f2a90-0b2d-4a57-9d3e-%012d", i), "exclusive"))
	}
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	var rows []metric.Row
	for f := range gauges + counters {
		family := &metric.Family{Name: fmt.Sprintf("dra_claim_quantity_%02d_bytes", f), Help: "A quantity of a claim", Unit: "bytes"}
		if f >= gauges {
			family.Name, family.Type = family.Name+"_total", metric.Counter
		}
		for i, l := range labels {
			row := metric.Row{Family: family, Labels: l, Value: 1234.5678 * float64(f*i)}
			if family.Type == metric.Counter {
				row.Start = start
			}
			rows = append(rows, row)
		}
	}
	return rows
}

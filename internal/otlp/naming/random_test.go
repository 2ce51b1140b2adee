package naming

import (
	"math/rand/v2"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/attribute"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// randomRows are rows of any families, with few values for each label, so that
// devices, claims and engines meet in many ways: of two families in three, or of one in
// twelve.
func randomRows(random *rand.Rand, values []string, few bool) []metric.Row {
	families := rolesFamilies()
	var rows []metric.Row
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for name := range families {
			if chosen := random.IntN(3) > 0; chosen && (!few || random.IntN(8) == 0) && !yield(name) {
				return
			}
		}
	}) {
		family, seen := families[name], map[attribute.Distinct]bool{}
		if family.Type == metric.Histogram {
			continue
		}
		for range random.IntN(8) {
			picked := make([]string, len(family.Labels))
			for i := range picked {
				if picked[i] = values[random.IntN(len(values))]; family.Labels[i] == "node" {
					picked[i] = "node-a"
				}
			}
			labels := metric.NewLabels(family.Labels, picked...)
			set := labelSet(labels)
			if seen[set.Equivalent()] {
				continue
			}
			seen[set.Equivalent()] = true
			rows = append(rows, metric.Row{Family: family, Labels: labels, Value: float64(random.IntN(5))})
		}
	}
	return rows
}

// Every row of any page is exported exactly once, under attributes of its own.
func TestSemconvOfRandomPages(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 11))
	values := []string{"", "a", "b", generalTask, "engine_general", "hardware", "active", "warning", "nvml", "rdma", "receive", "pcie"}
	naming, all := NewSemConv(), 0
	for range 100 {
		rows := randomRows(random, values, false)
		checkSemconv(t, rows, naming.Metrics(rows, parseNode(rows), semconvTime), semconvTime)
		all += len(rows)
	}
	if all < 10000 {
		t.Errorf("only %d rows", all)
	}
}

// Values of labels are external text: whatever they are, they are exported as they
// are scraped, and never make one point of two.
func FuzzSemconv(f *testing.F) {
	f.Add("general", "engine_general", uint64(1))
	f.Add("", "\xff", uint64(2))
	f.Add("a,b=\"c\"", "other", uint64(3))
	f.Fuzz(func(t *testing.T, one, other string, seed uint64) {
		rows := randomRows(rand.New(rand.NewPCG(seed, 1)), []string{one, other, "", generalTask, "hardware", "active"}, true)
		naming := NewSemConv()
		for range 2 {
			checkSemconv(t, rows, naming.Metrics(rows, parseNode(rows), semconvTime), semconvTime)
		}
	})
}

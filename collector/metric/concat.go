package metric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Concat returns a gatherer of everything that the others gather, sorted by
// name. Unlike prometheus.Gatherers it looks at no series, which would cost
// more than to encode it: each gatherer answers for its own, and tests look.
// A family that two of them have is an error, and appears twice.
//
// When gatherers fail, what the others and they themselves found is returned
// beside the error.
func Concat(gatherers ...prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		var (
			all  []*dto.MetricFamily
			errs []error
		)
		for _, gatherer := range gatherers {
			families, err := gatherer.Gather()
			if err != nil {
				errs = append(errs, err)
			}
			all = append(all, families...)
		}
		slices.SortStableFunc(all, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
		for i := 1; i < len(all); i++ {
			if all[i].GetName() == all[i-1].GetName() {
				errs = append(errs, duplicate(all[i]))
			}
		}
		return all, errors.Join(errs...)
	})
}

// Beside returns a gatherer of what another one gathers to be shown after the
// page. As with Concat, a family that both have is an error, and appears twice.
func (p *Page) Beside(live prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := live.Gather()
		errs := []error{err}
		for _, family := range families {
			_, ok := slices.BinarySearchFunc(p.runs(), family.GetName(), func(r run, name string) int { return strings.Compare(r.family.Name, name) })
			if ok {
				errs = append(errs, duplicate(family))
			}
		}
		return families, errors.Join(errs...)
	})
}

func duplicate(family *dto.MetricFamily) error {
	return fmt.Errorf("gather %s: two sides have a family of this name", family.GetName())
}

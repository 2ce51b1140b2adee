package direct

// gpm are the two samples of a device between which metrics are computed. The
// zero value has none.
type gpm struct {
	unsupported bool
	samples     [2]uintptr // of the library; 0: none
	newer       int
	taken       bool // the newer one
}

// measure takes a sample and returns the metrics since the one before, nil if
// there is none. The instance is that of a MIG device, nil for a whole GPU.
func (g *gpm) measure(q *query, instance *float64) map[string]float64 {
	if g.unsupported || !g.allocate(q) {
		return nil
	}
	next := 1 - g.newer
	if !g.take(q, g.samples[next], instance) {
		g.taken = false
		return nil
	}
	before := g.taken
	g.newer, g.taken = next, true
	if !before {
		return nil
	}
	return g.metrics(q)
}

// allocate allocates the samples, once, if the device supports GPM.
func (g *gpm) allocate(q *query) bool {
	if g.samples[1] != 0 {
		return true
	}
	l := q.library
	g.unsupported = true
	if l.gpmAlloc.function == nil || l.gpmFree.function == nil || l.gpmMetrics.function == nil {
		return false
	}
	support := gpmSupport{version: gpmSupportVersion}
	if !known(q, &l.gpmQuery, func(f func(uintptr, *gpmSupport) int32) int32 { return f(q.handle, &support) }, l.gpmQuery.function != nil) || support.supported == 0 {
		return false
	}
	for i := range g.samples {
		if !known(q, &l.gpmAlloc, func(f func(*uintptr) int32) int32 { return f(&g.samples[i]) }, true) {
			g.free(l)
			return false
		}
	}
	g.unsupported = false
	return true
}

func (g *gpm) take(q *query, sample uintptr, instance *float64) bool {
	l := q.library
	if instance != nil {
		return known(q, &l.gpmMIGSample, func(f func(uintptr, uint32, uintptr) int32) int32 {
			return f(q.handle, uint32(*instance), sample)
		}, l.gpmMIGSample.function != nil)
	}
	return known(q, &l.gpmSample, func(f func(uintptr, uintptr) int32) int32 { return f(q.handle, sample) }, l.gpmSample.function != nil)
}

func (g *gpm) metrics(q *query) map[string]float64 {
	wanted := GPMMetrics()
	request := gpmMetrics{
		version: gpmMetricsVersion, count: uint32(len(wanted)),
		sample1: g.samples[1-g.newer], sample2: g.samples[g.newer],
	}
	for i, m := range wanted {
		request.metrics[i].id = m.id
	}
	l := q.library
	if !known(q, &l.gpmMetrics, func(f func(*gpmMetrics) int32) int32 { return f(&request) }, true) {
		return nil
	}
	found := make(map[string]float64)
	for i, m := range wanted {
		answer := request.metrics[i]
		if value := finite(answer.value / m.per); answer.code == success && value != nil {
			found[m.Name] = *value
		}
	}
	return found
}

// free frees the samples.
func (g *gpm) free(l *Library) {
	for i, sample := range g.samples {
		if sample != 0 {
			l.gpmFree.function(sample)
		}
		g.samples[i] = 0
	}
	g.taken = false
}

package explain

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// mostHelp is how many holders or pools advice names one by one.
const mostHelp = 5

// short reports by how many devices a stage falls short of what is asked for.
func (f Funnel) short(stage dra.Stage) int64 {
	left, known := f.Left[stage.String()]
	if !known {
		return 0
	}
	return max(f.Asked, 1) - int64(left)
}

// which names a request in a sentence; the request of an extended resource
// has the resource's name.
func (w *Waiting) which(f Funnel) string {
	if w.ExtendedResource != "" {
		return w.ExtendedResource
	}
	return "request " + f.Request
}

func (a account) helpNoMatch(told *Waiting) []string {
	var help []string
	for _, broken := range told.Broken {
		if broken.Device == "" {
			help = append(help, fmt.Sprintf("correct the CEL expression of %s: it does not compile", broken.Where))
			continue
		}
		help = append(help, fmt.Sprintf("have the CEL expression of %s ask whether there is such an attribute or capacity first (\"name\" in device.attributes[\"domain\"]): one device for which it fails keeps the scheduler from allocating any", broken.Where))
	}
	for _, funnel := range told.Funnel {
		help = append(help, a.unmatched(told, funnel)...)
	}
	return append(help, told.renew())
}

func (a account) unmatched(told *Waiting, funnel Funnel) []string {
	if len(told.Broken) > 0 {
		return nil
	}
	published, class, selected := funnel.Left[dra.StagePublished.String()], funnel.Left[dra.StageClass.String()], funnel.Left[dra.StageSelectors.String()]
	switch {
	case published == 0:
		return []string{"no driver publishes any device: see whether a DRA driver runs (`kubectl get resourceslices`)"}
	case class == 0:
		return []string{fmt.Sprintf("class %s selects none of %s: see whether its driver runs and publishes devices (`kubectl get resourceslices`), and the class's own selectors (`kubectl get deviceclass %s -o yaml`)",
			funnel.DeviceClass, counted(published, "published device", "published devices"), funnel.DeviceClass)}
	case selected == 0:
		return []string{fmt.Sprintf("widen the selectors of %s: they match none of %s of class %s", told.which(funnel), counted(class, "device", "devices"), funnel.DeviceClass)}
	default:
		return nil
	}
}

// helpFew tells a cluster that has too few devices from one that has them in
// use.
func (a account) helpFew(told *Waiting) []string {
	var help []string
	if told.Asked.chooses() {
		help = append(help, "of a prioritized list one alternative is enough")
	}
	scarce, worth := false, false // whether waiting would not help some request, and would help another
	for _, funnel := range told.Funnel {
		if lack := told.scarcity(funnel); lack != nil {
			scarce = true
			help = append(help, lack...)
			continue
		}
		worth = true
		if short := funnel.short(dra.StageFree); short > 0 {
			help = append(help, fmt.Sprintf("%s is short of %s: wait until others give some back, add nodes that have such devices, or ask for fewer", told.which(funnel), counted(short, "free device", "free devices")))
		}
	}
	if !scarce || worth && told.Asked.chooses() {
		help = append(help, told.release()...)
	}
	if len(help) == 0 {
		help = []string{"wait until others give devices back, add nodes that have such devices, or ask for fewer"}
	}
	return append(help, told.renew())
}

func (a account) helpIncomplete() []string {
	var help []string
	if a.facts.Supply != nil {
		for _, pool := range a.facts.Supply.Pools {
			if pool.Complete || pool.Slices == 0 || len(help) == mostHelp {
				continue
			}
			place := ""
			if pool.Node != "" {
				place = " on " + pool.Node
			}
			help = append(help, fmt.Sprintf("driver %s has published %s of generation %d of pool %s, fewer than it announced: see its log%s",
				pool.Driver, counted(pool.Slices, "slice", "slices"), pool.Generation, pool.Pool, place))
		}
	}
	if len(help) == 0 {
		help = []string{"see the logs of the drivers whose pools lack slices: `kubectl get resourceslices`"}
	}
	return append(help, "a pool is incomplete for a moment whenever its driver replaces its slices: ask again before you act")
}

func (a account) helpFragmented(told *Waiting) []string {
	var help []string
	hopeless := false
	for _, funnel := range told.Funnel {
		short := funnel.short(dra.StageBestNode)
		if short <= 0 {
			continue
		}
		if futile := told.futile(funnel); futile != "" {
			hopeless = true
			help = append(help, futile)
			continue
		}
		best := ""
		if len(told.Nodes) > 0 {
			best = ", " + told.Nodes[0].Name + ","
		}
		help = append(help, fmt.Sprintf("%s needs %s on one node: the best%s has %d free and lacks %d; %d are free on all nodes together",
			told.which(funnel), counted(max(funnel.Asked, 1), "device", "devices"), best,
			funnel.Left[dra.StageBestNode.String()], short, funnel.Left[dra.StageFree.String()]))
	}
	if !hopeless || told.Asked.chooses() {
		help = append(help, told.release()...)
	}
	return append(help, "ask for fewer devices a pod, and for more pods, if the work can be split", told.renew())
}

func (a account) helpConstraints(told *Waiting) []string {
	if told.Asked.tooMany() {
		return []string{fmt.Sprintf("ask for at most %d devices in one claim: a pod may have several", resourcev1.AllocationResultsMaxSize), told.renew()}
	}
	var help []string
	if told.Asked != nil {
		for _, constraint := range told.Asked.Constraints {
			help = append(help, "relax "+constraint.text()+", if the work can bear it")
		}
	}
	help = append(help, told.release()...)
	return append(help, told.renew())
}

// text says in words what a constraint demands.
func (c Constraint) text() string {
	of := "the devices of all requests"
	if len(c.Requests) > 0 {
		of = "the devices of " + join(c.Requests, "and")
	}
	if c.MatchAttribute != "" {
		return fmt.Sprintf("the constraint that %s have the same %s", of, c.MatchAttribute)
	}
	return fmt.Sprintf("the constraint that %s have each another %s", of, c.DistinctAttribute)
}

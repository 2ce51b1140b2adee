package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// deviceAdvice returns what would help one pending reference against a lack of
// devices.
type deviceAdvice struct {
	facts *clusterread.Facts
	ref   *PendingRef
}

// mostHelp is how many holders or pools advice names one by one.
const mostHelp = 5

// short returns by how many devices a stage leaves too few for the request.
func short(counts RequestCounts, stage dra.Stage) int64 {
	if left, ok := counts.Left[stage.String()]; ok {
		return counts.needed() - int64(left)
	}
	return 0
}

func (d deviceAdvice) noClass() []string {
	var help, create []string
	for _, class := range d.classNames() {
		if slices.Contains(d.facts.Classes, class) {
			continue
		}
		if close := near(class, d.facts.Classes); len(close) > 0 {
			help = append(help, fmt.Sprintf("similar to %s: %s", class, words.Join(close, "and")))
		}
		create = append(create, fmt.Sprintf("create DeviceClass %s, which the driver's installation usually creates", class))
	}
	if len(create) == 0 {
		create = []string{"create the device class, or request one that exists"}
	}
	help = append(help, create...)
	if len(d.facts.Classes) == 0 {
		help = append(help, "no device class exists: check that a DRA driver is installed")
	} else {
		help = append(help, "classes that exist: "+words.List(d.facts.Classes, 8))
	}
	return append(help, d.recreate())
}

// classNames returns the requested device classes, each once.
func (d deviceAdvice) classNames() []string {
	var names []string
	add := func(class string) {
		if class != "" && !slices.Contains(names, class) {
			names = append(names, class)
		}
	}
	for _, counts := range d.ref.Counts {
		add(counts.DeviceClass)
	}
	if d.ref.Asked != nil {
		for _, request := range d.ref.Asked.Flat() {
			add(request.DeviceClass)
		}
	}
	if d.ref.DeviceClass != dra.DeviceClassMultiple {
		add(d.ref.DeviceClass)
	}
	return names
}

// recreate returns how to request something else: a specification is immutable.
func (d deviceAdvice) recreate() string {
	switch {
	case d.ref.ExtendedResource != "":
		return "to request something else, recreate the pod"
	case d.ref.Template != "":
		return fmt.Sprintf("to request something else, change ResourceClaimTemplate %s and recreate the pod", d.ref.Template)
	default:
		return "to request something else, delete and recreate the claim"
	}
}

func (d deviceAdvice) noMatch() []string {
	var help []string
	for _, broken := range d.ref.Broken {
		if broken.Device == "" {
			help = append(help, fmt.Sprintf("correct the CEL expression of %s: it does not compile", broken.Where))
			continue
		}
		help = append(help, fmt.Sprintf("in the CEL expression of %s, check first that the attribute or capacity exists: `has(…)`", broken.Where))
	}
	for _, counts := range d.ref.Counts {
		help = append(help, d.unmatched(counts)...)
	}
	return append(help, d.recreate())
}

func (d deviceAdvice) unmatched(counts RequestCounts) []string {
	if len(d.ref.Broken) > 0 {
		return nil
	}
	published, class, selected := counts.Left[dra.StagePublished.String()], counts.Left[dra.StageClass.String()], counts.Left[dra.StageSelectors.String()]
	switch {
	case published == 0:
		return []string{"check that a DRA driver runs and publishes devices: `kubectl get resourceslices`"}
	case class == 0:
		return []string{fmt.Sprintf("check that the driver of class %s publishes devices: `kubectl get resourceslices`", counts.DeviceClass),
			fmt.Sprintf("check the selectors of the class: `kubectl get deviceclass %s -o yaml`", counts.DeviceClass)}
	case selected == 0:
		return []string{fmt.Sprintf("widen the selectors of %s: they match none of %s of class %s", d.ref.requestName(counts), words.Count(class, "device", "devices"), counts.DeviceClass)}
	default:
		return nil
	}
}

// tooFew distinguishes a cluster that has too few devices from one whose devices
// are allocated.
func (d deviceAdvice) tooFew() []string {
	var help []string
	if d.ref.Asked.HasAlternatives() {
		help = append(help, "one alternative of a prioritized list is enough")
	}
	var lack []string
	scarce, waitHelps := false, false // some request cannot be satisfied by waiting; another can
	for _, counts := range d.ref.Counts {
		if scarcity := d.scarcity(counts); scarcity != nil {
			scarce = true
			lack = append(lack, scarcity...)
			continue
		}
		waitHelps = true
		if lacking := short(counts, dra.StageFree); lacking > 0 {
			lack = append(lack, fmt.Sprintf("%s lacks %s: wait, add nodes with such devices, or request fewer", d.ref.requestName(counts), words.Count(lacking, "free device", "free devices")))
		}
	}
	release := !scarce || waitHelps && d.ref.Asked.HasAlternatives()
	if release {
		help = append(help, d.unused()...)
	}
	help = append(help, lack...)
	if release {
		help = append(help, d.busy()...)
	}
	if len(help) == 0 {
		help = []string{"wait until holders release devices, add nodes with such devices, or request fewer"}
	}
	return append(help, d.recreate())
}

func (d deviceAdvice) incomplete() []string {
	var help []string
	if d.facts.Supply != nil {
		for _, pool := range d.facts.Supply.Pools {
			if pool.Complete || pool.Slices == 0 || len(help) == mostHelp {
				continue
			}
			help = append(help, fmt.Sprintf("check the log of driver %s%s: pool %s has %s, fewer than announced",
				pool.Driver, suffix(" on ", pool.Node), pool.Pool, words.Count(pool.Slices, "slice", "slices")))
		}
	}
	if len(help) == 0 {
		help = []string{"check the logs of the drivers whose pools lack slices: `kubectl get resourceslices`"}
	}
	return append(help, "a pool is incomplete for a moment while its driver replaces slices: check again first")
}

func (d deviceAdvice) fragmented() []string {
	var help []string
	nodesTooSmall := false
	for _, counts := range d.ref.Counts {
		lacking := short(counts, dra.StageBestNode)
		if lacking <= 0 {
			continue
		}
		if futile := d.futile(counts); futile != nil {
			nodesTooSmall = true
			help = append(help, futile...)
			continue
		}
		best := ""
		if len(d.ref.Nodes) > 0 {
			best = ", " + d.ref.Nodes[0].Name + ","
		}
		help = append(help, fmt.Sprintf("%s needs %s on one node: the best%s has %d free and lacks %d",
			d.ref.requestName(counts), words.Count(counts.needed(), "device", "devices"), best,
			counts.Left[dra.StageBestNode.String()], lacking))
	}
	if !nodesTooSmall || d.ref.Asked.HasAlternatives() {
		help = append(help, d.unused()...)
		help = append(help, d.busy()...)
	}
	return append(help, "request fewer devices per pod, and more pods, if the work can be split", d.recreate())
}

func (d deviceAdvice) constraints() []string {
	if d.ref.Asked.TooMany() {
		return []string{fmt.Sprintf("request at most %d devices in one claim: a pod may have several claims", resourcev1.AllocationResultsMaxSize), d.recreate()}
	}
	var help []string
	if d.ref.Asked != nil {
		for _, constraint := range d.ref.Asked.Constraints {
			help = append(help, "relax "+constraintText(constraint))
		}
	}
	if len(d.ref.Holders) > 0 {
		help = append(help, "or wait: devices that are held now may satisfy the constraints")
	}
	return append(help, d.recreate())
}

func (d deviceAdvice) tainted() []string {
	var help []string
	removals := d.taints()
	for _, removal := range removals {
		switch {
		case removal.taint == nil:
			help = append(help, "find out which component set the taints, and why: it removes them when the cause is fixed")
		case removal.Rule != "":
			help = append(help, fmt.Sprintf("if DeviceTaintRule %s is no longer needed: `kubectl delete devicetaintrule %s`", removal.Rule, removal.Rule))
		case len(removal.Examples) > 0:
			help = append(help, fmt.Sprintf("find out why taint %s was set, for example on %s", removal.Taint, removal.Examples[0]))
		default:
			help = append(help, fmt.Sprintf("find out why taint %s was set", removal.Taint))
		}
	}
	if toleration := tolerations(removals); len(toleration) > 0 {
		help = append(help, fmt.Sprintf("if the workload permits: `tolerations: [%s]`", strings.Join(toleration, ", ")))
	}
	return append(help, d.recreate())
}

// taints returns the removals by taints that leave a request too few devices.
func (d deviceAdvice) taints() []Removal {
	return slices.DeleteFunc(slices.Clone(d.ref.Removed), func(removal Removal) bool {
		if removal.Stage != dra.StageUntainted.String() {
			return true
		}
		return slices.ContainsFunc(d.ref.Counts, func(counts RequestCounts) bool {
			return counts.Request == removal.Request && counts.Asked > 0 && short(counts, dra.StageUntainted) <= 0
		})
	})
}

// tolerations returns those that the taints need, as in a claim's specification.
func tolerations(removals []Removal) []string {
	var all []string
	for _, removal := range removals {
		if removal.taint == nil {
			continue
		}
		text := fmt.Sprintf("{key: %s, operator: Exists, effect: %s}", removal.taint.Key, removal.taint.Effect)
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	slices.Sort(all)
	return all
}

// scarcity returns why a request could not be allocated even if no device were
// allocated; nil if it could.
func (d deviceAdvice) scarcity(counts RequestCounts) []string {
	var lack []string
	if lacking := short(counts, dra.StageSelectors); lacking > 0 {
		lack = append(lack, fmt.Sprintf("too few devices match %s, held or not: add %s, or request fewer", d.ref.requestName(counts), words.Count(lacking, "matching device", "matching devices")))
		lack = append(lack, d.oneNode(counts)...)
	}
	matching, untainted := counts.Left[dra.StageSelectors.String()], counts.Left[dra.StageUntainted.String()]
	if tainted := matching - untainted; tainted > 0 && short(counts, dra.StageUntainted) > 0 {
		lack = append(lack, fmt.Sprintf("%d of %s for %s %s a taint that is not tolerated: find the cause", tainted,
			words.Count(matching, "device", "devices"), d.ref.requestName(counts), words.Plural(tainted, "has", "have")))
	}
	if len(lack) == 0 {
		lack = d.futile(counts)
	}
	return lack
}

// futile returns what to do if no node could satisfy the request even if none of its
// devices were allocated; nil otherwise.
func (d deviceAdvice) futile(counts RequestCounts) []string {
	if !d.ref.futile(counts) {
		return nil
	}
	text := fmt.Sprintf("waiting does not help: no node has %s for %s, held or not", words.Count(counts.Asked, "usable device", "usable devices"), d.ref.requestName(counts))
	most := d.ref.onOneNode[counts.Request]
	if most == 0 {
		return []string{text, "check which nodes can use the devices"}
	}
	return []string{text, fmt.Sprintf("request at most %d, or add a node with %d", most, counts.Asked)}
}

// oneNode warns if the matching devices are on several nodes: the devices of a claim
// must be usable by one node.
func (d deviceAdvice) oneNode(counts RequestCounts) []string {
	most, untainted := d.ref.onOneNode[counts.Request], counts.Left[dra.StageUntainted.String()]
	if d.ref.onOneNode == nil || most >= untainted {
		return nil
	}
	return []string{fmt.Sprintf("one node must be able to use all of them: currently none can use more than %d", most)}
}

// unused returns the claims that hold devices which match, and that nothing uses.
func (d deviceAdvice) unused() []string {
	help := d.idle()
	gone := d.named(func(holder Holder) string {
		if holder.PodsGone && holder.used.empty() {
			return holder.Namespace + "/" + holder.Claim
		}
		return ""
	})
	if len(gone) > 0 {
		help = append(help, fmt.Sprintf("the pods of %s no longer exist: %s", words.List(gone, mostHelp), orphanHelp))
	}
	return help
}

// busy returns the claims that hold devices which match, with their users.
func (d deviceAdvice) busy() []string {
	var help []string
	busy := d.named(func(holder Holder) string {
		if holder.used.empty() {
			return ""
		}
		return fmt.Sprintf("%s/%s (%s)", holder.Namespace, holder.Claim, holder.used.text())
	})
	if len(busy) > 0 {
		help = append(help, "matching devices become free when these end: "+words.List(busy, mostHelp))
	}
	if more := d.ref.HolderCount - len(d.ref.Holders); more > 0 {
		subject := fmt.Sprintf("%d more %s", more, words.Plural(more, "claim holds", "claims hold"))
		if len(d.ref.Holders) == 0 {
			subject = fmt.Sprintf("%d %s", more, words.Plural(more, "claim of another namespace holds", "claims of other namespaces hold"))
		}
		help = append(help, subject+" matching devices")
	}
	return help
}

// named returns the names that a function gives to holders, each once.
func (d deviceAdvice) named(name func(Holder) string) []string {
	var names []string
	for _, holder := range d.ref.Holders {
		if text := name(holder); text != "" && !slices.Contains(names, text) {
			names = append(names, text)
		}
	}
	return names
}

// idle returns claims that hold devices and are not used.
func (d deviceAdvice) idle() []string {
	help := d.named(func(holder Holder) string {
		if !holder.used.idle() {
			return ""
		}
		return fmt.Sprintf("no pod uses %s/%s, which holds %d: `kubectl delete resourceclaim -n %s %s`",
			holder.Namespace, holder.Claim, len(holder.Devices), holder.Namespace, holder.Claim)
	})
	return help[:min(len(help), mostHelp)]
}

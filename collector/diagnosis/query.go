package diagnosis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// podDiagnosis is why the claims of a pod cannot be allocated. It is immutable.
type podDiagnosis struct {
	version uint64 // of the inventory
	claims  []claimDiagnosis
}

// claimDiagnosis is about one claim of the pod.
type claimDiagnosis struct {
	finding
	fits   string   // a node on which it and the pod's other claims can be allocated
	tried  []string // nodes on which the allocator did not succeed
	counts []dra.RequestStages
	detail *dra.Detail
}

// diagnoses returns the diagnosis for one of the pods that share it.
func (d *podDiagnosis) diagnoses(q dra.Question, pod podClaims) []dra.Diagnosis {
	diagnoses := make([]dra.Diagnosis, 0, len(d.claims))
	for i, c := range d.claims {
		diagnoses = append(diagnoses, dra.Diagnosis{
			Pod: q.Pod, PodUID: q.PodUID, PodClaim: clean(q.Refs[i].PodClaim),
			Version: d.version,
			Reason:  c.reason, Message: pod.withNames(q, clean(c.message)),
			Requests: c.counts, Detail: c.detail,
		})
	}
	return diagnoses
}

// undetermined reports whether something is not known because it would have
// needed too much work.
func (d *podDiagnosis) undetermined() bool {
	return slices.ContainsFunc(d.claims, func(c claimDiagnosis) bool { return c.reason == dra.ReasonUndetermined })
}

// query is one diagnosis in the making: each claim is counted by itself, then
// the allocation of all claims against which the counts say nothing is
// attempted on candidate nodes.
type query struct {
	nodeCache *allocator.NodeCache
	inventory *inventory.Inventory
	meter     *workMeter
	pod       podClaims
	counts    [][]inventory.Count // of each claim's requests
	found     []claimDiagnosis
}

// diagnose finds out why the claims of a pod cannot be allocated. Without a
// meter it neither rests nor has a limit. If the context ends, the diagnosis
// has what was found before. With detail it has what `explain` shows, too.
func diagnose(ctx context.Context, meter *workMeter, inv *inventory.Inventory, nodeCache *allocator.NodeCache, pod podClaims, detail bool) *podDiagnosis {
	q := &query{
		nodeCache: nodeCache, inventory: inv, meter: meter, pod: pod,
		counts: make([][]inventory.Count, len(pod.claims)), found: make([]claimDiagnosis, len(pod.claims)),
	}
	made := &podDiagnosis{version: q.inventory.Version(), claims: q.found}
	open, err := q.count(ctx)
	if err == nil && len(open) > 0 {
		err = q.allocate(ctx, open)
	}
	if err != nil {
		q.cutShort(err)
	}
	if detail {
		for i := range q.found {
			q.found[i].detail = describe(q.inventory, pod, i, q.counts[i], q.found[i])
		}
	}
	return made
}

// cutShort marks what is not known yet as undetermined, or, if the context has
// ended, as not diagnosed.
func (q *query) cutShort(err error) {
	open := finding{dra.ReasonPendingDiagnosis, dra.Stages, "the diagnosis was cancelled"}
	var exceeded *overLimit
	switch {
	case errors.As(err, &exceeded):
		open.reason, open.message = dra.ReasonUndetermined, exceeded.Error()
	case errors.Is(err, inventory.ErrSlowEvaluation):
		where, _, _ := strings.Cut(err.Error(), ":")
		open.reason = dra.ReasonUndetermined
		open.message = fmt.Sprintf("the diagnosis needs more than %s for one evaluation of a selector of %s", inventory.EvaluationLimit, clean(where))
	}
	for i, c := range q.pod.claims {
		if f := &q.found[i]; c.spec != nil && !f.fails() && f.fits == "" {
			f.finding = open
		}
	}
}

// count counts the devices for each request, and returns the claims against
// which the counts say nothing.
func (q *query) count(ctx context.Context) (open []int, err error) {
	for i, c := range q.pod.claims {
		found := &q.found[i]
		switch {
		case c.noClass != "":
			found.finding = finding{reason: dra.ReasonNoDeviceClass, message: "no device class provides the extended resource " + c.noClass}
		case c.refused != "":
			found.finding = finding{reason: dra.ReasonUndetermined, message: "cannot be diagnosed: " + c.refused}
		}
		if c.spec == nil {
			continue
		}
		for _, r := range c.requests {
			count, err := q.countRequest(ctx, r)
			if err != nil {
				return open, fmt.Errorf("request %s: %w", r.Name, err)
			}
			q.counts[i] = append(q.counts[i], count)
			found.counts = append(found.counts, dra.RequestStages{Request: clean(r.Name), Class: clean(r.Class), Count: r.Count, Left: count.Left})
		}
		if found.finding = checkClaim(c.requests, q.counts[i]); !found.fails() {
			open = append(open, i)
		}
	}
	return open, nil
}

// countRequest counts for one request. Devices that are published while its
// selectors are evaluated are evaluated in another round; after a few rounds
// they are left for the next diagnosis.
func (q *query) countRequest(ctx context.Context, r Request) (inventory.Count, error) {
	for tries := 0; ; tries++ {
		count, err := q.evaluate(ctx, r.Request)
		if err != nil || count.Complete || tries == 3 {
			return count, err
		}
	}
}

// evaluate evaluates the selectors of a request, and counts.
func (q *query) evaluate(ctx context.Context, request inventory.Request) (inventory.Count, error) {
	if err := q.inventory.EvaluateRequest(ctx, q.meter.evaluated, request); err != nil {
		return inventory.Count{}, err
	}
	count := q.inventory.Count(request)
	return count, q.meter.pause(ctx)
}

// allocate attempts the allocation of the open claims together.
func (q *query) allocate(ctx context.Context, open []int) error {
	nodes := candidates(q.pod, q.counts, open)
	if len(nodes) == 0 {
		message := "no node has enough free devices for all requests together, although for each request some node has enough"
		if len(q.pod.allocated) > 0 {
			message = "the pod's other claims are allocated on a node without enough free devices for this one"
		}
		q.record(open, finding{dra.ReasonFragmented, dra.StageBestNode, message})
		return nil
	}
	all, err := q.try(ctx, nodes, open, true)
	switch {
	case err != nil:
		return err
	case all.fatal != nil:
		return q.explainFatal(ctx, nodes, open, all)
	case all.fits != "":
		q.recordFit(open, all.fits)
		return nil
	case len(open) == 1:
		return q.explainFailure(ctx, nodes, open, all)
	default:
		return q.allocateEach(ctx, nodes, open, all)
	}
}

// try attempts the allocation of some claims. If a selector is known to fail
// for devices, if a request has derived attributes, which may fail for some, or
// if all devices of a node are requested, the allocator may give up on one node
// although it would succeed on another. Then all nodes are tried, also those
// without free devices.
func (q *query) try(ctx context.Context, nodes []string, claims []int, constrained bool) (attemptResult, error) {
	a := attempt{nodes: nodes, claims: q.pod.forAllocator(claims, constrained), selectors: q.pod.selectors()}
	if len(a.selectors) == 0 {
		a.traits = q.traits(claims, constrained)
	}
	for _, claim := range claims {
		for i, r := range q.pod.claims[claim].requests {
			a.all = a.all || constrained && (r.Count == 0 || len(q.counts[claim][i].Failures) > 0 || len(r.Derived) > 0)
		}
	}
	if a.all {
		listed := sets.New(nodes...)
		var others inventory.NodeCounts
		for _, node := range q.inventory.Nodes() { // sorted
			if !listed.Has(node) {
				others = append(others, inventory.NodeCount{Node: node})
			}
		}
		a.nodes = append(slices.Clone(nodes), mostFirst(allowed(others, q.pod))...)
	}
	return q.attempt(ctx, a)
}

// traits returns what decides whether the claims can be allocated on a node;
// nil if that is not known.
func (q *query) traits(claims []int, constrained bool) *inventory.Traits {
	var requests []inventory.Request
	var attributes []resourcev1.FullyQualifiedName
	for _, claim := range claims {
		for _, r := range q.pod.claims[claim].requests {
			requests = append(requests, r.Request)
		}
		for _, constraint := range q.pod.claims[claim].spec.Devices.Constraints {
			for _, attribute := range []*resourcev1.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
				if attribute != nil && constrained {
					attributes = append(attributes, *attribute)
				}
			}
		}
	}
	return q.inventory.RequestTraits(requests, attributes)
}

const messageOther = "its devices could be allocated, but not those of another claim of the pod"

// allocateEach finds out which of several claims cannot be allocated even by
// itself. If there is none, they compete.
func (q *query) allocateEach(ctx context.Context, nodes []string, open []int, all attemptResult) error {
	failed := false
	for _, claim := range open {
		alone := []int{claim}
		result, err := q.try(ctx, nodes, alone, true)
		switch {
		case err != nil:
		case result.fatal != nil:
			failed, err = true, q.explainFatal(ctx, nodes, alone, result)
		case result.fits == "":
			failed, err = true, q.explainFailure(ctx, nodes, alone, result)
		}
		if err != nil {
			return err
		}
	}
	if !failed {
		return q.explainFailure(ctx, nodes, open, all)
	}
	for _, claim := range open {
		if !q.found[claim].fails() {
			q.found[claim].message = messageOther
		}
	}
	return nil
}

// record sets the finding of claims.
func (q *query) record(claims []int, f finding) {
	for _, claim := range claims {
		q.found[claim].finding = f
	}
}

// recordFit sets the node on which the open claims can be allocated.
func (q *query) recordFit(open []int, node string) {
	anyFails := slices.ContainsFunc(q.found, func(c claimDiagnosis) bool { return c.fails() })
	for _, claim := range open {
		q.found[claim].fits = node
		if anyFails {
			q.found[claim].message = messageOther
		}
	}
}

// explainFailure finds out why the claims can be allocated on none of the nodes:
// because of their constraints, if without them one would do.
func (q *query) explainFailure(ctx context.Context, nodes []string, claims []int, failed attemptResult) error {
	for _, claim := range claims {
		q.found[claim].tried = failed.tried
	}
	if failed.slow > 0 {
		q.record(claims, finding{dra.ReasonUndetermined, dra.Stages, fmt.Sprintf(
			"the diagnosis needs more than %s for a search for devices on one node: this applies to %d of the %d nodes that were tried",
			failed.limit, failed.slow, len(failed.tried))})
		return nil
	}
	if q.pod.constrained(claims) {
		free, err := q.try(ctx, nodes, claims, false)
		if err != nil {
			return err
		}
		if free.fits != "" {
			node := "node " + free.fits
			if len(failed.tried) == 1 && failed.tried[0] == free.fits {
				node = "it"
			}
			q.record(claims, finding{dra.ReasonConstraints, dra.Stages, fmt.Sprintf(
				"%s satisfy the constraints of %s; without the constraints %s could", failed.onNodes(), subject(claims), node)})
			return nil
		}
	}
	return q.explainShortage(ctx, claims, failed)
}

// explainFatal records the error that ends the scheduler's attempt on all nodes,
// for the claims that it names, else for all. It counts even if another node
// would do. Constraints are the reason only if without them some node would do.
func (q *query) explainFatal(ctx context.Context, nodes []string, open []int, failed attemptResult) error {
	f := fatalFinding(failed)
	if f.reason == dra.ReasonConstraints && q.pod.constrained(open) {
		free, err := q.try(ctx, nodes, open, false)
		if err != nil {
			return err
		}
		switch {
		case free.fatal != nil:
			q.record(open, fatalFinding(free))
			return nil
		case free.fits == "":
			return q.explainShortage(ctx, open, free)
		}
	}
	named := slices.DeleteFunc(slices.Clone(open), func(claim int) bool {
		return !strings.Contains(failed.fatal.Error(), fmt.Sprintf(claimName, claim))
	})
	if len(named) == 0 {
		named = open
	}
	q.record(named, f)
	return nil
}

// fatalFinding returns the reason for which the allocator gives up, by the
// phrases of k8s.io/dynamic-resource-allocation v0.37. The first that is found
// decides.
func fatalFinding(r attemptResult) finding {
	reason := dra.ReasonUnknown
	for _, known := range []struct {
		phrase string
		reason dra.PendingReason
	}{
		{"derived attribute", dra.ReasonConstraints}, // only constraints refer to it
		{"CEL ", dra.ReasonNoMatchingDevice},
		{"is currently being updated", dra.ReasonPoolIncomplete},
		{"is currently invalid", dra.ReasonPoolIncomplete},
		{"exceeds the claim limit", dra.ReasonConstraints},
		{"allocation max size exceeded", dra.ReasonConstraints},
		{"a claim constraint would not be satisfied", dra.ReasonConstraints},
		{"could not retrieve device class", dra.ReasonNoDeviceClass},
		{"capacity", dra.ReasonNoMatchingDevice},
	} {
		if strings.Contains(r.fatal.Error(), known.phrase) {
			reason = known.reason
			break
		}
	}
	message := fmt.Sprintf("the scheduler stops at node %s: %s", r.failed, oneLine(r.fatal.Error()))
	if r.fits != "" {
		message += fmt.Sprintf(" (node %s would have matching devices)", r.fits)
	}
	return finding{reason, dra.Stages, message}
}

// explainShortage finds out why no node has enough for the claims, whatever
// their constraints, though each request by itself has enough: because there is
// not enough anywhere, since requests compete or devices consume the same
// counters, or because it is spread over several nodes.
func (q *query) explainShortage(ctx context.Context, claims []int, failed attemptResult) error {
	var free inventory.NodeCounts
	for _, claim := range claims {
		for i, r := range q.pod.claims[claim].requests {
			if r.Count == 0 {
				f, err := q.explainAllDevices(ctx, r, q.counts[claim][i])
				if err == nil {
					q.record(claims, f)
				}
				return err
			}
			free = free.Merge(q.counts[claim][i].Free, sum)
		}
	}
	enough, slow, err := q.fitTogether(ctx, claims, free)
	if err != nil {
		return err
	}
	f := finding{dra.ReasonInsufficient, dra.Stages, fmt.Sprintf(
		"the requests of %s compete for the same devices: there are enough for each request, but not for all of them at once", subject(claims))}
	switch {
	case slow:
		f.reason = dra.ReasonUndetermined
		f.message = fmt.Sprintf("the diagnosis needs more than %s for a search for devices on all nodes combined", q.nodeCache.Limit())
	case enough:
		f.reason, f.message = dra.ReasonFragmented, fmt.Sprintf("%s serve all requests of %s at once", failed.onNodes(), subject(claims))
	}
	q.record(claims, f)
	return nil
}

// fitTogether reports whether the claims could be allocated if all devices of
// the nodes with free devices were on one node. If there are too many such nodes
// to be merged, there is taken to be enough.
func (q *query) fitTogether(ctx context.Context, claims []int, free inventory.NodeCounts) (enough, slow bool, err error) {
	nodes := mostFirst(free)
	few := len(nodes) <= nodesMerged
	merged, err := q.nodeCache.Merged(ctx, q.meter.pause, nodes[:min(nodesMerged, len(nodes))])
	if err != nil {
		return false, false, err
	}
	q.meter.searched()
	allocated, slow, failed := q.nodeCache.Search(ctx, merged, q.pod.forAllocator(claims, false))
	return allocated || failed != nil || !few, slow && few, q.meter.pause(ctx)
}

// explainAllDevices finds out why a request cannot have all devices of a node:
// on each node one of them is allocated, or tainted. The node that comes
// furthest decides. What is free to a request that tolerates all taints, or to
// one with admin access, is what there would be without taints, or without
// allocations.
func (q *query) explainAllDevices(ctx context.Context, r Request, count inventory.Count) (finding, error) {
	unheld := r.Request
	unheld.AdminAccess = true
	all := unheld
	all.Tolerations = []resourcev1.DeviceToleration{{Operator: resourcev1.DeviceTolerationOpExists}}
	matching, err := q.evaluate(ctx, all)
	if err != nil {
		return finding{}, err
	}
	untainted, err := q.evaluate(ctx, unheld)
	if err != nil {
		return finding{}, err
	}
	worst := finding{dra.ReasonFragmented, dra.Stages, asking(r) + ", and no node can provide all of them together with the other requests"}
	for _, free := range matching.Free {
		switch node, n := free.Node, free.Devices; {
		case untainted.Free.Devices(node) == n && count.Free.Devices(node) < n:
			return finding{dra.ReasonInsufficient, dra.StageFree, asking(r) + ", and on every node one of them is allocated"}, nil
		case untainted.Free.Devices(node) < n:
			worst = finding{dra.ReasonTainted, dra.StageUntainted, asking(r) + ", and on every node one of them has a taint that it does not tolerate"}
		}
	}
	return worst, nil
}

func sum(a, b int) int { return a + b }

// subject is what a finding is about.
func subject(claims []int) string {
	if len(claims) == 1 {
		return "the claim"
	}
	return "the claims of the pod together"
}

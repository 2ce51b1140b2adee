package clusterread

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Running is what a running cluster role has in memory. Nothing is read from the API
// server.
type Running struct {
	Latest    func() *cluster.Published // nil before the first snapshot
	Objects   func(namespace string, claims []dra.ClaimRef) []dra.Change
	Statuses  func() []source.Status
	Inventory *inventory.Inventory
	Diagnoser *diagnosis.Diagnoser
	Clock     clock.Clock
}

// ErrNotReady means that there is no snapshot yet.
var ErrNotReady = errors.New("the cluster has not been read yet")

// runningWork is the longest time for the diagnoses of one subject.
const runningWork = time.Second

// Facts takes what concerns the subject from the newest snapshot, and diagnoses it in
// detail. It fails with ErrNotReady alone. If namespaceOnly is set, the facts have no
// holder of another namespace and no error of the API server.
func (r Running) Facts(ctx context.Context, subject Subject, namespaceOnly bool) (*Facts, error) {
	latest := r.Latest()
	if latest == nil {
		return nil, ErrNotReady
	}
	facts := &Facts{Now: r.Clock().Wall, Supply: r.Inventory.Supply(), Gaps: NewGaps(r.Statuses(), nil, subject.Namespace)}
	if namespaceOnly {
		for i := range facts.Gaps {
			facts.Gaps[i].Message = ""
		}
	}
	for _, phase := range latest.Model.Phases {
		if phase.Pod.Namespace == subject.Namespace {
			facts.Phases = append(facts.Phases, phase)
		}
	}
	for _, ref := range latest.Pending {
		if ref.Pod.Namespace == subject.Namespace {
			facts.Pending = append(facts.Pending, *ref)
		}
	}
	r.addDetails(ctx, latest, facts, subject, namespaceOnly)
	facts.Objects = NewObjects(r.Objects(subject.Namespace, holdersIn(facts.Pending))...)
	r.addSpecs(facts, subject)
	return facts, nil
}

// addDetails adds the details of diagnoses to the references. The reducer's reasons
// stay, so that the explanation agrees with the metrics: details of another reason, of
// a cluster that has changed since, are dropped.
func (r Running) addDetails(ctx context.Context, latest *cluster.Published, facts *Facts, subject Subject, namespaceOnly bool) {
	diagnosing, cancel := context.WithTimeout(ctx, runningWork)
	defer cancel()
	var detailed []dra.Diagnosis
	// Without objects, so not the other pods of a gang: their reasons are known.
	questions := Diagnosable(concerning(latest.Snapshot, subject, NewObjects()), facts.Gaps)
	for _, question := range questions[:min(len(questions), maxDiagnosed)] {
		detailed = append(detailed, r.Diagnoser.Explain(diagnosing, question)...)
	}
	detailed = append(detailed, sharedDiagnoses(questions, detailed)...)
	for i := range facts.Pending {
		ref := &facts.Pending[i]
		for j := range detailed {
			found := &detailed[j]
			if ref.Diagnosis != nil && found.PodUID == ref.PodUID && found.PodClaim == ref.PodClaim && found.Reason == ref.Diagnosis.Reason {
				ref.Diagnosis = found
			}
		}
		if ref.Diagnosis != nil && ref.Diagnosis.Detail != nil && namespaceOnly {
			ref.Diagnosis = withoutOthers(ref.Diagnosis, subject.Namespace)
		}
	}
}

// withoutOthers leaves out the holders of other namespaces; they are only counted.
func withoutOthers(found *dra.Diagnosis, namespace string) *dra.Diagnosis {
	diagnosis, detail := *found, *found.Detail
	detail.HoldersInAll = max(detail.HoldersInAll, len(detail.Holders))
	detail.Holders = slices.DeleteFunc(slices.Clone(detail.Holders), func(holder dra.Holder) bool { return holder.Claim.Namespace != namespace })
	diagnosis.Detail = &detail
	return &diagnosis
}

// holdersIn returns the claims that hold the devices which the references need.
func holdersIn(pending []cluster.PendingRef) []dra.ClaimRef {
	var holders []dra.ClaimRef
	for _, ref := range pending {
		if ref.Diagnosis == nil || ref.Diagnosis.Detail == nil {
			continue
		}
		for _, holder := range ref.Diagnosis.Detail.Holders {
			if !slices.Contains(holders, holder.Claim) {
				holders = append(holders, holder.Claim)
			}
		}
	}
	return holders
}

// addSpecs adds what the subject's claims and the namespace's templates request, and
// the names of the device classes.
func (r Running) addSpecs(facts *Facts, subject Subject) {
	facts.Claims, facts.Templates = make(map[dra.ClaimRef]Spec), make(map[Template]Spec)
	addClaim := func(name string) {
		if spec, _ := r.Inventory.Spec(subject.Namespace, name, ""); name != "" && spec != nil {
			facts.Claims[dra.ClaimRef{Namespace: subject.Namespace, Name: name}] = NewSpec(spec)
		}
	}
	if subject.Kind == KindClaim {
		addClaim(subject.Name)
	} else if pod, ok := facts.Objects.Pods[dra.PodRef{Namespace: subject.Namespace, Name: subject.Name}]; ok {
		for _, reference := range pod.Claims {
			addClaim(facts.Objects.ClaimName(pod, reference))
		}
	}
	for _, name := range r.Inventory.Templates(subject.Namespace) {
		if spec, _ := r.Inventory.Spec(subject.Namespace, "", name); spec != nil {
			facts.Templates[Template{subject.Namespace, name}] = NewSpec(spec)
		} else {
			facts.Templates[Template{subject.Namespace, name}] = Spec{}
		}
	}
	classes, _ := r.Inventory.Classes().List() // its error is always nil
	for _, class := range classes {
		facts.Classes = append(facts.Classes, class.Name)
	}
}

package explain

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Live explains objects from what a running cluster role has in memory. It reads
// nothing from the API server. The parts must be set before Report is called.
//
// An explanation may cost much work. So there is one at a time, for at most liveWork,
// and after it a rest, so that explanations take no larger share of a core than Budget;
// and an answer is given again while it is younger than liveFresh, or than liveKept
// if it is not its turn. It is safe for concurrent use.
type Live struct {
	Latest    func() *cluster.Published // nil before the first snapshot
	Objects   func(namespace string, claims []dra.ClaimRef) []dra.Change
	Statuses  func() []source.Status
	Inventory *inventory.Inventory
	Diagnoser *diagnosis.Diagnoser
	Clock     clock.Clock
	Budget    float64 // share of a core, above 0 and up to 1

	mu      sync.Mutex
	turn    chan struct{}
	rested  clock.Instant // when the next explanation may begin
	answers map[liveKey]liveAnswer
}

// Limits of explanations. Who waits or works holds one of the few places for pages, so
// that both are short; a page asks again by itself.
const (
	liveWait    = 300 * time.Millisecond // for others' explanations and the rest after them
	liveWork    = time.Second
	liveFresh   = 5 * time.Second
	liveKept    = time.Minute // while no other can be made
	liveAnswers = 64
)

// ErrBusy means that other explanations took too long.
var ErrBusy = errors.New("other explanations are being made; try again in a few seconds")

// ErrNotReady means that there is no snapshot yet.
var ErrNotReady = errors.New("the cluster has not been read yet")

type liveKey struct {
	Subject
	namespaceOnly bool
}

type liveAnswer struct {
	at     clock.Instant
	report *Report
	err    error
}

// Report explains the subject, with the errors of Explain, ErrBusy, ErrNotReady or the
// context's. If namespaceOnly is set, it names no object of another namespace and no error of
// the API server: for a reader who may see one namespace. The report is shared and must
// not be changed.
func (l *Live) Report(ctx context.Context, subject Subject, namespaceOnly bool) (*Report, error) {
	key := liveKey{subject, namespaceOnly}
	if known, ok := l.known(key, liveFresh); ok {
		return known.report, known.err
	}
	release, err := l.begin(ctx)
	if err != nil {
		if known, ok := l.known(key, liveKept); ok && errors.Is(err, ErrBusy) {
			return known.report, known.err
		}
		return nil, err
	}
	defer release()
	if known, ok := l.known(key, liveFresh); ok { // another request has made it
		return known.report, known.err
	}
	began := l.Clock()
	facts, err := l.facts(ctx, subject, namespaceOnly)
	if err != nil {
		return nil, err
	}
	report, err := Explain(*facts, subject)
	l.keep(key, liveAnswer{l.Clock(), report, err}, l.Clock().Since(began))
	if err != nil {
		return nil, err
	}
	return report, nil
}

// known returns an answer that is younger than a duration.
func (l *Live) known(key liveKey, age time.Duration) (liveAnswer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, ok := l.answers[key]
	return answer, ok && l.Clock().Since(answer.at) < age
}

// begin waits until it is this explanation's turn.
func (l *Live) begin(ctx context.Context) (release func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, liveWait, ErrBusy)
	defer cancel()
	l.mu.Lock()
	if l.turn == nil {
		l.turn = make(chan struct{}, 1)
	}
	turn := l.turn
	l.mu.Unlock()
	select {
	case turn <- struct{}{}:
		release = func() { <-turn }
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	rest := l.rested.Since(l.Clock())
	l.mu.Unlock()
	if rest <= 0 {
		return release, nil
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return release, nil
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	}
}

// keep keeps an answer, and orders the rest after the work.
func (l *Live) keep(key liveKey, answer liveAnswer, worked time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rested = answer.at.Add(time.Duration(float64(worked) * (1/min(max(l.Budget, 0.01), 1) - 1)))
	if len(l.answers) >= liveAnswers || l.answers == nil {
		l.answers = make(map[liveKey]liveAnswer)
	}
	l.answers[key] = answer
}

// facts takes what concerns the subject from the newest snapshot, and diagnoses it in
// detail.
func (l *Live) facts(ctx context.Context, subject Subject, namespaceOnly bool) (*Facts, error) {
	latest := l.Latest()
	if latest == nil {
		return nil, ErrNotReady
	}
	facts := &Facts{Now: l.Clock().Wall, Supply: l.Inventory.Supply(), Gaps: GapsOf(l.Statuses(), nil, subject.Namespace)}
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
	l.addDetails(ctx, latest, facts, subject, namespaceOnly)
	facts.Objects = newObjects(l.Objects(subject.Namespace, holdersIn(facts.Pending)))
	l.addSpecs(facts, subject)
	return facts, nil
}

// addDetails adds the details of diagnoses to the references. The reducer's reasons
// stay, so that the explanation agrees with the metrics: details of another reason, of
// a cluster that has changed since, are dropped.
func (l *Live) addDetails(ctx context.Context, latest *cluster.Published, facts *Facts, subject Subject, namespaceOnly bool) {
	diagnosing, cancel := context.WithTimeout(ctx, liveWork)
	defer cancel()
	var detailed []dra.Diagnosis
	// Without objects, so not the other pods of a gang: their reasons are known.
	questions := Diagnosable(concerning(latest.Snapshot, subject, NewObjects()), facts.Gaps)
	for _, question := range questions[:min(len(questions), maxDiagnosed)] {
		detailed = append(detailed, l.Diagnoser.Explain(diagnosing, question)...)
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
func (l *Live) addSpecs(facts *Facts, subject Subject) {
	facts.Claims, facts.Templates = make(map[dra.ClaimRef]Spec), make(map[Template]Spec)
	addClaim := func(name string) {
		if spec, _ := l.Inventory.Spec(subject.Namespace, name, ""); name != "" && spec != nil {
			facts.Claims[dra.ClaimRef{Namespace: subject.Namespace, Name: name}] = SpecOf(spec)
		}
	}
	if subject.Kind == KindClaim {
		addClaim(subject.Name)
	} else if pod, ok := facts.Objects.pods[dra.PodRef{Namespace: subject.Namespace, Name: subject.Name}]; ok {
		for _, reference := range pod.Claims {
			addClaim(facts.Objects.claimName(pod, reference))
		}
	}
	for _, name := range l.Inventory.Templates(subject.Namespace) {
		if spec, _ := l.Inventory.Spec(subject.Namespace, "", name); spec != nil {
			facts.Templates[Template{subject.Namespace, name}] = SpecOf(spec)
		} else {
			facts.Templates[Template{subject.Namespace, name}] = Spec{}
		}
	}
	classes, _ := l.Inventory.Classes().List() // its error is always nil
	for _, class := range classes {
		facts.Classes = append(facts.Classes, class.Name)
	}
}

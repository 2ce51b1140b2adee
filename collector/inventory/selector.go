package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"regexp"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// How many blocks are searched under the lock at once, and how many devices are
// evaluated between two searches.
const (
	blocksPerBatch      = 512
	evaluationsPerBatch = 128
)

// memoLimit bounds the outcomes that a selector remembers beyond its results. A
// selector that reads a property which differs for each device would remember
// every device in vain.
const memoLimit = 4096

// The bounds of the number of selectors that are kept although no class has
// them. Between the bounds, selectorMemory limits them.
const (
	fewestSelectors = 192
	mostSelectors   = 4096
	selectorMemory  = 32 << 20 // as of selector.bytes
)

// EvaluationLimit is the time that one evaluation of a selector may take. It is
// for machines that are slow or busy: the cost limit of Kubernetes applies as
// well, and ends an evaluation after some 180 ms on a machine of 2025.
const EvaluationLimit = 30 * time.Second

// ErrSlowEvaluation is returned if one evaluation of a selector reaches
// EvaluationLimit.
var ErrSlowEvaluation = fmt.Errorf("one evaluation of a selector takes more than %v", EvaluationLimit)

// Pause is called between two pieces of work: before an expression is compiled,
// and after each evaluation. It may rest. Its error ends the work; what has
// been evaluated by then is kept. A nil Pause checks only the context.
type Pause func(context.Context) error

func (p Pause) call(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	}
	if p == nil {
		return nil
	}
	return p(ctx)
}

// selector is a CEL expression with its results for devices.
type selector struct {
	expression string
	broken     string // why it cannot be evaluated; empty: it can
	compiled   dracel.CompilationResult
	reads      projection
	names      []uint32 // of the properties that it reads, acquired from the textTable
	classes    int      // that have it
	used       uint64   // when it was last used, by selectorStore.uses

	shapes  *shapeIndex      // nil: the selector is not kept
	results []selectorResult // by shape
	memo    map[memoKey]outcome
}

// selectorResult has a bit for each device of the blocks of one shape. A device for
// which the selector failed does not match. A selector is evaluated only for the
// devices that the selectors before it select. A result may therefore lack devices,
// and may have devices that a block does not need.
type selectorResult struct {
	stamp                    uint64 // of the shape
	evaluated, match, failed uint64
}

// add adds the outcome for one device.
func (r *selectorResult) add(bit int, found outcome) {
	r.evaluated |= 1 << bit
	switch found {
	case outcomeMatch:
		r.match |= 1 << bit
	case outcomeFailed:
		r.failed |= 1 << bit
	}
}

type outcome uint8

const (
	outcomeNo outcome = iota
	outcomeMatch
	outcomeFailed
)

// memoKey is a hash of what a selector reads of a device: 128 bits of two random
// functions, so that two devices with the same key are the same to the selector.
type memoKey [2]uint64

const notEvaluated = "computes a quantity that may take too long: only quantities in quotes, with an exponent of at most two digits, are evaluated"

// hasPlainQuantities reports whether the argument of each call of CEL's functions
// quantity and isQuantity is a literal of moderate size. Their digits are written
// out: quantity("1e-999999999") takes hours and all memory, and cannot be
// interrupted.
func hasPlainQuantities(expression string) bool {
	if !strings.Contains(strings.ToLower(expression), "quantity") {
		return true
	}
	if strings.Contains(expression, "//") {
		return false // a comment may be within a call
	}
	calls := regexp.MustCompile(`(?i)quantity\s*\(`).FindAllStringIndex(expression, -1)
	plain := regexp.MustCompile(`^\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\)`)
	exponent := regexp.MustCompile(`[eE][+-]?[0-9]{3}`)
	for _, call := range calls {
		text := plain.FindString(expression[call[1]:])
		if text == "" || len(text) > 64 || exponent.MatchString(text) {
			return false
		}
	}
	return true
}

// newSelector compiles an expression, which takes about a millisecond.
func newSelector(expression string) *selector {
	made := &selector{expression: expression, memo: map[memoKey]outcome{}}
	if expression == "" {
		made.broken = "the selector is of a kind that is not known: it has no CEL expression"
		return made
	}
	if !hasPlainQuantities(expression) {
		made.broken = "the selector " + notEvaluated
		return made
	}
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	made.compiled = compiler.CompileCELExpression(expression, dracel.Options{DisableCostEstimation: true})
	if made.compiled.Error != nil {
		made.broken = made.compiled.Error.Error()
		return made
	}
	made.reads = newProjection(made.compiled.Environment, expression)
	return made
}

// result returns the result for a block. Nothing is evaluated if there is none
// yet, and everything has failed if the selector is broken.
func (s *selector) result(b *block) selectorResult {
	if s.broken != "" {
		return selectorResult{evaluated: b.all, failed: b.all}
	}
	if s.shapes == nil {
		return selectorResult{}
	}
	shape, ok := s.shapes.blockShape(b)
	if !ok {
		return selectorResult{}
	}
	return s.shapeResult(shape)
}

// shapeResult returns the result for the blocks of a shape.
func (s *selector) shapeResult(shape int) selectorResult {
	stamp := s.shapes.shapes[shape].stamp
	if shape >= len(s.results) || s.results[shape].stamp != stamp {
		return selectorResult{stamp: stamp}
	}
	return s.results[shape]
}

func (s *selector) setResult(shape int, r selectorResult) {
	if shape >= len(s.results) {
		grown := make([]selectorResult, max(shape+1, len(s.results)*5/4))
		copy(grown, s.results)
		s.results = grown
	}
	s.results[shape] = r
}

// bytes returns roughly the memory of the selector. Most of it is its program
// and its results.
func (s *selector) bytes() int {
	const program, node, each = 8 << 10, 64, 24
	return program + node*len(s.expression) + each*len(s.results)
}

// evaluate evaluates the selector for one device. The error is the runtime's,
// with the hint that the scheduler adds.
func (s *selector) evaluate(ctx context.Context, input dracel.Device) (bool, error) {
	match, _, err := s.compiled.DeviceMatches(ctx, input)
	return match, dracel.EnhanceRuntimeError(err)
}

// filter divides the devices of the mask: match are those that all selectors
// match; failed are those for which a selector failed after all earlier ones
// matched; for those in open, a selector has yet to be evaluated.
func filter(b *block, mask uint64, selectors []*selector) (match, failed, open uint64) {
	for _, s := range selectors {
		if mask == 0 {
			break
		}
		r := s.result(b)
		failed |= mask & r.failed
		open |= mask &^ r.evaluated
		mask &= r.match
	}
	return mask, failed, open
}

// evaluation is a device for which a selector is to be evaluated.
type evaluation struct {
	selector *selector
	key      memoKey
	input    dracel.Device
}

// outcome evaluates. The error is that of the context, or ErrSlowEvaluation.
func (e *evaluation) outcome(ctx context.Context) (outcome, error) {
	if ctx.Err() != nil {
		return outcomeFailed, fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	}
	limited, cancel := context.WithTimeoutCause(ctx, EvaluationLimit, ErrSlowEvaluation)
	defer cancel()
	match, err := e.selector.evaluate(limited, e.input)
	switch {
	case ctx.Err() != nil:
		return outcomeFailed, fmt.Errorf("evaluate selectors: %w", context.Cause(ctx))
	case errors.Is(err, ErrSlowEvaluation):
		return outcomeFailed, ErrSlowEvaluation
	case err != nil:
		return outcomeFailed, nil
	case match:
		return outcomeMatch, nil
	}
	return outcomeNo, nil
}

// batch has the next evaluations of a chain of selectors.
type batch struct {
	evaluations []evaluation
	seen        map[selectorKey]struct{}
	upTo        uint64 // blocks up to this stamp need no evaluation any more
	done        bool   // there is nothing to evaluate
	sweeps      int    // of the textTable when the keys were made
}

type selectorKey struct {
	selector *selector
	key      memoKey
}

// run evaluates until the pause ends it. The outcomes are those of the first
// evaluations.
func (t *batch) run(ctx context.Context, pause Pause) ([]outcome, error) {
	outcomes := make([]outcome, 0, len(t.evaluations))
	for i := range t.evaluations {
		found, err := t.evaluations[i].outcome(ctx)
		if err != nil {
			return outcomes, err
		}
		outcomes = append(outcomes, found)
		if err := pause.call(ctx); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// selectorStore keeps compiled selectors: those of classes, and the most
// recently used others.
type selectorStore struct {
	byExpression map[string]*selector
	devices      *deviceStore
	texts        *textTable
	uses         uint64 // of selectors
	evaluated    uint64 // evaluations whose outcome was kept

	shapes  map[string]*shapeIndex // by projection.key
	indexes uint64                 // of shapes, so far
	seeds   [2]maphash.Seed        // of memo keys
	scratch []byte                 // for the key of one device
	keys    []byte                 // of the devices of one block
}

func newSelectorStore(devices *deviceStore) *selectorStore {
	return &selectorStore{
		byExpression: map[string]*selector{}, devices: devices, texts: devices.texts, shapes: map[string]*shapeIndex{},
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

// get returns nil for an expression that is not known.
func (ss *selectorStore) get(expression string) *selector { return ss.byExpression[expression] }

// known returns the selectors, and false if one of them would have to be
// compiled.
func (ss *selectorStore) known(published []resourcev1.DeviceSelector) ([]*selector, bool) {
	var all []*selector
	for i := range published {
		found := ss.byExpression[celExpression(&published[i])]
		if found == nil {
			return nil, false
		}
		ss.use(found)
		all = append(all, found)
	}
	return all, true
}

func (ss *selectorStore) use(s *selector) {
	ss.uses++
	s.used = ss.uses
}

// add adds compiled selectors, and returns those that are kept: the earlier one
// if an expression was added before.
func (ss *selectorStore) add(compiled []*selector) []*selector {
	kept := make([]*selector, len(compiled))
	for i, s := range compiled {
		kept[i] = ss.byExpression[s.expression]
		if kept[i] == nil {
			kept[i] = s
			ss.byExpression[s.expression] = s
			s.names = s.names[:0]
			for _, name := range s.reads.names {
				s.names = append(s.names, ss.texts.acquire(name))
			}
			s.shapes = ss.shapesFor(s.reads, s.names)
		}
		ss.use(kept[i])
	}
	ss.evict()
	return kept
}

// retain adds the compiled selectors of a class. They are kept until release.
func (ss *selectorStore) retain(compiled []*selector) []*selector {
	kept := ss.add(compiled)
	for _, s := range kept {
		s.classes++
	}
	return kept
}

func (ss *selectorStore) release(selectors []*selector) {
	for _, s := range selectors {
		s.classes--
	}
	ss.evict()
}

// evict removes the least recently used selectors that no class has, if there
// are too many.
func (ss *selectorStore) evict() {
	count, memory := 0, 0
	for _, s := range ss.byExpression {
		if s.classes == 0 {
			count++
			memory += s.bytes()
		}
	}
	if count <= fewestSelectors || count <= mostSelectors && memory <= selectorMemory {
		return
	}
	unused := make([]*selector, 0, count)
	for _, s := range ss.byExpression {
		if s.classes == 0 {
			unused = append(unused, s)
		}
	}
	slices.SortFunc(unused, func(a, b *selector) int { return cmp.Compare(a.used, b.used) })
	for _, s := range unused {
		if count <= fewestSelectors || count <= mostSelectors && memory <= selectorMemory {
			return
		}
		count--
		memory -= s.bytes()
		ss.remove(s)
	}
}

func (ss *selectorStore) remove(s *selector) {
	delete(ss.byExpression, s.expression)
	for _, name := range s.names {
		ss.texts.release(name)
	}
	ss.releaseShapes(s.shapes)
	s.names, s.results, s.shapes = nil, nil, nil
	clear(s.memo)
}

// clearMemos must be called after a sweep of the textTable, because the keys
// contain its numbers.
func (ss *selectorStore) clearMemos() {
	for _, s := range ss.byExpression {
		clear(s.memo)
	}
	for _, x := range ss.shapes {
		clear(x.byKey)
	}
}

// nextBatch sets the results of blocks from remembered outcomes, and returns the
// evaluations that are needed for more results. It begins at the stamp that the
// previous batch has reached.
func (ss *selectorStore) nextBatch(chain []*selector, index *blockIndex, upTo uint64) *batch {
	next := &batch{seen: map[selectorKey]struct{}{}, upTo: upTo, sweeps: ss.texts.sweeps}
	if slices.ContainsFunc(chain, func(s *selector) bool { return ss.byExpression[s.expression] != s }) {
		next.done = true // one was evicted meanwhile: who needs it begins again
		return next
	}
	for i, b := range index.after(upTo) {
		if i >= blocksPerBatch || len(next.evaluations) >= evaluationsPerBatch {
			return next
		}
		if b.slice != nil {
			ss.setResults(chain, b, next)
		}
		if len(next.evaluations) == 0 {
			next.upTo = b.stamp
		}
	}
	next.done = len(next.evaluations) == 0
	return next
}

// setResults sets the results for a block as far as the outcomes are remembered,
// and adds the others to the batch.
func (ss *selectorStore) setResults(chain []*selector, b *block, next *batch) {
	mask := b.all
	for _, s := range chain {
		if mask == 0 || s.broken != "" {
			return
		}
		shape := ss.findShape(s.shapes, b)
		r := s.shapeResult(shape)
		if mask&^r.evaluated == 0 {
			mask &= r.match
			continue
		}
		for bit := range eachBit(mask &^ r.evaluated) {
			key := ss.deviceKey(s.shapes, b, bit)
			if known, ok := s.memo[key]; ok {
				r.add(bit, known)
				continue
			}
			if _, ok := next.seen[selectorKey{s, key}]; !ok {
				next.seen[selectorKey{s, key}] = struct{}{}
				next.evaluations = append(next.evaluations, evaluation{s, key, ss.input(s, b, bit)})
			}
		}
		s.setResult(shape, r)
		if mask&^r.evaluated != 0 {
			return // for which devices the next selector is to be evaluated is not known yet
		}
		mask &= r.match
	}
}

// record remembers the outcomes of the first evaluations of a batch.
func (ss *selectorStore) record(done *batch, outcomes []outcome) {
	if done.sweeps != ss.texts.sweeps {
		return // the keys may be something else
	}
	ss.evaluated += uint64(len(outcomes))
	evaluations := done.evaluations[:len(outcomes)]
	for i := range evaluations {
		if s := evaluations[i].selector; len(s.memo)+len(evaluations) > memoLimit {
			clear(s.memo)
		}
	}
	for i := range evaluations {
		evaluations[i].selector.memo[evaluations[i].key] = outcomes[i]
	}
}

// input returns the properties of a device that the selector reads. Converting
// the others would cost most of the time and make no difference.
func (ss *selectorStore) input(s *selector, b *block, bit int) dracel.Device {
	d, driver := b.device(bit), b.slice.pool.driver
	if d.irregular() {
		input := ss.devices.celDevice(driver, d, func(uint32) bool { return false })
		if published, err := unpack(b.slice.packed); err == nil {
			device := published.Spec.Devices[b.first+bit]
			input.Attributes, input.Capacity = device.Attributes, device.Capacity
		}
		return input
	}
	return ss.devices.celDevice(driver, d, func(name uint32) bool { return s.reads.whole || slices.Contains(s.names, name) })
}

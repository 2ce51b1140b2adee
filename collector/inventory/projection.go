package inventory

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// projection has the properties of a device that a selector can read. Devices
// with the same projection have the same result.
type projection struct {
	names     []string // of attributes and capacities, qualified, with their kind
	driver    bool
	shareable bool
	whole     bool // it can read anything
}

// key is equal for two projections only if they are equal.
func (p projection) key() string {
	return fmt.Sprintf("%q %v %v %v", p.names, p.driver, p.shareable, p.whole)
}

// newProjection finds out what an expression can read. An expression that cannot
// be analyzed can read anything.
func newProjection(env *cel.Env, expression string) projection {
	parsed, issues := env.Parse(expression)
	if issues.Err() != nil {
		return projection{whole: true}
	}
	p := &projector{}
	p.walk(parsed.NativeRep().Expr(), nil)
	slices.Sort(p.reads.names)
	p.reads.names = slices.Compact(p.reads.names)
	return p.reads
}

type projector struct{ reads projection }

// path is a part of the variable "device": itself, one of its maps, or the part
// of a map with one domain.
type path struct {
	kind   string // nameAttribute or nameCapacity of a map or part of it; empty: the device itself
	domain string
	part   bool
}

// scope has the paths that variables of cel.bind are bound to; nil for other
// variables.
type scope struct {
	name string
	path *path
	up   *scope
}

func (s *scope) find(name string) (*path, bool) {
	for ; s != nil; s = s.up {
		if s.name == name {
			return s.path, true
		}
	}
	return nil, false
}

// walk records what an expression reads. A path that does not end at a single
// value is itself used as a value: then the expression can read anything.
func (p *projector) walk(e ast.Expr, vars *scope) {
	if p.leaf(e, vars) {
		return
	}
	if parsePath(e, vars) != nil {
		p.reads.whole = true
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		p.walkCall(e.AsCall(), vars)
	case ast.ComprehensionKind:
		p.walkComprehension(e.AsComprehension(), vars)
	case ast.SelectKind:
		p.walk(e.AsSelect().Operand(), vars)
	case ast.ListKind:
		p.walkAll(e.AsList().Elements(), vars)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			p.walkAll([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()}, vars)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			p.walk(field.AsStructField().Value(), vars)
		}
	}
}

func (p *projector) walkAll(all []ast.Expr, vars *scope) {
	for _, e := range all {
		p.walk(e, vars)
	}
}

func (p *projector) walkCall(call ast.CallExpr, vars *scope) {
	if call.FunctionName() == operators.In && len(call.Args()) == 2 {
		name, literal := literalText(call.Args()[0])
		if list := parsePath(call.Args()[1], vars); list != nil && list.part && literal {
			p.record(list, name) // whether it is published
			return
		}
	}
	if call.IsMemberFunction() {
		p.walk(call.Target(), vars)
	}
	p.walkAll(call.Args(), vars)
}

// walkComprehension handles loops, and cel.bind, which is a loop over nothing
// with the bound value as its initial value.
func (p *projector) walkComprehension(c ast.ComprehensionExpr, vars *scope) {
	bound := parsePath(c.AccuInit(), vars)
	binds := bound != nil && c.IterRange().Kind() == ast.ListKind && c.IterRange().AsList().Size() == 0
	if !binds {
		p.walk(c.IterRange(), vars)
		p.walk(c.AccuInit(), vars)
		bound = nil
	}
	inside := &scope{name: c.AccuVar(), path: bound, up: vars}
	if !binds {
		inside = &scope{name: c.IterVar(), up: inside}
		if c.HasIterVar2() {
			inside = &scope{name: c.IterVar2(), up: inside}
		}
		p.walkAll([]ast.Expr{c.LoopCondition(), c.LoopStep()}, inside)
	}
	p.walk(c.Result(), inside)
}

// leaf records a path to a single value, and reports whether e is one.
func (p *projector) leaf(e ast.Expr, vars *scope) bool {
	operand, field, ok := member(e)
	if !ok {
		return false
	}
	list := parsePath(operand, vars)
	switch {
	case list == nil:
		return false
	case list.part:
		p.record(list, field)
		return true
	case list.kind == "" && field == "driver":
		p.reads.driver = true
		return true
	case list.kind == "" && field == "allowMultipleAllocations":
		p.reads.shareable = true
		return true
	}
	return false
}

func (p *projector) record(operand *path, name string) {
	p.reads.names = append(p.reads.names, operand.kind+operand.domain+"/"+name)
}

// parsePath returns the path of an expression; nil: none.
func parsePath(e ast.Expr, vars *scope) *path {
	if e.Kind() == ast.IdentKind {
		name := e.AsIdent()
		if bound, ok := vars.find(name); ok {
			return bound
		}
		if name == "device" {
			return &path{}
		}
		return nil
	}
	operand, field, ok := member(e)
	if !ok {
		return nil
	}
	list := parsePath(operand, vars)
	switch {
	case list == nil || list.part:
		return nil
	case list.kind != "":
		return &path{kind: list.kind, domain: field, part: true}
	case field == "attributes":
		return &path{kind: nameAttribute}
	case field == "capacity":
		return &path{kind: nameCapacity}
	}
	return nil
}

// member splits a.b, a["b"], a.?b and a[?"b"], also within has().
func member(e ast.Expr) (operand ast.Expr, field string, ok bool) {
	if e.Kind() == ast.SelectKind {
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	}
	if e.Kind() != ast.CallKind {
		return nil, "", false
	}
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		field, ok = literalText(call.Args()[1])
		return call.Args()[0], field, ok
	}
	return nil, "", false
}

func literalText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

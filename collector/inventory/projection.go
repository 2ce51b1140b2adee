package inventory

import (
	"fmt"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// projection is what of a device a selector can read. Devices with the same
// projection have the same result.
type projection struct {
	names     []string // of attributes and capacities, qualified, with their kind
	driver    bool
	shareable bool
	whole     bool // it can read anything
}

// key is the same for equal projections, and for no others.
func (p projection) key() string {
	return fmt.Sprintf("%q %v %v %v", p.names, p.driver, p.shareable, p.whole)
}

// projectionOf finds out what an expression can read. An expression that cannot
// be analyzed can read anything.
func projectionOf(env *cel.Env, expression string) projection {
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
func (p *projector) walk(e ast.Expr, in *scope) {
	if p.leaf(e, in) {
		return
	}
	if pathOf(e, in) != nil {
		p.reads.whole = true
		return
	}
	switch e.Kind() {
	case ast.CallKind:
		p.walkCall(e.AsCall(), in)
	case ast.ComprehensionKind:
		p.walkComprehension(e.AsComprehension(), in)
	case ast.SelectKind:
		p.walk(e.AsSelect().Operand(), in)
	case ast.ListKind:
		p.walkAll(e.AsList().Elements(), in)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			p.walkAll([]ast.Expr{entry.AsMapEntry().Key(), entry.AsMapEntry().Value()}, in)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			p.walk(field.AsStructField().Value(), in)
		}
	}
}

func (p *projector) walkAll(all []ast.Expr, in *scope) {
	for _, e := range all {
		p.walk(e, in)
	}
}

func (p *projector) walkCall(call ast.CallExpr, in *scope) {
	if call.FunctionName() == operators.In && len(call.Args()) == 2 {
		name, literal := textOf(call.Args()[0])
		if of := pathOf(call.Args()[1], in); of != nil && of.part && literal {
			p.record(of, name) // whether it is published
			return
		}
	}
	if call.IsMemberFunction() {
		p.walk(call.Target(), in)
	}
	p.walkAll(call.Args(), in)
}

// walkComprehension handles loops, and cel.bind, which is a loop over nothing
// with the bound value as its initial value.
func (p *projector) walkComprehension(c ast.ComprehensionExpr, in *scope) {
	bound := pathOf(c.AccuInit(), in)
	binds := bound != nil && c.IterRange().Kind() == ast.ListKind && c.IterRange().AsList().Size() == 0
	if !binds {
		p.walk(c.IterRange(), in)
		p.walk(c.AccuInit(), in)
		bound = nil
	}
	inside := &scope{name: c.AccuVar(), path: bound, up: in}
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
func (p *projector) leaf(e ast.Expr, in *scope) bool {
	operand, field, is := member(e)
	if !is {
		return false
	}
	of := pathOf(operand, in)
	switch {
	case of == nil:
		return false
	case of.part:
		p.record(of, field)
		return true
	case of.kind == "" && field == "driver":
		p.reads.driver = true
		return true
	case of.kind == "" && field == "allowMultipleAllocations":
		p.reads.shareable = true
		return true
	}
	return false
}

func (p *projector) record(of *path, name string) {
	p.reads.names = append(p.reads.names, of.kind+of.domain+"/"+name)
}

// pathOf returns the path of an expression; nil: none.
func pathOf(e ast.Expr, in *scope) *path {
	if e.Kind() == ast.IdentKind {
		name := e.AsIdent()
		if bound, is := in.find(name); is {
			return bound
		}
		if name == "device" {
			return &path{}
		}
		return nil
	}
	operand, field, is := member(e)
	if !is {
		return nil
	}
	of := pathOf(operand, in)
	switch {
	case of == nil || of.part:
		return nil
	case of.kind != "":
		return &path{kind: of.kind, domain: field, part: true}
	case field == "attributes":
		return &path{kind: nameAttribute}
	case field == "capacity":
		return &path{kind: nameCapacity}
	}
	return nil
}

// member splits a.b, a["b"], a.?b and a[?"b"], also within has().
func member(e ast.Expr) (operand ast.Expr, field string, is bool) {
	if e.Kind() == ast.SelectKind {
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	}
	if e.Kind() != ast.CallKind {
		return nil, "", false
	}
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.Index, operators.OptIndex, operators.OptSelect:
		field, is = textOf(call.Args()[1])
		return call.Args()[0], field, is
	}
	return nil, "", false
}

func textOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, is := e.AsLiteral().(types.String)
	return string(text), is
}

package main

import (
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// familyName is how names of metric families begin. Flags and images begin
// with dra- alike, but have no underscore.
var familyName = regexp.MustCompile(`^(dra|dra_exporter)_[a-z0-9_]+$`)

func measure(loaded []*packages.Package) report {
	places := make(map[string][]string)
	r := report{types: make(typeNames)}
	for _, p := range loaded {
		if isFixture(p.PkgPath, p.Module.Path) {
			continue
		}
		files := productFiles(p)
		if len(files) == 0 {
			continue
		}
		r.packages = append(r.packages, shape(p, files))
		for name, file := range files {
			r.grammar.read(p, file)
			r.types.read(r.packages[len(r.packages)-1].name, file)
			for literal, at := range families(p.Fset, file) {
				for _, line := range at {
					places[literal] = append(places[literal], strings.TrimPrefix(p.PkgPath, p.Module.Path+"/")+"/"+name+":"+strconv.Itoa(line))
				}
			}
		}
	}
	slices.SortFunc(r.packages, func(a, b packageShape) int { return strings.Compare(a.name, b.name) })
	r.families = make(map[string][]string)
	for name, at := range places {
		if len(at) > 1 {
			slices.Sort(at)
			r.families[name] = at
		}
	}
	return r
}

// isFixture reports whether a package is there for tests.
func isFixture(path, module string) bool {
	for _, part := range strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), "/") {
		if part == "testdata" || part == "simulated" || part == "test" || strings.HasSuffix(part, "test") && part != "latest" {
			return true
		}
	}
	return false
}

// productFiles are the files of a package that are written by hand, by name.
func productFiles(p *packages.Package) map[string]*ast.File {
	files := make(map[string]*ast.File)
	for _, file := range p.Syntax {
		name := filepath.Base(p.Fset.Position(file.Package).Filename)
		if !ast.IsGenerated(file) && !strings.HasSuffix(name, "_test.go") && strings.HasSuffix(name, ".go") {
			files[name] = file
		}
	}
	return files
}

func shape(p *packages.Package, files map[string]*ast.File) packageShape {
	s := packageShape{name: strings.TrimPrefix(p.PkgPath, p.Module.Path+"/"), methods: make(map[string]int)}
	references := make(map[string]map[string]bool) // from file to file
	callers := make(map[types.Object][]string)     // by unexported function: the file of each use
	for _, name := range sorted(files) {
		file := files[name]
		lines := p.Fset.File(file.Package).LineCount()
		s.files++
		s.lines += lines
		if lines < shortFile {
			s.short = append(s.short, name)
		}
		references[name] = make(map[string]bool)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				refer(p, id, name, references[name], callers)
			}
			return true
		})
		s.declarations(p, file, callers)
	}
	for function, from := range callers {
		s.functions++
		if len(from) == 1 && from[0] != filepath.Base(p.Fset.Position(function.Pos()).Filename) {
			s.elsewhere++
		}
	}
	s.circle = largestCircle(references)
	return s
}

// refer notes a use of what another file of the package declares.
func refer(p *packages.Package, id *ast.Ident, from string, to map[string]bool, callers map[types.Object][]string) {
	object := p.TypesInfo.Uses[id]
	if object == nil || object.Pkg() != p.Types || !isPackageLevel(object) {
		return
	}
	if f, ok := object.(*types.Func); ok {
		object = f.Origin()
		if !f.Exported() {
			callers[object] = append(callers[object], from)
		}
	}
	declared := filepath.Base(p.Fset.Position(object.Pos()).Filename)
	if declared != from {
		to[declared] = true
	}
}

// isPackageLevel reports whether an object is a function, type, variable,
// constant or method that the package declares; fields belong to their type.
func isPackageLevel(object types.Object) bool {
	if f, ok := object.(*types.Func); ok {
		receiver := f.Signature().Recv()
		return receiver == nil || !types.IsInterface(receiver.Type())
	}
	return object.Parent() == object.Pkg().Scope()
}

func (p *packageShape) declarations(loaded *packages.Package, file *ast.File, callers map[types.Object][]string) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() {
				p.exported++
			} else if f := loaded.TypesInfo.Defs[d.Name]; f != nil && callers[f] == nil && d.Name.Name != "main" {
				callers[f] = nil
			}
			if d.Recv != nil {
				p.methods[receiverName(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				p.exported += exportedNames(spec)
			}
		}
	}
}

func exportedNames(spec ast.Spec) int {
	n := 0
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if spec.Name.IsExported() {
			n++
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() {
				n++
			}
		}
	}
	return n
}

func receiverName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiverName(t.X)
	case *ast.IndexExpr:
		return receiverName(t.X)
	case *ast.IndexListExpr:
		return receiverName(t.X)
	case *ast.Ident:
		return t.Name
	default:
		return "?"
	}
}

// families are the string literals of a file that are names of families, with
// their lines.
func families(set *token.FileSet, file *ast.File) map[string][]int {
	found := make(map[string][]int)
	ast.Inspect(file, func(n ast.Node) bool {
		literal, ok := n.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return true
		}
		if value, err := strconv.Unquote(literal.Value); err == nil && familyName.MatchString(value) {
			found[value] = append(found[value], set.Position(literal.Pos()).Line)
		}
		return true
	})
	return found
}

// largestCircle is the largest strongly connected component of a graph, sorted
// (Tarjan's algorithm); empty if there is none of more than one file.
func largestCircle(graph map[string]map[string]bool) []string {
	t := &tarjan{graph: graph, index: make(map[string]int), low: make(map[string]int), onStack: make(map[string]bool)}
	for _, name := range sorted(graph) {
		if t.index[name] == 0 {
			t.visit(name)
		}
	}
	slices.Sort(t.largest)
	return t.largest
}

type tarjan struct {
	graph      map[string]map[string]bool
	index, low map[string]int // from 1
	onStack    map[string]bool
	stack      []string
	largest    []string
}

func (t *tarjan) visit(name string) {
	t.index[name] = len(t.index) + 1
	t.low[name] = t.index[name]
	t.stack = append(t.stack, name)
	t.onStack[name] = true
	for _, next := range sorted(t.graph[name]) {
		switch {
		case t.index[next] == 0:
			t.visit(next)
			t.low[name] = min(t.low[name], t.low[next])
		case t.onStack[next]:
			t.low[name] = min(t.low[name], t.index[next])
		}
	}
	if t.low[name] != t.index[name] {
		return
	}
	at := slices.Index(t.stack, name)
	component := slices.Clone(t.stack[at:])
	for _, member := range component {
		t.onStack[member] = false
	}
	t.stack = t.stack[:at]
	if len(component) > 1 && len(component) > len(t.largest) {
		t.largest = component
	}
}

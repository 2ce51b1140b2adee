// House measures the shape of the product's code: circles of files inside
// packages, methods per type, short files, functions that one other file calls,
// metric families that are written twice, names of values, functions and types, and lines.
//
// It loads the packages of the root module with their types. Tests, generated
// files and test fixtures (directories named testdata, simulated, or ending in
// "test") are left out.
//
//	go run . [-root DIR] [-check] [-v]
//
// With -check it exits with status 1 if a limit is exceeded.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/tools/go/packages"
)

// The limits that -check holds the code to.
const (
	maxCircle  = 4  // files of one package that refer to each other
	maxMethods = 30 // of one type
	shortFile  = 40 // lines; files below are counted
)

func main() {
	root := flag.String("root", "../../../..", "`directory` of the module to measure")
	check := flag.Bool("check", false, "exit with status 1 if a limit is exceeded")
	verbose := flag.Bool("v", false, "name the files, types and literals behind each number")
	flag.Parse()
	if err := run(*root, *check, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(root string, check, verbose bool) error {
	loaded, err := load(root)
	if err != nil {
		return err
	}
	report := measure(loaded)
	report.write(os.Stdout, verbose)
	if exceeded := report.exceeded(); check && len(exceeded) > 0 {
		return errors.New(strings.Join(exceeded, "\nhouse: "))
	}
	return nil
}

func load(root string) ([]*packages.Package, error) {
	config := &packages.Config{
		Dir: root,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedDeps | packages.NeedModule,
	}
	loaded, err := packages.Load(config, "./...")
	if err != nil {
		return nil, fmt.Errorf("load the packages below %s: %w", root, err)
	}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
	}
	return loaded, nil
}

// report is what was measured.
type report struct {
	packages []packageShape
	families map[string][]string // places where a family's name stands, of those with several
	grammar  grammar
	types    typeNames
}

// packageShape is the shape of one package.
type packageShape struct {
	name      string
	files     int
	lines     int
	short     []string       // files below shortFile lines
	circle    []string       // the largest set of files that refer to each other
	methods   map[string]int // by type
	exported  int            // functions, types, values and methods
	functions int            // unexported ones
	elsewhere int            // of these, called once, from another file
}

func (p packageShape) most() (name string, methods int) {
	for t, n := range p.methods {
		if n > methods || n == methods && t < name {
			name, methods = t, n
		}
	}
	return name, methods
}

func (r report) exceeded() []string {
	var lines []string
	for _, p := range r.packages {
		if len(p.circle) > maxCircle {
			lines = append(lines, fmt.Sprintf("%s: %d files refer to each other in a circle, the limit is %d: %v", p.name, len(p.circle), maxCircle, p.circle))
		}
		if name, methods := p.most(); methods > maxMethods {
			lines = append(lines, fmt.Sprintf("%s.%s has %d methods, the limit is %d", p.name, name, methods, maxMethods))
		}
	}
	for _, name := range sorted(r.families) {
		lines = append(lines, fmt.Sprintf("the family %s is written %d times: %v", name, len(r.families[name]), r.families[name]))
	}
	lines = append(lines, r.grammar.exceeded()...)
	return append(lines, r.types.exceeded()...)
}

func (r report) write(to io.Writer, verbose bool) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "package\tfiles\tlines\tbelow 40\tlargest circle\tmost methods\texported\tcalled once, from another file")
	var all packageShape
	for _, p := range r.packages {
		name, methods := p.most()
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d %s\t%d\t%s\n", p.name, p.files, p.lines, len(p.short), len(p.circle), methods, name, p.exported, percent(p.elsewhere, p.functions))
		all.files += p.files
		all.lines += p.lines
		all.short = append(all.short, p.short...)
		all.exported += p.exported
		all.functions += p.functions
		all.elsewhere += p.elsewhere
	}
	fmt.Fprintf(table, "%d packages\t%d\t%d\t%d\t\t\t%d\t%s\n", len(r.packages), all.files, all.lines, len(all.short), all.exported, percent(all.elsewhere, all.functions))
	_ = table.Flush()
	fmt.Fprintf(to, "families written more than once: %d\n%s\ntype names that are declared in several packages: %d of %d\n",
		len(r.families), &r.grammar, len(r.types.shared()), len(r.types))
	if !verbose {
		return
	}
	for _, p := range r.packages {
		if len(p.circle) > 1 {
			fmt.Fprintf(to, "circle in %s: %v\n", p.name, p.circle)
		}
		if len(p.short) > 0 {
			fmt.Fprintf(to, "short files in %s: %v\n", p.name, p.short)
		}
	}
	for _, name := range r.types.shared() {
		fmt.Fprintf(to, "type %s: %v\n", name, r.types[name])
	}
	for _, name := range sorted(r.families) {
		fmt.Fprintf(to, "family %s: %v\n", name, r.families[name])
	}
}

func percent(part, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d of %d (%d %%)", part, of, (100*part+of/2)/of)
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

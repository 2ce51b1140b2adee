package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// The limits that -check holds names to.
const (
	minCommaOK   = 90 // percent of the second results of look-ups that are named ok
	maxWordNames = 0  // parameters and variables with one of wordNames
	maxOfNames   = 19 // functions whose name ends in Of
)

// wordNames are prepositions, pronouns and verbs, which are no names of a value.
func wordNames() []string {
	return strings.Fields("of in to from into one own before after twice since until over upon within between " +
		"it its this that these those they who what which whose is was has does each both")
}

// grammar is how values and functions are named.
type grammar struct {
	commaOK, lookUps   int      // second results of look-ups named ok, and all
	wordNamed, names   int      // parameters and variables of functions with one of wordNames, and all
	words              []string // where those are
	ofNamed, functions int      // functions whose name ends in Of, and all
}

// read adds the names of a file.
func (g *grammar) read(p *packages.Package, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			g.readLookUp(n)
		case *ast.FuncDecl:
			g.functions++
			if strings.HasSuffix(n.Name.Name, "Of") {
				g.ofNamed++
			}
		case *ast.Ident:
			g.readName(p, n)
		}
		return true
	})
}

// readLookUp adds an assignment of two values if its right side is a look-up in a map,
// a type assertion or a receipt.
func (g *grammar) readLookUp(n *ast.AssignStmt) {
	if len(n.Lhs) != 2 || len(n.Rhs) != 1 {
		return
	}
	switch right := ast.Unparen(n.Rhs[0]).(type) {
	case *ast.IndexExpr, *ast.TypeAssertExpr:
	case *ast.UnaryExpr:
		if right.Op != token.ARROW {
			return
		}
	default:
		return
	}
	if second, ok := n.Lhs[1].(*ast.Ident); ok && second.Name != "_" {
		g.lookUps++
		if second.Name == "ok" {
			g.commaOK++
		}
	}
}

// readName adds a parameter, a result or a variable of a function.
func (g *grammar) readName(p *packages.Package, id *ast.Ident) {
	v, ok := p.TypesInfo.Defs[id].(*types.Var)
	if !ok || v.IsField() || v.Parent() == nil || v.Parent() == p.Types.Scope() {
		return
	}
	g.names++
	if slices.Contains(wordNames(), id.Name) {
		g.wordNamed++
		at := p.Fset.Position(id.Pos())
		g.words = append(g.words, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, id.Name))
	}
}

func (g *grammar) exceeded() []string {
	var lines []string
	if 100*g.commaOK < minCommaOK*g.lookUps {
		lines = append(lines, fmt.Sprintf("%s second results of look-ups are named ok, the limit is %d %%", percent(g.commaOK, g.lookUps), minCommaOK))
	}
	if g.wordNamed > maxWordNames {
		lines = append(lines, fmt.Sprintf("%d values have the name of a preposition, a pronoun or a verb, the limit is %d: %s", g.wordNamed, maxWordNames, strings.Join(g.words, ", ")))
	}
	if g.ofNamed > maxOfNames {
		lines = append(lines, fmt.Sprintf("the names of %d functions end in Of, the limit is %d", g.ofNamed, maxOfNames))
	}
	return lines
}

func (g *grammar) String() string {
	return fmt.Sprintf("second results of look-ups that are named ok: %s\nvalues with the name of a preposition, a pronoun or a verb: %s\nfunctions whose name ends in Of: %s",
		percent(g.commaOK, g.lookUps), percent(g.wordNamed, g.names), percent(g.ofNamed, g.functions))
}

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// walkRow is a row of a walk: a file and a function or method that is in it.
var walkRow = regexp.MustCompile("(?m)^\\| `([^`]+\\.go)` \\| `([^`]+)` \\|")

// TestWalksOfTheArchitecture checks that every function of the walks in
// docs/architecture.md is in the file that the row names.
func TestWalksOfTheArchitecture(t *testing.T) {
	const root = "../../../.."
	text, err := os.ReadFile(filepath.Join(root, "docs/architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := walkRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 30 {
		t.Fatalf("%d rows; there are three walks with 30 rows at least", len(rows))
	}
	functions := make(map[string]map[string]bool) // of each file
	for _, row := range rows {
		file, name := row[1], row[2]
		if functions[file] == nil {
			if functions[file], err = functionsOf(filepath.Join(root, file)); err != nil {
				t.Error(err)
				functions[file] = make(map[string]bool)
			}
		}
		if !functions[file][name] {
			t.Errorf("%s has no function %s", file, name)
		}
	}
}

// functionsOf returns the functions of a file, and its methods as Type.Name.
func functionsOf(path string) (map[string]bool, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	names := make(map[string]bool)
	for _, decl := range parsed.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			names[prefixOf(f)+f.Name.Name] = true
		}
	}
	return names, nil
}

// prefixOf returns the receiver's type with a dot, and nothing for a function.
func prefixOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch generic := of.(type) {
	case *ast.IndexExpr:
		of = generic.X
	case *ast.IndexListExpr:
		of = generic.X
	}
	if named, ok := of.(*ast.Ident); ok {
		return named.Name + "."
	}
	return ""
}

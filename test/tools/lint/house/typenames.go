package main

import (
	"fmt"
	"go/ast"
	"slices"
)

// maxSharedTypes is how many type names -check lets several packages declare: those
// that mean the same in each of them.
const maxSharedTypes = 112

// typeNames are the packages that declare a type, by its name. An alias counts for none.
type typeNames map[string][]string

// read adds the types of a file.
func (t typeNames) read(name string, file *ast.File) {
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok {
			for _, spec := range general.Specs {
				if declared, ok := spec.(*ast.TypeSpec); ok && !declared.Assign.IsValid() {
					t[declared.Name.Name] = append(t[declared.Name.Name], name)
				}
			}
		}
	}
}

// shared returns the names that several packages declare, sorted.
func (t typeNames) shared() []string {
	return slices.DeleteFunc(sorted(t), func(name string) bool { return len(t[name]) < 2 })
}

func (t typeNames) exceeded() []string {
	if n := len(t.shared()); n > maxSharedTypes {
		return []string{fmt.Sprintf("%d type names are declared in several packages, the limit is %d; -v lists them", n, maxSharedTypes)}
	}
	return nil
}

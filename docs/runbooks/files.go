// Package runbooks has the runbooks of the alerts as they are published, for the program
// that serves them (internal/runbook).
package runbooks

import (
	"embed"
	"io/fs"
)

//go:embed *.md
var files embed.FS

// Files returns the runbooks: NAME.md of each alert, and README.md.
func Files() fs.FS { return files }

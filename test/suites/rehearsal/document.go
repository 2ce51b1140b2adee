package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// document is the documented verification of a release: shell commands, one a
// line, which read the variables VERSION and signer.
type document struct{ commands []string }

const (
	verifyDocument = "docs/install.md"
	verifyHeading  = "\n## Verify a release\n"
	// publicRegistry is the part of the documented names for which the local
	// registry stands.
	publicRegistry = "ghcr.io/dra-exporter/"
)

// readDocument reads the first shell block of the section. It returns an error
// unless the block begins with the two variables.
func readDocument(file string) (document, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return document{}, err
	}
	_, section, found := strings.Cut(string(text), verifyHeading)
	if !found {
		return document{}, fmt.Errorf("%s has no section%s", verifyDocument, strings.TrimSpace(verifyHeading))
	}
	_, block, _ := strings.Cut(section, "\n```sh\n")
	block, _, closed := strings.Cut(block, "\n```\n")
	if !closed {
		return document{}, fmt.Errorf("%s: the section has no shell block", verifyDocument)
	}
	variables := regexp.MustCompile(`(?s)\AVERSION=\S+\nsigner=\([^)]*\)\n`)
	commands := variables.ReplaceAllString(block, "")
	if commands == block || strings.Count(commands, publicRegistry) < 4 {
		return document{}, errors.New(verifyDocument + ": the block does not begin with VERSION and signer, or names too few images")
	}
	return document{commands: strings.Split(commands, "\n")}, nil
}

// script returns the commands as a script for a release in another registry, by
// another signer.
func script(commands []string, version, registry string, signer []string) string {
	return fmt.Sprintf("set -euo pipefail\nVERSION=%s\nsigner=(%s)\n%s\n", version, strings.Join(signer, " "),
		strings.ReplaceAll(strings.Join(commands, "\n"), publicRegistry, registry+"/"))
}

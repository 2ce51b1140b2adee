// Package changes writes what a version changes into its chart, where Artifact Hub
// reads it.
package changes

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Change is one entry, with the fields that Artifact Hub decodes.
type Change struct {
	Kind        string `yaml:"kind"`
	Description string `yaml:"description"`
}

// Read returns the entries of a version's section of CHANGELOG.md. A version without
// a section has the entries of Unreleased.
func Read(changelog, version string) ([]Change, error) {
	lines := section(changelog, version)
	if lines == nil {
		lines = section(changelog, "Unreleased")
	}
	entry := regexp.MustCompile(`^\* \[([A-Z]+)\] (.+)$`)
	var all []Change
	for _, line := range lines {
		if !strings.HasPrefix(line, "* ") {
			continue
		}
		match := entry.FindStringSubmatch(line)
		if match == nil {
			return nil, fmt.Errorf("the entry %q has no [KIND]", line)
		}
		kind, ok := map[string]string{"CHANGE": "changed", "FEATURE": "added", "ENHANCEMENT": "changed", "BUGFIX": "fixed"}[match[1]]
		if !ok {
			return nil, fmt.Errorf("the entry %q has an unknown kind", line)
		}
		all = append(all, Change{kind, match[2]})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("neither %s nor Unreleased has entries", version)
	}
	return all, nil
}

// section returns the lines below a version's heading; nil without such a heading.
func section(changelog, version string) []string {
	var lines []string
	for line := range strings.Lines(changelog) {
		title, ok := strings.CutPrefix(line, "## ")
		switch {
		case ok && lines != nil:
			return lines
		case ok && strings.Fields(title)[0] == version:
			lines = []string{}
		case lines != nil:
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Annotate adds the changes to the annotations of a Chart.yaml, and whether the
// version is a prerelease.
func Annotate(chart []byte, all []Change, version string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(chart, &document); err != nil {
		return nil, fmt.Errorf("decode Chart.yaml: %w", err)
	}
	annotations := annotationsIn(document)
	if annotations == nil {
		return nil, errors.New("decode Chart.yaml: it has no annotations")
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode changes: %w", err)
	}
	add := func(key, value string) {
		annotations.Content = append(annotations.Content,
			&yaml.Node{Kind: yaml.ScalarNode, Value: "artifacthub.io/" + key},
			&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value})
	}
	add("changes", string(text))
	_, suffix, _ := strings.Cut(version, "-")
	add("prerelease", fmt.Sprint(suffix != ""))
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, fmt.Errorf("encode Chart.yaml: %w", err)
	}
	return out.Bytes(), nil
}

// annotationsIn returns the annotations of a document; nil if it has none.
func annotationsIn(document yaml.Node) *yaml.Node {
	if len(document.Content) != 1 {
		return nil
	}
	fields := document.Content[0].Content
	for i := 0; i+1 < len(fields); i += 2 {
		if fields[i].Value == "annotations" && fields[i+1].Kind == yaml.MappingNode {
			return fields[i+1]
		}
	}
	return nil
}

package price

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const (
	maxText    = 253  // bytes; names of device classes are no longer (RFC 1123 subdomains)
	maxPerHour = 1e12 // an hour; totals of such prices are still counted exactly enough
)

// lineError is an error in one line.
type lineError struct {
	line int
	what string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

func errorAt(at *yaml.Node, format string, args ...any) error {
	return &lineError{at.Line, fmt.Sprintf(format, args...)}
}

// keys are the values of a mapping by their keys.
type keys struct{ values map[string]*yaml.Node }

// keysOf decodes a mapping that has none but the known keys, each once.
func keysOf(node *yaml.Node, what string, known ...string) (keys, error) {
	if node.Kind != yaml.MappingNode {
		return keys{}, errorAt(node, "%s is %s, want keys and values (%s)", what, kindOf(node), strings.Join(known, ", "))
	}
	found := keys{make(map[string]*yaml.Node, len(known))}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch before, twice := found.values[key.Value]; {
		case key.Kind != yaml.ScalarNode || !slices.Contains(known, key.Value):
			return keys{}, errorAt(key, "unknown key %s, want one of %s", quoted(key.Value), strings.Join(known, ", "))
		case twice:
			return keys{}, errorAt(key, "%s is set twice, first in line %d", key.Value, before.Line)
		}
		found.values[key.Value] = value
	}
	return found, nil
}

// text returns the value of a key; empty without one.
func (k keys) text(key string) (string, error) {
	node, given := k.values[key]
	if !given {
		return "", nil
	}
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" || node.Value == "" && node.ShortTag() == "!!str" {
		return "", errorAt(node, "%s is empty", key)
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		return "", errorAt(node, "%s is %s, want text (in quotes, if it looks like something else)", key, kindOf(node))
	}
	switch value := strings.TrimSpace(node.Value); {
	case value == "":
		return "", errorAt(node, "%s is empty", key)
	case len(value) > maxText:
		return "", errorAt(node, "%s is longer than %d bytes", key, maxText)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", errorAt(node, "%s has control characters", key)
	default:
		return value, nil
	}
}

// number decodes a decimal number: in YAML 010 is eight.
func number(key string, node *yaml.Node) (float64, error) {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!int" && node.ShortTag() != "!!float" {
		return 0, errorAt(node, "%s is %s, want a number", key, kindOf(node))
	}
	value, err := strconv.ParseFloat(node.Value, 64)
	switch {
	case err != nil, math.IsNaN(value), math.IsInf(value, 0): // a tag such as !!float makes words numbers
		return 0, errorAt(node, "%s: %s is not a finite decimal number", key, quoted(node.Value))
	case value < 0:
		return 0, errorAt(node, "%s: %s is negative", key, node.Value)
	case value > maxPerHour:
		return 0, errorAt(node, "%s: %s is more than %g", key, node.Value, maxPerHour)
	default:
		return value + 0, nil // minus zero is zero
	}
}

// kindOf describes a value for messages.
func kindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.AliasNode:
		return "an alias"
	case node.ShortTag() == "!!str":
		return "the text " + quoted(node.Value)
	case node.ShortTag() == "!!null":
		return "empty"
	default:
		return quoted(node.Value)
	}
}

// quoted quotes the text for a message, shortened if it is long.
func quoted(text string) string {
	const longest = 40
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return strconv.Quote(text)
}

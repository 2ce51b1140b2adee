// Package yamlfile decodes the YAML files that users write. Nothing in a file is
// ignored: a second document, an unknown key, a key that is set twice and a value
// of another type are errors, which name the line and the key. Its functions are
// pure, but for Read.
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
	"github.com/dra-exporter/dra-exporter/collector/spelling"
)

const (
	maxFile   = 1 << 20 // bytes
	maxValues = 250_000
	maxText   = 253 // bytes of a value; names of Kubernetes are no longer (RFC 1123 subdomains)
)

// Read reads a regular file of at most 1 MiB.
func Read(path string) ([]byte, error) { return hostfile.Read(path, maxFile) }

// lineError is an error in one line.
type lineError struct {
	line int
	what string
}

func (e *lineError) Error() string { return fmt.Sprintf("line %d: %s", e.line, e.what) }

// Errorf returns an error in the line of a node.
func Errorf(at *yaml.Node, format string, args ...any) error {
	return &lineError{at.Line, fmt.Sprintf(format, args...)}
}

// In returns an error with the name of its file: "prices.yaml:3: perHour is
// missing", as compilers write it.
func In(name string, err error) error {
	var misplaced *lineError
	if errors.As(err, &misplaced) {
		return fmt.Errorf("%s:%d: %s", name, misplaced.line, misplaced.what)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Document returns the root of the only document of a file.
func Document(text []byte) (*yaml.Node, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err := objectfields.CheckYAML(text, maxValues, maxFile); err != nil {
		return nil, err
	}
	var document, another yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF), err == nil && len(document.Content) == 0:
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, err
	}
	switch err := decoder.Decode(&another); {
	case err == nil:
		return nil, Errorf(&another, "a second document begins here; only one is read")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return document.Content[0], nil
}

// Mapping is a mapping of known keys.
type Mapping struct {
	At     *yaml.Node // the mapping itself
	values map[string]*yaml.Node
}

// MappingOf decodes a mapping that has none but the known keys, each once. Errors
// call it what.
func MappingOf(node *yaml.Node, subject string, known ...string) (Mapping, error) {
	return newMapping(node, subject, func(key string) error {
		if slices.Contains(known, key) {
			return nil
		}
		return fmt.Errorf("unknown key %s, want one of %s%s", Quoted(key), strings.Join(known, ", "), Hint(key, known))
	}, strings.Join(known, ", "))
}

// Names decodes a mapping whose keys are any names, in their order.
func Names(node *yaml.Node, subject string) (Mapping, []string, error) {
	var names []string
	m, err := newMapping(node, subject, func(key string) error {
		if names = append(names, key); strings.TrimSpace(key) == "" || key == "<<" {
			return fmt.Errorf("%s is not a name", Quoted(key))
		}
		return nil
	}, "names and values")
	return m, names, err
}

func newMapping(node *yaml.Node, subject string, check func(key string) error, keys string) (Mapping, error) {
	if node.Kind != yaml.MappingNode {
		return Mapping{}, Errorf(node, "%s is %s, want keys and values (%s)", subject, KindOf(node), keys)
	}
	m := Mapping{At: node, values: make(map[string]*yaml.Node, len(node.Content)/2)}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		name := key.Value
		if key.Kind != yaml.ScalarNode {
			name = ""
		}
		if err := check(name); err != nil {
			return Mapping{}, Errorf(key, "%v", err)
		}
		if previous, ok := m.values[name]; ok {
			return Mapping{}, Errorf(key, "%s is set twice, first in line %d", name, previous.Line)
		}
		m.values[name] = value
	}
	return m, nil
}

// Hint suggests the known word that is nearest to a misspelt one; empty if none
// is near.
func Hint(word string, known []string) string {
	if len(word) > maxText {
		return "" // the work grows with its length
	}
	nearest := spelling.Nearest(word, known)
	if nearest == "" || spelling.Distance(word, nearest) > max(2, len(word)/3) {
		return ""
	}
	return "; did you mean " + nearest + "?"
}

// Node returns the value of a key; nil without one.
func (m Mapping) Node(key string) *yaml.Node { return m.values[key] }

// Need returns the value of a key that must be there.
func (m Mapping) Need(key string) (*yaml.Node, error) {
	if node := m.values[key]; node != nil {
		return node, nil
	}
	return nil, Errorf(m.At, "%s is missing", key)
}

// Text returns the value of a key; empty without one.
func (m Mapping) Text(key string) (string, error) {
	node, ok := m.values[key]
	if !ok {
		return "", nil
	}
	return Text(key, node)
}

// Text decodes text that is not empty, without the spaces around it. Errors call
// it key.
func Text(key string, node *yaml.Node) (string, error) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" || node.Value == "" && node.ShortTag() == "!!str" {
		return "", Errorf(node, "%s is empty", key)
	}
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		return "", Errorf(node, "%s is %s, want text (in quotes, if it looks like something else)", key, KindOf(node))
	}
	switch value := strings.TrimSpace(node.Value); {
	case value == "":
		return "", Errorf(node, "%s is empty", key)
	case len(value) > maxText:
		return "", Errorf(node, "%s is longer than %d bytes", key, maxText)
	case strings.ContainsFunc(value, unicode.IsControl):
		return "", Errorf(node, "%s has control characters", key)
	default:
		return value, nil
	}
}

// Bool returns the value of a key, true or false; false without one.
func (m Mapping) Bool(key string) (bool, error) {
	switch node := m.values[key]; {
	case node == nil:
		return false, nil
	case node.Kind != yaml.ScalarNode || node.ShortTag() != "!!bool":
		return false, Errorf(node, "%s is %s, want true or false", key, KindOf(node))
	default:
		return strings.EqualFold(node.Value, "true"), nil
	}
}

// List returns the entries of a list of one to most entries; none without the key.
func (m Mapping) List(key string, most int) ([]*yaml.Node, error) {
	switch node := m.values[key]; {
	case node == nil:
		return nil, nil
	case node.Kind != yaml.SequenceNode:
		return nil, Errorf(node, "%s is %s, want a list", key, KindOf(node))
	case len(node.Content) == 0:
		return nil, Errorf(node, "%s has no entries", key)
	case len(node.Content) > most:
		return nil, Errorf(node, "%s has more than %d entries", key, most)
	default:
		return node.Content, nil
	}
}

// Number decodes a finite decimal number: in YAML 010 is eight. Errors call it key.
func Number(key string, node *yaml.Node) (float64, error) {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!int" && node.ShortTag() != "!!float" {
		return 0, Errorf(node, "%s is %s, want a number", key, KindOf(node))
	}
	value, err := strconv.ParseFloat(node.Value, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) { // a tag such as !!float makes words numbers
		return 0, Errorf(node, "%s: %s is not a finite decimal number", key, Quoted(node.Value))
	}
	return value + 0, nil // minus zero is zero
}

// KindOf describes a value for messages.
func KindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.AliasNode:
		return "an alias"
	case node.ShortTag() == "!!str":
		return "the text " + Quoted(node.Value)
	case node.ShortTag() == "!!null":
		return "empty"
	default:
		return Quoted(node.Value)
	}
}

// Quoted quotes text for a message, shortened if it is long.
func Quoted(text string) string {
	const longest = 40
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return strconv.Quote(text)
}

package objectfields

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxDirectives is the most directives of YAML. Its decoders compare each with all
// before it; a document has one at most, its version.
const maxDirectives = 16

// CountText returns at least how many values a document of JSON or YAML has. It stops
// at the limit.
func CountText(text []byte, limit int) int {
	count := 1
	for i, c := range text {
		switch {
		case c == ',', c == ':', c == '[', c == '{', isBreak(c):
			count++
		case c == '-', c == '?':
			if i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t') {
				count++
			}
		}
		if count >= limit {
			break
		}
	}
	return count
}

// isBreak reports whether a byte is, or ends, what breaks a line of YAML: also U+0085,
// U+2028 and U+2029.
func isBreak(c byte) bool { return c == '\n' || c == '\r' || c == 0x85 || c == 0xa8 || c == 0xa9 }

// CheckYAML reports why documents of YAML or JSON may take too long to decode, or too
// much memory: too many values, or directives, or aliases that stand for more than so
// many values and bytes. The decoders of YAML copy what an alias stands for.
func CheckYAML(text []byte, values, size int) error {
	if CountText(text, values+1) > values {
		return fmt.Errorf("it has more than %d values", values)
	}
	directives := 0
	for i, c := range text {
		if c == '%' && (i == 0 || isBreak(text[i-1])) {
			directives++
		}
	}
	if directives > maxDirectives {
		return fmt.Errorf("it has more than %d directives", maxDirectives)
	}
	if !bytes.Contains(text, []byte("*")) || !bytes.Contains(text, []byte("&")) {
		return nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var document yaml.Node
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		counted := expansion{limits: extent{values, size}, anchors: make(map[*yaml.Node]extent)}
		switch whole, err := counted.measure(&document); {
		case err != nil:
			return err
		case whole.values > values:
			return fmt.Errorf("its aliases stand for more than %d values", values)
		case whole.size > size:
			return fmt.Errorf("its aliases stand for more than %d bytes", size)
		}
	}
}

// extent is how much a value is with all within it.
type extent struct{ values, size int }

// expansion measures values as if each alias were what it stands for.
type expansion struct {
	limits  extent
	anchors map[*yaml.Node]extent // zero: it is being measured
}

// measure returns the extent of a value, or something larger than a limit.
func (e *expansion) measure(node *yaml.Node) (extent, error) {
	if node.Kind == yaml.AliasNode {
		known, ok := e.anchors[node.Alias]
		if ok && known.values == 0 {
			return extent{}, fmt.Errorf("line %d: an alias stands for itself", node.Line)
		}
		if ok {
			return known, nil
		}
		return e.measureAnchor(node.Alias)
	}
	whole := extent{1, len(node.Value)}
	for _, inner := range node.Content {
		part, err := e.measure(inner)
		if err != nil {
			return extent{}, err
		}
		whole.values, whole.size = whole.values+part.values, whole.size+part.size
		if whole.values > e.limits.values || whole.size > e.limits.size {
			break
		}
	}
	return whole, nil
}

func (e *expansion) measureAnchor(node *yaml.Node) (extent, error) {
	e.anchors[node] = extent{}
	whole, err := e.measure(node)
	e.anchors[node] = whole
	return whole, err
}

package smi

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// MaxBytes is how much text Decode reads; more is an error. The text of 16 GPUs
// with all their clocks is below 4 MiB.
const MaxBytes = 16 << 20

// What a tree may be.
const (
	maxDepth = 32
	maxNodes = 200_000
	maxText  = 4096 // bytes of an element; what follows is left out
)

// node is an element.
type node struct {
	name     string
	id       string // its attribute
	text     string
	children []*node
}

// at returns the first element at a path of names below this one, or an empty
// one.
func (n *node) at(path string) *node {
	name, rest, more := strings.Cut(path, "/")
	for _, child := range n.children {
		if child.name == name {
			if more {
				return child.at(rest)
			}
			return child
		}
	}
	return &node{}
}

// all returns the elements of a name directly below this one.
func (n *node) all(name string) []*node {
	var found []*node
	for _, child := range n.children {
		if child.name == name {
			found = append(found, child)
		}
	}
	return found
}

// number reads the element at the first of some paths that exists.
func (n *node) number(paths ...string) Number {
	for _, path := range paths {
		if found := n.at(path); found.name != "" {
			return parseNumber(found.text)
		}
	}
	return Number{}
}

func (n *node) flag(path string) Flag { return parseFlag(n.at(path).text) }

func (n *node) string(path string) string { return parseText(n.at(path).text) }

// readTree reads a document, without the clocks that it lists as supported,
// and returns the name of its schema too.
func readTree(from io.Reader) (root *node, schema string, err error) {
	limited := &io.LimitedReader{R: from, N: MaxBytes + 1}
	b := &builder{decoder: xml.NewDecoder(limited), open: []*node{{}}}
	err = b.build()
	if limited.N <= 0 {
		return nil, "", fmt.Errorf("more than %d bytes", MaxBytes)
	}
	if err != nil {
		return nil, "", err
	}
	root = b.open[0].at("nvidia_smi_log")
	if root.name == "" {
		return nil, "", errors.New("there is no element nvidia_smi_log")
	}
	return root, b.schema, nil
}

// builder makes a tree of tokens.
type builder struct {
	decoder *xml.Decoder
	open    []*node // the document, and the elements that have not ended
	nodes   int
	schema  string
}

func (b *builder) build() error {
	for {
		token, err := b.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		top := b.open[len(b.open)-1]
		switch token := token.(type) {
		case xml.Directive:
			b.schema = schemaOf(string(token))
		case xml.CharData:
			top.text += string(token[:min(len(token), maxText-len(top.text))])
		case xml.StartElement:
			if err := b.start(top, token); err != nil {
				return err
			}
		case xml.EndElement:
			b.open = b.open[:len(b.open)-1]
		}
	}
}

func (b *builder) start(parent *node, element xml.StartElement) error {
	if element.Name.Local == "supported_clocks" {
		return b.decoder.Skip()
	}
	if b.nodes++; b.nodes > maxNodes || len(b.open) > maxDepth {
		return fmt.Errorf("more than %d elements, or more than %d inside each other", maxNodes, maxDepth)
	}
	made := &node{name: element.Name.Local}
	for _, attribute := range element.Attr {
		if attribute.Name.Local == "id" {
			made.id = attribute.Value
		}
	}
	parent.children = append(parent.children, made)
	b.open = append(b.open, made)
	return nil
}

// schemaOf returns nvsmi_device_v12.dtd of a declaration
// DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd".
func schemaOf(directive string) string {
	_, name, _ := strings.Cut(directive, `"`)
	name, _, found := strings.Cut(name, `"`)
	if !found || !strings.HasPrefix(directive, "DOCTYPE") {
		return ""
	}
	return name
}

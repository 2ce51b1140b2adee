package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// outputFlag is how a report is written: text or json.
type outputFlag struct{ format string }

func (f *outputFlag) addTo(command flagSet) {
	command.Flag("output", "text or json.").Short('o').Default("text").EnumVar(&f.format, "text", "json")
}

// write writes a report, whose name is for errors: the document as JSON, or else its text.
func (f *outputFlag) write(w io.Writer, name string, document any, text func() string) (err error) {
	if f.format == "json" {
		err = writeJSON(w, document)
	} else {
		_, err = io.WriteString(w, text())
	}
	if err != nil {
		return fmt.Errorf("write the %s: %w", name, err)
	}
	return nil
}

// writeJSON writes a document for programs, without control characters.
func writeJSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(terminal.JSONWriter(w))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(document)
}

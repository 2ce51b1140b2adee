package diagnosis

import (
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// match is the verb for so many devices.
func match(n int) string {
	if n == 1 {
		return "matches"
	}
	return "match"
}

func devices(n int) string {
	if n == 1 {
		return "1 device"
	}
	return fmt.Sprintf("%d devices", n)
}

// asking begins a sentence about a request.
func asking(r request) string {
	if r.count == 0 {
		return fmt.Sprintf("request %s asks for all matching devices of a node", r.name)
	}
	return fmt.Sprintf("request %s asks for %s", r.name, devices(r.devices()))
}

// failure is the sentence about a selector that cannot be evaluated. Expressions
// can be kilobytes long, so that the sentence names only the place.
func failure(r request, of dra.SelectorTrouble) string {
	selector := "its selector"
	if ofClass(of) {
		selector = "the selector of " + of.Where
	}
	if of.Device == "" {
		return fmt.Sprintf("request %s: %s does not compile: %s", r.name, selector, oneLine(of.Message))
	}
	return fmt.Sprintf("request %s: %s fails for device %s: %s", r.name, selector, of.Device, oneLine(of.Message))
}

func ofClass(failed dra.SelectorTrouble) bool { return strings.HasPrefix(failed.Where, "class ") }

// oneLine makes a message of another program fit into a sentence: compilers
// print several lines.
func oneLine(message string) string {
	return strings.Join(strings.Fields(clean(message)), " ")
}

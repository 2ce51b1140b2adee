package top

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

func rune_(r rune) Keystroke { return Keystroke{Name: KeyRune, Rune: r} }

// What terminals send for keys, whole and in pieces.
func TestKeyboard(t *testing.T) {
	for typed, want := range map[string][]Keystroke{
		"q":                    {rune_('q')},
		"uü€":                  {rune_('u'), rune_('ü'), rune_('€')},
		"\x1b[A\x1bOB":         {{Name: KeyUp}, {Name: KeyDown}},
		"\x1b[5~\x1b[6~":       {{Name: KeyPageUp}, {Name: KeyPageDown}},
		"\x1b[H\x1b[4~\x1b[1~": {{Name: KeyHome}, {Name: KeyEnd}, {Name: KeyHome}},
		"\x1b[1;5A":            {{Name: KeyUp}},
		"\x1b[200~x":           {rune_('x')}, // a mark around pasted text
		"\x1b\x1b[A":           {{Name: KeyEscape}, {Name: KeyUp}},
		"\x1bx":                nil, // Alt-x
		"\r\n\x7f\b":           {{Name: KeyEnter}, {Name: KeyEnter}, {Name: KeyBackspace}, {Name: KeyBackspace}},
		"\x03\x04":             {{Name: KeyInterrupt}, {Name: KeyInterrupt}},
		"\x01\xffq":            {rune_('q')},
	} {
		for size := 1; size <= len(typed); size++ {
			var keyboard Keyboard
			var got []Keystroke
			for piece := range slices.Chunk([]byte(typed), size) {
				got = append(got, keyboard.Feed(piece)...)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%q in pieces of %d: %v, want %v", typed, size, got, want)
			}
		}
	}
}

// Escape alone is recognized if nothing follows.
func TestEscapeAlone(t *testing.T) {
	var keyboard Keyboard
	if keys := keyboard.Feed([]byte{0x1b}); len(keys) != 0 || !keyboard.Waiting() {
		t.Fatalf("%v", keys)
	}
	if keys := keyboard.GiveUp(); len(keys) != 1 || keys[0].Name != KeyEscape || keyboard.Waiting() {
		t.Errorf("%v", keys)
	}
	if keys := keyboard.Feed([]byte("\x1b[99999999999999999")); len(keys) != 0 || keyboard.Waiting() {
		t.Errorf("what is longer than any sequence is %v", keys)
	}
	keyboard.Feed([]byte("\x1b["))
	if keys := keyboard.GiveUp(); len(keys) != 0 || keyboard.Waiting() {
		t.Errorf("half a sequence is %v", keys)
	}
}

// Any bytes leave the keyboard in a working state.
func FuzzKeyboard(f *testing.F) {
	f.Add([]byte("\x1b[1;5Aq\x1b"), 2)
	f.Fuzz(func(t *testing.T, typed []byte, size int) {
		var keyboard Keyboard
		state := State{}
		for piece := range slices.Chunk(typed, max(size%16, 1)) {
			for _, key := range keyboard.Feed(piece) {
				state = state.Press(key, Space{Rows: 10, Visible: 3})
			}
		}
		if len(keyboard.rest) > longestSequence || state.Offset < 0 || state.Offset > 7 {
			t.Fatalf("%q left over, %+v", keyboard.rest, state)
		}
		keyboard.GiveUp()
		if keys := keyboard.Feed([]byte("q")); len(keys) != 1 || keys[0] != rune_('q') {
			t.Fatalf("after %q: %v", typed, keys)
		}
	})
}

// What keys do.
func TestState(t *testing.T) {
	space := Space{Rows: 100, Visible: 10}
	press := func(typed string) State {
		state, keyboard := State{Order: Order{Key: ByUtilization}}, Keyboard{}
		for _, key := range append(keyboard.Feed([]byte(typed)), keyboard.GiveUp()...) {
			state = state.Press(key, space)
		}
		return state
	}
	by := func(key Key) State { return State{Order: Order{Key: key}} }
	down := func(offset int) State { return State{Order: Order{Key: ByUtilization}, Offset: offset} }
	for typed, want := range map[string]State{
		"m": by(ByMemory), "p": by(ByPower), "i": by(ByIdle), "a": by(ByHeld), "c": by(ByCost), "h": by(ByHealth), "n": by(ByName), "mu": by(ByUtilization),
		"r": {Order: Order{ByUtilization, true}}, "rr": by(ByUtilization), "rm": by(ByMemory), "ru": {Order: Order{ByUtilization, true}},
		"jjk": down(1), " ": down(9), "\x1b[6~\x1b[B": down(10), "G": down(90), "Gj": down(90), "Gg": down(0), "k": down(0), "G\x1b[5~": down(81),
		"jm":        by(ByMemory),
		"/ab":       {Order: Order{Key: ByUtilization}, Filter: "ab", Typing: true},
		"/qü\x7f\r": {Order: Order{Key: ByUtilization}, Filter: "q"},
		"/a\x1b":    by(ByUtilization),
		"/a\r\x1b":  by(ByUtilization),
		"/\x7f\r":   by(ByUtilization),
		"q":         {Order: Order{Key: ByUtilization}, Done: true},
		"/a\x03":    {Order: Order{Key: ByUtilization}, Filter: "a", Typing: true, Done: true},
		"z":         by(ByUtilization),
	} {
		if got := press(typed); got != want {
			t.Errorf("%q: %+v, want %+v", typed, got, want)
		}
	}
}

// Unknown values are last whichever way the rest is sorted, and the order of
// equal rows does not depend on the order in which agents answer.
func TestSort(t *testing.T) {
	row := func(name string, value *float64) *Row {
		return &Row{Claim: name, ClaimGauges: page.ClaimGauges{Utilization: value, MemoryUsed: value, Power: value}, Idle: value, Held: value, Cost: value}
	}
	rows := []*Row{row("unknown", nil), row("b-half", new(0.5)), row("zero", new(0.0)), row("one", new(1.0)), row("a-half", new(0.5)), row("also", nil)}
	for _, key := range []Key{ByUtilization, ByMemory, ByPower, ByIdle, ByHeld, ByCost} {
		for order, want := range map[Order]string{
			{Key: key}:                 "[one a-half b-half zero also unknown]",
			{Key: key, Reversed: true}: "[zero a-half b-half one also unknown]",
		} {
			if got := sorted(rows, order); got != want {
				t.Errorf("%v: %s, want %s", order, got, want)
			}
		}
	}
	if got := sorted(rows, Order{Key: ByName, Reversed: true}); got != "[zero unknown one b-half also a-half]" {
		t.Errorf("by name: %s", got)
	}
	byState := []*Row{{Claim: "unknown"}, {Claim: "healthy", Health: "healthy"}, {Claim: "unhealthy", Health: "unhealthy"}, {Claim: "degraded", Health: "degraded"}}
	if got := sorted(byState, Order{Key: ByHealth}); got != "[unhealthy degraded healthy unknown]" {
		t.Errorf("by health: %s", got)
	}
}

func sorted(rows []*Row, order Order) string {
	chosen := State{Order: order}.Chosen(rows)
	var names []string
	for _, row := range chosen {
		names = append(names, row.Claim)
	}
	return fmt.Sprint(names)
}

// Every word of a filter must be in one of a row's names.
func TestFilter(t *testing.T) {
	row := Row{Namespace: "team-ml", Claim: "train", Node: "node-a", Device: "gpu-0", Model: "NVIDIA H100", UUID: "GPU-12", Pods: []string{"train-0"}, Health: "unhealthy"}
	for filter, want := range map[string]int{"": 1, "TRAIN": 1, "h100 node-a": 1, "train-0": 1, "unhealthy": 1, "train node-b": 0, "teamml": 0, "  ": 1} {
		if got := len(State{Filter: filter}.Chosen([]*Row{&row})); got != want {
			t.Errorf("%q leaves %d rows, want %d", filter, got, want)
		}
	}
}

package top

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
	"github.com/dra-exporter/dra-exporter/internal/page"
)

func byUtilization() State { return State{Order: Order{Key: ByUtilization}} }

// The frames by the size of the terminal.
func TestFrames(t *testing.T) {
	for name, test := range map[string]struct {
		state State
		look  Look
	}{
		"file":     {byUtilization(), Look{Glyphs: asciiGlyphs()}},
		"80x24":    {byUtilization(), Look{Width: 80, Height: 24, Bars: true, Glyphs: unicodeGlyphs()}},
		"132x20":   {State{Order: Order{Key: ByName}}, Look{Width: 132, Height: 20, Bars: true, Glyphs: unicodeGlyphs()}},
		"220x30":   {State{Order: Order{Key: ByHealth}}, Look{Width: 220, Height: 30, Bars: true, Glyphs: unicodeGlyphs()}},
		"filter":   {State{Order: Order{Key: ByName}, Filter: "team-ml gpu", Typing: true}, Look{Width: 80, Height: 16, Bars: true, Glyphs: asciiGlyphs()}},
		"nothing":  {State{Filter: "absent claim"}, Look{Width: 80, Height: 10, Glyphs: asciiGlyphs()}},
		"coloured": {byUtilization(), Look{Width: 100, Height: 12, Bars: true, Styled: true, Glyphs: unicodeGlyphs()}},
		"scrolled": {State{Order: Order{Key: ByName}, Offset: 5}, Look{Width: 80, Height: 14, Bars: true, Glyphs: unicodeGlyphs()}},
	} {
		t.Run(name, func(t *testing.T) {
			screen := Draw(testReading(t), test.state, test.look)
			metrictest.CompareGolden(t, "testdata/"+name+".txt", strings.Join(screen.Lines, "\n")+"\n")
		})
	}
}

// No frame is larger than the terminal, however small that is, and where there
// is room for rows there are some.
func TestFramesFit(t *testing.T) {
	reading := testReading(t)
	for height := 1; height <= 40; height++ {
		for w := 1; w <= 230; w += 3 {
			screen := Draw(reading, byUtilization(), Look{Width: w, Height: height, Bars: true, Glyphs: unicodeGlyphs()})
			if len(screen.Lines) > height {
				t.Fatalf("%d lines on a terminal of %d (width %d)", len(screen.Lines), height, w)
			}
			if height >= 5 && screen.Space.Visible < 2 {
				t.Fatalf("%d rows visible at height %d", screen.Space.Visible, height)
			}
			for _, line := range screen.Lines {
				if got := utf8.RuneCountInString(line); got > w {
					t.Fatalf("a line of %d on a terminal of %d: %q", got, w, line)
				}
			}
		}
	}
}

// Every row can be scrolled to, and none is shown twice.
func TestScrolling(t *testing.T) {
	reading, look := testReading(t), Look{Width: 200, Height: 12, Glyphs: asciiGlyphs()}
	state, seen := State{Order: Order{Key: ByName}}, map[string]int{}
	for range 50 {
		screen := Draw(reading, state, look)
		for i := range screen.Lines {
			seen[screen.Lines[i]]++
		}
		next := state.Press(Keystroke{Name: KeyDown}, screen.Space)
		if next.Offset == state.Offset {
			break
		}
		state = next
	}
	whole := Draw(reading, state, Look{Width: 200, Height: 200, Glyphs: asciiGlyphs()})
	if whole.Space.Rows != len(reading.Rows) || len(reading.Rows) < 10 {
		t.Fatalf("%d rows of %d", whole.Space.Rows, len(reading.Rows))
	}
	for _, line := range whole.Lines[4 : 4+len(reading.Rows)] {
		if seen[line] == 0 {
			t.Errorf("never seen: %q", line)
		}
	}
}

// Text of agents cannot control a terminal.
func TestControlCharacters(t *testing.T) {
	evil := "\x1b]0;owned\a\x1b[2J\r\n\t\u009b31m\u202egpu\u200b界ｗ\u0301é\xff€"
	row := Row{
		Node: evil, Namespace: evil, Claim: evil, Class: evil, Pods: []string{evil}, UUID: evil, Device: evil, Model: evil, Profile: evil,
		Attribution: evil, Health: "unhealthy", Reasons: []string{evil}, Currency: evil, Cost: new(1.0),
	}
	reading := Reading{
		At: noon, Agents: 2, Rows: []*Row{&row, &row}, Failures: []Failure{{evil, evil, evil}}, Stale: []Failure{{evil, evil, evil}}, ListError: evil,
		Pending: &PendingSummary{Count: 1, Reasons: []ReasonCount{{evil, 1}}},
	}
	for _, reading := range []Reading{reading, {At: noon, PendingError: evil}, {At: noon, Pending: &PendingSummary{Unread: []string{evil}}}} {
		for _, state := range []State{{Filter: evil}, {Filter: evil, Typing: true}, {}} {
			for _, look := range []Look{{Glyphs: unicodeGlyphs()}, {Width: 80, Height: 24, Glyphs: unicodeGlyphs()}} {
				for _, line := range Draw(reading, state, look).Lines {
					if at := strings.IndexFunc(line, isControl); at >= 0 {
						t.Fatalf("%q reaches the terminal in %q", line[at:], line)
					}
				}
			}
			text, err := JSON(reading, state)
			if err != nil {
				t.Fatal(err)
			}
			if at := strings.IndexFunc(strings.ReplaceAll(string(text), "\n", ""), controls); at >= 0 {
				t.Fatalf("%q reaches the terminal in JSON", text[at:at+8])
			}
		}
	}
}

// controls reports whether a terminal obeys a rune instead of showing it.
func controls(r rune) bool {
	return r < ' ' || (r >= 0x7f && r < 0xa0) || r == 0x202e || r == 0x200b
}

// isControl reports whether a terminal does more with a rune than show it in
// one column.
func isControl(r rune) bool {
	return controls(r) || (r >= 0x300 && r < 0x370) || r == utf8.RuneError
}

// Unknown values are drawn as unknown, and not as 0.
func TestUnknownIsNotZero(t *testing.T) {
	lines := strings.Join(Draw(Reading{At: noon, Rows: []*Row{{Claim: "c"}}}, State{}, Look{Glyphs: asciiGlyphs()}).Lines, "\n")
	if strings.Contains(lines, "0") && strings.Contains(lines, "0%") {
		t.Errorf("there is a zero:\n%s", lines)
	}
	zero := 0.0
	lines = strings.Join(Draw(Reading{At: noon, Rows: []*Row{{Claim: "c", ClaimGauges: page.ClaimGauges{Utilization: &zero}}}}, State{}, Look{Glyphs: asciiGlyphs()}).Lines, "\n")
	if !strings.Contains(lines, "0%") {
		t.Errorf("the zero is not there:\n%s", lines)
	}
}

func BenchmarkFrame(b *testing.B) {
	fleet, bodies := NewFleet(), fleetBodies(b, 1000)
	var agents []Agent
	for i := range bodies {
		agents = append(agents, Agent{Name: fmt.Sprintf("agent-%d", i)})
	}
	fleet.Expect(agents)
	decode := func() {
		for i, body := range bodies {
			answer, err := decodeClaims(body, noon)
			if err != nil {
				b.Fatal(err)
			}
			fleet.Set(Reply{Agent: agents[i], Answer: answer})
		}
	}
	decode()
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			decode()
		}
		b.ReportMetric(float64(len(bodies)*len(bodies[0]))/1e6, "MB")
	})
	look := Look{Width: 160, Height: 50, Bars: true, Styled: true, Glyphs: unicodeGlyphs()}
	b.Run("draw", func(b *testing.B) {
		for b.Loop() {
			reading := fleet.Reading(noon, Wanted{})
			if screen := Draw(reading, byUtilization(), look); screen.Space.Rows != 8000 {
				b.Fatal(screen.Space)
			}
		}
	})
}

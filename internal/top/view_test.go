package top

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// What is printed once, in a file and in the width of a terminal.
func TestTable(t *testing.T) {
	for name, look := range map[string]Look{
		"file":    {Glyphs: asciiGlyphs()},
		"once-80": {Width: 80, Bars: true, Glyphs: unicodeGlyphs()},
	} {
		t.Run(name, func(t *testing.T) {
			lines := Draw(testReading(t), Order{Key: ByUtilization}, look)
			metrictest.CompareGolden(t, "testdata/"+name+".txt", strings.Join(lines, "\n")+"\n")
		})
	}
}

// Text of agents cannot control a terminal.
func TestControlCharacters(t *testing.T) {
	evil := "\x1b]0;owned\a\x1b[2J\r\n\t\u009b31m\u202egpu\u200b界ｗ\u0301é\xff€"
	row := Row{
		Users: []User{{evil, evil, evil, evil, nil}}, Node: evil, Namespace: evil, Claim: evil, Class: evil, Pods: []string{evil}, UUID: evil, Device: evil, Model: evil, Profile: evil,
		Attribution: evil, Health: "unhealthy", Reasons: []string{evil}, Currency: evil, Cost: new(1.0),
	}
	reading := FleetState{
		At: noon, Agents: 2, Rows: []*Row{&row, &row}, Failures: []AgentFailure{{evil, evil, evil}}, Stale: []AgentFailure{{evil, evil, evil}}, ListError: evil,
		Pending: &PendingSummary{Count: 1, Reasons: []page.ReasonCount{{Reason: evil, Count: 1}}},
	}
	for _, reading := range []FleetState{reading, {At: noon, PendingError: evil}, {At: noon, Pending: &PendingSummary{Unread: []string{evil}}}} {
		reading.Nodes = []NodeState{{Node: evil, Agent: evil, State: evil}}
		reading.All = []*Device{{NodeDevice: page.NodeDevice{UUID: evil, ParentName: evil, Device: evil, Driver: evil, Pool: evil, Model: evil, PluginPods: []string{evil}}, Node: evil, health: "degraded", reasons: []string{evil}}}
		if reading.Pending != nil {
			reading.Pending.refs = []page.PendingRef{{Namespace: evil, Pod: evil, PodClaim: evil, Claim: evil, Class: evil, Reason: evil, Since: noon, Requests: []page.RequestCounts{{Request: evil}}}}
		}
		lines := Draw(reading, Order{}, Look{Glyphs: unicodeGlyphs()})
		s := testScreen(reading, 80, 60)
		for range s.views {
			lines = append(append(lines, linesOf(s)...), linesOf(s.pressed("enter"))...)
			s.pressed("esc", "/")
			s.write(evil)
			lines = append(lines, linesOf(s.pressed())...)
			s.pressed("enter")
			lines = append(lines, linesOf(s)...)
			s.pressed("esc", "tab")
		}
		for _, line := range lines {
			if at := strings.IndexFunc(line, isControl); at >= 0 {
				t.Fatalf("%q reaches the terminal in %q", line[at:], line)
			}
		}
		text, err := encode(reading, Order{})
		if err != nil {
			t.Fatal(err)
		}
		if at := strings.IndexFunc(strings.ReplaceAll(string(text), "\n", ""), controls); at >= 0 {
			t.Fatalf("%q reaches the terminal in JSON", text[at:at+8])
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
	lines := strings.Join(Draw(FleetState{At: noon, Rows: []*Row{{Claim: "c"}}}, Order{}, Look{Glyphs: asciiGlyphs()}), "\n")
	if strings.Contains(lines, "0") && strings.Contains(lines, "0%") {
		t.Errorf("there is a zero:\n%s", lines)
	}
	zero := 0.0
	lines = strings.Join(Draw(FleetState{At: noon, Rows: []*Row{{Claim: "c", ClaimGauges: page.ClaimGauges{Utilization: &zero}}}}, Order{}, Look{Glyphs: asciiGlyphs()}), "\n")
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
	for i, name := range []string{"claims", "devices", "workloads", "pending", "nodes"} {
		b.Run(name, func(b *testing.B) {
			s := testScreen(FleetState{}, 160, 50)
			s.fleet, s.live.Look.Styled = fleet, true
			s.open(i)
			for b.Loop() {
				s.take()
				s.table = itemTable{}
				if s.draw(); len(s.frame.lines) != 50 {
					b.Fatal(len(s.frame.lines))
				}
			}
		})
	}
	b.Run("select", func(b *testing.B) {
		s := testScreen(FleetState{}, 160, 50)
		s.fleet = fleet
		s.take()
		for b.Loop() {
			s.pressed("down")
		}
	})
	b.Run("history", func(b *testing.B) {
		reading, history := fleet.Reading(noon, Wanted{}), newHistory()
		for b.Loop() {
			history.observe(&reading)
		}
	})
}

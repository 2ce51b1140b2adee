package top

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"go.uber.org/goleak"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of the documents of internal/page.
var noon = time.Unix(1795168800, 0).UTC()

// withReplies returns an agent's answer: a golden document of internal/page.
func withReplies(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../page/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// claims returns an agent's answer at noon.
func claims(t testing.TB, name string) AgentReport {
	t.Helper()
	answer, err := decodeClaims(withReplies(t, name), noon)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// testReading returns the reading of three agents and the cluster role; a
// fourth agent does not answer.
func testReading(t testing.TB) FleetState {
	t.Helper()
	fleet := NewFleet()
	a, b, c, d := Agent{Name: "monitoring/dra-exporter-node-a"}, Agent{Name: "monitoring/dra-exporter-node-b"},
		Agent{Name: "monitoring/dra-exporter-node-c", Node: "node-c"}, Agent{Name: "monitoring/dra-exporter-node-d", Node: "node-d"}
	fleet.Expect([]Agent{a, b, c, d})
	fleet.Set(Reply{Agent: a, Answer: claims(t, "claims.json")})
	sharing := claims(t, "sharing.json")
	sharing.Node = "node-b"
	for i := range sharing.Rows {
		sharing.Rows[i].Node = "node-b"
	}
	sharing.SampledAt = noon.Add(-5 * time.Minute)
	fleet.Set(Reply{Agent: b, Answer: sharing})
	fleet.Set(Reply{Agent: c, Err: errTimeout})
	waiting, err := decodePending(withReplies(t, "pending.json"))
	fleet.SetPending(&waiting, err)
	return fleet.Reading(noon, Wanted{})
}

// fullReading is testReading with all devices of the first agent.
func fullReading(t testing.TB) FleetState {
	t.Helper()
	reading := testReading(t)
	answer := claims(t, "devices.json")
	for i := range answer.All {
		reading.All = append(reading.All, &answer.All[i])
	}
	reading.Unlisted = 1
	return reading
}

// testScreen returns a display of a reading, without styles, on a terminal of
// this size.
func testScreen(reading FleetState, width, height int) *screen {
	now := clock.Instant{Wall: noon}
	s := newScreen(&Live{Watch: &Watch{}, Clock: func() clock.Instant { return now }, Look: Look{Bars: true, Glyphs: unicodeGlyphs()}})
	s.reading, s.width, s.height = reading, width, height
	s.draw()
	return s
}

// linesOf is the lines of the frame without the style of what is selected.
func linesOf(s *screen) []string {
	lines := slices.Clone(s.frame.lines)
	for i := range lines {
		lines[i] = strings.NewReplacer(styleReverse, "", styleEnd, "").Replace(lines[i])
	}
	return lines
}

// pressed sends keys by their names.
func (s *screen) pressed(names ...string) *screen {
	special := map[string]tea.Key{
		"tab": {Code: tea.KeyTab}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape},
		"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "pgup": {Code: tea.KeyPgUp}, "pgdown": {Code: tea.KeyPgDown},
		"home": {Code: tea.KeyHome}, "end": {Code: tea.KeyEnd}, "backspace": {Code: tea.KeyBackspace}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl},
	}
	for _, name := range names {
		key, is := special[name]
		if !is {
			key = tea.Key{Code: []rune(name)[0], Text: name}
		}
		s.Update(tea.KeyPressMsg(key))
	}
	s.draw()
	return s
}

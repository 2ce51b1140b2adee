package top

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// The frames of all views, the details and the help, on a small and a wide
// terminal.
func TestFrames(t *testing.T) {
	reading := fullReading(t)
	for _, size := range [][2]int{{80, 24}, {160, 40}} {
		s := testScreen(reading, size[0], size[1])
		for i := range 3 {
			reading.At = noon.Add(time.Duration(i-2) * time.Second)
			s.history.observe(&reading)
		}
		for _, v := range s.views {
			metrictest.CompareGolden(t, fmt.Sprintf("testdata/%s-%d.txt", v.name, size[0]), golden(s))
			metrictest.CompareGolden(t, fmt.Sprintf("testdata/%s-detail-%d.txt", v.name, size[0]), golden(s.pressed("down", "enter")))
			s.pressed("esc", "tab")
		}
		metrictest.CompareGolden(t, fmt.Sprintf("testdata/help-%d.txt", size[0]), golden(s.pressed("?")))
	}
}

// golden is the frame; the selected line and the current view are marked.
func golden(s *screen) string {
	return strings.NewReplacer(styleReverse, "[", styleEnd, "]").Replace(strings.Join(s.frame.lines, "\n")) + "\n"
}

// No frame is larger than the terminal, however small that is, and where there
// is room for items there are some.
func TestFramesFit(t *testing.T) {
	s := testScreen(fullReading(t), 1, 1)
	for height := 1; height <= 40; height += 3 {
		for columns := 1; columns <= 230; columns += 13 {
			s.Update(tea.WindowSizeMsg{Width: columns, Height: height})
			for range s.views {
				for _, keys := range [][]string{{"enter"}, {"esc", "?"}, {"?", "/", "g", "enter"}, {"esc", "tab"}} {
					s.pressed(keys...)
					if len(s.frame.lines) > height || height > 6 && s.frame.visible < 2 {
						t.Fatalf("%d lines, %d for items on a terminal of %d", len(s.frame.lines), s.frame.visible, height)
					}
					for _, line := range linesOf(s) {
						if got := utf8.RuneCountInString(line); got > columns {
							t.Fatalf("a line of %d on a terminal of %d: %q", got, columns, line)
						}
					}
				}
			}
		}
	}
}

// At 80 columns the health, the pod and the utilization are shown.
func TestColumnsAt80(t *testing.T) {
	s := testScreen(fullReading(t), 80, 24)
	for _, v := range s.views {
		var titles []string
		for _, c := range s.rows().columns {
			titles = append(titles, c.title)
		}
		want := []string{"HEALTH", "PODS", "UTIL"}
		if v.name == "pending" {
			want = []string{"POD", "AGE", "REASON"}
		}
		for _, title := range want {
			if !slices.Contains(titles, title) {
				t.Errorf("%s shows %v, not %s", v.name, titles, title)
			}
		}
		s.pressed("tab")
	}
}

// selected is the name of the selected item.
func (s *screen) selectedName() string {
	items := s.rows().items
	if len(items) == 0 {
		return ""
	}
	return items[s.places[s.current].selected].name
}

// simpleReading has claims c0, c1, …, with these utilizations.
func simpleReading(utilizations ...float64) FleetState {
	reading := FleetState{At: noon, Agents: 1, Answered: 1}
	for i, ratio := range utilizations {
		reading.Rows = append(reading.Rows, &Row{
			Node: "n", Namespace: "ns", Claim: fmt.Sprintf("c%d", i), UUID: fmt.Sprintf("u%d", i),
			ClaimGauges: page.ClaimGauges{Utilization: &ratio}, Users: []User{{Pod: "p", Kind: "Job", Workload: "j"}}, Pods: []string{"p"},
		})
	}
	return reading
}

// show shows another reading.
func (s *screen) show(reading FleetState) {
	s.reading, s.table.items = reading, nil
	s.draw()
}

// What keys do.
func TestKeys(t *testing.T) {
	many := make([]float64, 100)
	for i := range many {
		many[i] = 1 - float64(i)/200
	}
	for keys, want := range map[string]string{
		"":                   "claims c0",
		"down":               "claims c1",
		"j j k":              "claims c1",
		"end":                "claims c99",
		"G k":                "claims c98",
		"end home":           "claims c0",
		"pgdown":             "claims c19",
		"pgdown pgup":        "claims c0",
		"up":                 "claims c0",
		"S":                  "claims c99",
		"s s s s s s s":      "claims c0 name",
		"s s s s s s s s":    "claims c0",
		"tab":                "devices u0",
		"shift+tab":          "nodes ",
		"5 tab":              "claims c0",
		"3":                  "workloads j",
		"4":                  "pending ",
		"enter":              "claims c0 detail",
		"down enter esc":     "claims c1",
		"enter tab":          "devices u0",
		"?":                  "claims c0 help",
		"? x":                "claims c0",
		"/ c 7 7 enter":      "claims c77 /c77",
		"/ c 7 7 esc":        "claims c0",
		"/ c 7 7 enter esc":  "claims c0",
		"/ c 7 backspace":    "claims c0 /c typing",
		"/ q ?":              "claims  /q? typing",
		"/ c 7 7 enter 2":    "devices u0",
		"p":                  "claims c0 paused",
		"q":                  "claims c0 quit",
		"/ ctrl+c":           "claims c0 typing quit",
		"enter q":            "claims c0 detail quit",
		"? q":                "claims c0 help quit",
		"/ z z enter enter":  "claims  /zz",
		"z":                  "claims c0",
		"enter down G g esc": "claims c0",
	} {
		s := testScreen(simpleReading(many...), 80, 24)
		s.pressed(strings.Fields(keys)...)
		got := s.views[s.current].name + " " + s.selectedName()
		place := s.places[s.current]
		for _, of := range []struct {
			is   bool
			text string
		}{
			{s.current == 0 && place.order.Key == ByName, " name"}, {place.filter != "", " /" + place.filter}, {s.typing, " typing"}, {s.mode == showDetail, " detail"},
			{s.mode == showHelp, " help"}, {s.paused, " paused"}, {s.quit, " quit"},
		} {
			if of.is {
				got += of.text
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", keys, got, want)
		}
	}
}

// The selection follows its item when the order changes. Until someone moves it,
// it is the first item.
func TestSelectionFollows(t *testing.T) {
	s := testScreen(simpleReading(0.9, 0.8, 0.7), 80, 24)
	s.show(simpleReading(0.1, 0.8, 0.7))
	if got := s.selectedName(); got != "c1" {
		t.Errorf("untouched, %s is selected", got)
	}
	s.pressed("down") // c2
	for _, reading := range []FleetState{simpleReading(0.1, 0.2, 0.7), simpleReading(0.9, 0.8, 0.1), simpleReading(0.9, 0.2, 0.3)} {
		if s.show(reading); s.selectedName() != "c2" {
			t.Errorf("%s is selected", s.selectedName())
		}
	}
	s.pressed("enter")
	s.show(simpleReading(0.9, 0.2))
	if text := strings.Join(linesOf(s), "\n"); !strings.Contains(text, "claim ns/c2") || !strings.Contains(text, "not reported any more") {
		t.Errorf("the detail of a claim that has gone:\n%s", text)
	}
	s.pressed("esc")
	if s.show(simpleReading(0.9, 0.2)); s.selectedName() != "c1" {
		t.Errorf("after its end %s is selected", s.selectedName())
	}
	if s.show(FleetState{}); s.selectedName() != "" {
		t.Error("nothing is selected of nothing")
	}
}

// The mouse selects, opens, scrolls and switches.
func TestMouse(t *testing.T) {
	s := testScreen(simpleReading(0.9, 0.8, 0.7, 0.6, 0.5), 80, 24)
	click := func(x, y int) { s.Update(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}) }
	line := slices.IndexFunc(linesOf(s), func(line string) bool { return strings.Contains(line, "c2 ") })
	if click(5, line); s.selectedName() != "c2" || s.mode != showTable {
		t.Errorf("%s is selected", s.selectedName())
	}
	if click(5, line); s.mode != showDetail {
		t.Error("a second click does not open")
	}
	s.pressed("esc")
	if s.Update(tea.MouseWheelMsg{Button: tea.MouseWheelUp}); s.selectedName() != "c0" {
		t.Errorf("the wheel selects %s", s.selectedName())
	}
	for _, at := range [][2]int{{5, 23}, {5, 0}, {79, 22}, {-1, -1}, {500, 500}} {
		if click(at[0], at[1]); s.mode != showTable || s.current != 0 {
			t.Errorf("a click at %v does something", at)
		}
	}
	tab := s.frame.tabs[1]
	if click(tab.from, s.frame.tabsLine); s.views[s.current].name != "devices" {
		t.Errorf("%s is shown", s.views[s.current].name)
	}
}

// Free devices are shown; what is not known is not called free.
func TestFreeDevices(t *testing.T) {
	reading := fullReading(t)
	holders := map[string]int{}
	for _, one := range deviceItems(&reading) {
		holders[one.holder()]++
		if one.holder() == "" {
			t.Errorf("nothing is said of %s", one.name)
		}
	}
	if holders["free"] == 0 || holders["device plugin"] == 0 || holders["partitions"] == 0 {
		t.Errorf("%v", holders)
	}
}

// What is shared by claims is added once.
func TestUsage(t *testing.T) {
	shared := page.ClaimGauges{Utilization: new(0.5), UtilizationAttribution: page.NotSplit, MemoryUsed: new(10.0), MemoryAttribution: page.NotSplit, Power: new(100.0)}
	rows := []*Row{
		{Node: "n", UUID: "a", Claim: "x", Attribution: page.NotSplit, ClaimGauges: shared, Idle: new(7.0), Health: "healthy", Cost: new(1.0), Currency: "EUR"},
		{Node: "n", UUID: "a", Claim: "y", Attribution: page.NotSplit, ClaimGauges: shared, Idle: new(5.0), Health: "degraded", Reasons: []string{"r"}},
		{Node: "m", UUID: "a", Claim: "y", ClaimGauges: page.ClaimGauges{Utilization: new(1.0)}, Idle: new(9.0), Cost: new(2.0), Currency: "EUR"},
	}
	of := sumUsage(rows)
	if *of.utilization != 0.75 || *of.memory != 10 || *of.power != 100 || *of.devices != 2 || of.claims != 2 || *of.idle != 5 || of.health != "degraded" || *of.cost != 3 {
		t.Errorf("%+v", of)
	}
	rows[2].Idle, rows[2].Currency = nil, "USD"
	if of = sumUsage(rows); of.idle != nil || of.cost != nil {
		t.Errorf("%+v", of)
	}
	if of = sumUsage(nil); of.utilization != nil || of.power != nil || *of.devices != 0 || of.health != "" {
		t.Errorf("%+v", of)
	}
}

// The history is bounded, has gaps where nothing was known, and forgets what has
// gone.
func TestHistory(t *testing.T) {
	h, reading := newHistory(), simpleReading(0.5)
	keys := []seriesKey{reading.Rows[0].seriesKey()}
	utilization := func(s *sampleSeries) []sample { return s.utilization }
	h.observe(&reading)
	h.observe(&FleetState{})
	h.observe(&reading)
	got := h.mean(keys, utilization)
	if len(got) != 3 || got[0] != 0.5 || !math.IsNaN(got[1]) || got[2] != 0.5 {
		t.Errorf("%v", got)
	}
	if lines := unicodeGlyphs().graph(got, 4, 2); lines[0] != "    " || lines[1] != " █ █" {
		t.Errorf("%q", lines)
	}
	for range 2 * maxSamples {
		h.observe(&reading)
	}
	if of := h.series[keys[0]]; len(of.utilization) != maxSamples || len(of.memory) != maxSamples || len(h.times) != maxSamples {
		t.Errorf("%d samples of %d", len(of.utilization), len(h.times))
	}
	for range maxSamples {
		h.observe(&FleetState{})
	}
	if len(h.series) != 0 {
		t.Errorf("%d series of nothing", len(h.series))
	}
	more := FleetState{}
	for i := range maxSeries + 10 {
		more.Rows = append(more.Rows, &Row{UUID: fmt.Sprint(i)})
	}
	if h.observe(&more); len(h.series) != maxSeries {
		t.Errorf("%d series", len(h.series))
	}
}

// Time that passes takes readings, unless the display is paused.
func TestPause(t *testing.T) {
	s := testScreen(FleetState{}, 80, 24)
	now := s.live.Clock()
	s.live.Clock = func() clock.Instant { return now }
	agent := Agent{Name: "a"}
	answer := func(name string) {
		s.Update(FleetChange(func(f *Fleet) {
			f.Expect([]Agent{agent})
			f.Set(Reply{Agent: agent, Answer: AgentReport{Node: "n", Rows: []Row{{Claim: name, Node: "n"}}}})
		}))
		s.passTime()
		s.draw()
	}
	s.read = now
	if answer("before"); s.selectedName() != "before" {
		t.Fatalf("%q is shown", s.selectedName())
	}
	s.pressed("p")
	if answer("after"); s.selectedName() != "before" || !strings.Contains(strings.Join(linesOf(s), "\n"), "paused") {
		t.Errorf("%q is shown in a pause", s.selectedName())
	}
	if s.pressed("p"); s.selectedName() != "after" {
		t.Errorf("%q is shown after a pause", s.selectedName())
	}
	if len(s.history.times) == 0 {
		t.Error("no sample was taken")
	}
}

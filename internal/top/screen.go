package top

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// screen is the state of the display. Only the library's loop uses it.
type screen struct {
	live    *Live
	views   []view
	places  []viewPlace // of each view
	current int         // index of the view
	width   int
	height  int

	fleet   *Fleet
	history *history
	reading FleetState
	changed bool          // the fleet, since the reading
	read    clock.Instant // when the reading was taken
	sampled clock.Instant // when the newest sample was taken

	table  itemTable // of the current view
	mode   mode
	shown  *item // in detail
	scroll int   // lines of the detail that are scrolled past
	paused bool
	typing bool // the filter is being written
	quit   bool

	frame frame // that is shown
}

// mode is what is shown.
type mode int

const (
	showTable mode = iota
	showDetail
	showHelp
)

// viewPlace is where a person is in a view.
type viewPlace struct {
	order    Order
	filter   string
	key      string // of the selected item; empty: the first, whichever that is
	selected int    // its index
	offset   int    // items that are scrolled past
}

const (
	frameWait = 200 * time.Millisecond // answers within this time are one frame
	maxFilter = 100                    // bytes
	wheelStep = 3                      // lines
)

func newScreen(live *Live) *screen {
	s := &screen{live: live, views: views(), fleet: NewFleet(), history: newHistory()}
	for _, v := range s.views {
		s.places = append(s.places, viewPlace{order: Order{Key: v.keys[0]}})
	}
	for i, v := range s.views {
		if slices.Contains(v.keys, live.Order.Key) {
			s.places[i].order = live.Order
		}
	}
	s.take()
	return s
}

// tick is the message that time has passed.
type tick struct{}

func nextTick() tea.Cmd { return tea.Tick(frameWait, func(time.Time) tea.Msg { return tick{} }) }

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return nextTick() }

// Update implements tea.Model.
func (s *screen) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case FleetChange:
		message(s.fleet)
		s.changed = true
		return s, nil
	case tick:
		if !s.passTime() {
			return s, nextTick()
		}
		s.draw()
		return s, nextTick()
	case tea.WindowSizeMsg:
		s.width, s.height = message.Width, message.Height
		s.table.columns = nil
	case tea.KeyPressMsg:
		if message.String() == "ctrl+l" {
			return s, tea.ClearScreen
		}
		s.press(message)
	case tea.PasteMsg:
		if s.typing {
			s.write(message.Content)
		}
	case tea.MouseWheelMsg:
		s.wheel(message.Button)
	case tea.MouseClickMsg:
		s.click(message.X, message.Y)
	default:
		return s, nil
	}
	if s.quit {
		return s, tea.Quit
	}
	s.draw()
	return s, nil
}

// View implements tea.Model.
func (s *screen) View() tea.View {
	shown := tea.NewView(strings.Join(s.frame.lines, "\n"))
	shown.AltScreen, shown.MouseMode = true, tea.MouseModeCellMotion
	return shown
}

// passTime takes a new reading if there is one, or if the time of day has moved,
// and reports whether there is something new to draw. A pause keeps the reading,
// but not the history.
func (s *screen) passTime() bool {
	now := s.live.Clock()
	if s.read.IsZero() || now.Since(s.read) < time.Second && !s.changed {
		return false
	}
	previous := s.reading
	s.take()
	if s.sampled.IsZero() || now.Since(s.sampled) >= max(s.live.Watch.Interval, time.Second) {
		s.sampled = now
		s.history.observe(&s.reading)
	}
	if s.paused {
		s.reading = previous
		return false
	}
	s.table.items = nil
	return true
}

// take takes a reading.
func (s *screen) take() {
	s.read = s.live.Clock()
	s.reading, s.changed = s.fleet.Reading(s.read.Wall, s.live.Wanted), false
}

func (s *screen) press(key tea.KeyPressMsg) {
	name := key.String()
	switch {
	case name == "ctrl+c" || name == "ctrl+d":
		s.quit = true
	case s.typing:
		s.typed(name, key.Text)
	case name == "q":
		s.quit = true
	case s.mode == showHelp: // any key closes it
		s.mode = showTable
	case name == "?":
		s.mode = showHelp
	case s.switched(name):
	case name == "p":
		if s.paused = !s.paused; !s.paused {
			s.take()
			s.table.items = nil
		}
	case s.mode == showDetail:
		s.detailKey(name)
	default:
		s.tableKey(name)
	}
}

// switched switches to another view, if the key does.
func (s *screen) switched(name string) bool {
	next := s.current
	switch name {
	case "tab":
		next++
	case "shift+tab":
		next += len(s.views) - 1
	default:
		if len(name) != 1 || name[0] < '1' || int(name[0]-'1') >= len(s.views) {
			return false
		}
		next = int(name[0] - '1')
	}
	s.open(next % len(s.views))
	return true
}

func (s *screen) open(view int) {
	s.current, s.mode, s.table = view, showTable, itemTable{}
}

func (s *screen) tableKey(name string) {
	place := &s.places[s.current]
	page := max(s.frame.visible-1, 1)
	switch name {
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "pgup", "ctrl+b":
		s.move(-page)
	case "pgdown", "ctrl+f", "space":
		s.move(page)
	case "home", "g":
		s.selectItem(0)
		place.key = ""
	case "end", "G":
		s.selectItem(len(s.rows().items) - 1)
	case "enter":
		s.openDetail()
	case "esc":
		s.filter("")
	case "/":
		s.typing = true
	case "s":
		keys := s.views[s.current].keys
		next := (slices.Index(keys, place.order.Key) + 1) % len(keys)
		place.order, s.table.items = Order{Key: keys[next]}, nil
	case "S":
		place.order.Reversed, s.table.items = !place.order.Reversed, nil
	}
}

// move moves the selection by so many lines.
func (s *screen) move(lines int) {
	s.rows() // finds the selected item
	s.selectItem(s.places[s.current].selected + lines)
}

func (s *screen) selectItem(index int) {
	place, items := &s.places[s.current], s.rows().items
	if len(items) == 0 {
		return
	}
	place.selected = max(min(index, len(items)-1), 0)
	place.key = items[place.selected].key
}

func (s *screen) openDetail() {
	if items := s.rows().items; len(items) > 0 {
		s.selectItem(s.places[s.current].selected)
		s.shown, s.mode, s.scroll = items[s.places[s.current].selected], showDetail, 0
	}
}

func (s *screen) detailKey(name string) {
	page := max(s.frame.visible-1, 1)
	switch name {
	case "esc", "backspace", "left", "h":
		s.mode = showTable
	case "up", "k":
		s.scroll--
	case "down", "j":
		s.scroll++
	case "pgup", "ctrl+b":
		s.scroll -= page
	case "pgdown", "ctrl+f", "space":
		s.scroll += page
	case "home", "g":
		s.scroll = 0
	case "end", "G":
		s.scroll = s.frame.all
	}
}

// typed writes the filter; items are filtered as it grows.
func (s *screen) typed(name, text string) {
	filter := s.places[s.current].filter
	switch name {
	case "enter":
		s.typing = false
	case "esc":
		s.typing = false
		s.filter("")
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(filter)
		s.filter(filter[:len(filter)-size])
	default:
		s.write(text)
	}
}

// write appends to the filter what can be seen of a text.
func (s *screen) write(text string) {
	filter := s.places[s.current].filter
	for _, r := range text {
		if unicode.IsPrint(r) && len(filter)+utf8.RuneLen(r) <= maxFilter {
			filter += string(r)
		}
	}
	s.filter(filter)
}

func (s *screen) filter(text string) {
	s.places[s.current].filter, s.table.items = text, nil
}

func (s *screen) wheel(button tea.MouseButton) {
	lines := map[tea.MouseButton]int{tea.MouseWheelUp: -wheelStep, tea.MouseWheelDown: wheelStep}[button]
	switch s.mode {
	case showTable:
		s.move(lines)
	case showDetail:
		s.scroll += lines
	case showHelp:
	}
}

// click selects an item, opens the one that is selected, or switches the view.
func (s *screen) click(x, y int) {
	if y == s.frame.tabsLine {
		for i, tab := range s.frame.tabs {
			if x >= tab.from && x < tab.to {
				s.open(i)
			}
		}
		return
	}
	line := y - s.frame.top
	if s.mode != showTable || line < 0 || line >= s.frame.visible {
		return
	}
	place, items := &s.places[s.current], s.rows().items
	switch index := place.offset + line; {
	case index >= len(items):
	case index == place.selected && place.key != "":
		s.openDetail()
	default:
		s.selectItem(index)
	}
}

// itemTable is the items of a view, filtered and sorted, and the columns that fit.
type itemTable struct {
	items   []*item // nil: they are to be collected
	all     int     // items before the filter
	columns []placed
}

// rows returns the table of the current view, and finds the selected item in it.
func (s *screen) rows() *itemTable {
	view, place := &s.views[s.current], &s.places[s.current]
	if s.table.items == nil {
		all := view.items(&s.reading)
		words := strings.Fields(strings.ToLower(place.filter))
		chosen := make([]*item, 0, len(all))
		for _, i := range all {
			if len(words) == 0 || view.has(i, words, s.live.Look.Glyphs) {
				chosen = append(chosen, i)
			}
		}
		sortItems(chosen, place.order)
		s.table = itemTable{items: chosen, all: len(all)}
		s.find(place)
	}
	if s.table.columns == nil {
		look := s.live.Look
		look.Width = max(s.width, 1)
		s.table.columns = arrange(view.columns, s.table.items, look)
	}
	return &s.table
}

// find sets the index of the selected item. If it has gone, the selection stays
// where it was; until someone moves it, it is the first item.
func (s *screen) find(place *viewPlace) {
	items := s.table.items
	if place.key == "" {
		place.selected = 0
		return
	}
	if at := slices.IndexFunc(items, func(i *item) bool { return i.key == place.key }); at >= 0 {
		place.selected = at
		return
	}
	place.selected = max(min(place.selected, len(items)-1), 0)
	if s.mode == showTable && len(items) > 0 {
		place.key = items[place.selected].key
	}
}

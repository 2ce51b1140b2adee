package lint

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/queries"
)

// board is of a dashboard what rules look at.
type board struct {
	UID           string
	Title         string
	Description   string
	Tags          []string
	Editable      bool
	Refresh       string
	SchemaVersion int
	Time          struct{ From, To string }
	Panels        []panel
	Templating    struct{ List []variable }
	Annotations   struct{ List []annotation }
	Links         []topLink

	text      string                     // all of it
	top       map[string]json.RawMessage // its fields
	variables []queries.Variable         // what they ask for
	undecoded error                      // why there are none
}

type panel struct {
	ID              int
	Type            string
	Title           string
	Description     string
	Collapsed       bool
	Repeat          string  // the variable for each of whose values there is one
	Panels          []panel // of a row that is folded
	GridPos         struct{ X, Y, W, H int }
	Datasource      datasource
	Targets         []target
	Transformations []struct {
		ID      string
		Options json.RawMessage
	}
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Custom        struct {
				SpanNulls         json.RawMessage
				LineInterpolation string
				Stacking          struct{ Mode string }
			}
		}
		Overrides []override
	}
	Options struct {
		YAxis  struct{ Unit string }
		SortBy []struct{ DisplayName string }
	}
}

type override struct {
	Matcher struct {
		ID      string
		Options any
	}
	Properties []struct {
		ID    string
		Value any
	}
}

type target struct {
	RefID        string
	Expr         string
	LegendFormat string
	Interval     string // the least step
	Format       string
	Instant      bool
	Range        bool
	Datasource   datasource
}

type datasource struct{ Type, UID string }

type annotation struct {
	Name, Expr, TitleFormat string
	Enable                  bool
	Datasource              datasource
}

// topLink is a link above all panels.
type topLink struct {
	Type, URL, Placement  string
	Tags                  []string
	KeepTime, IncludeVars bool
	AsDropdown            bool
}

type variable struct {
	Name, Label, Type, Definition string
	Query                         any
	Refresh, Hide                 int
	Multi, IncludeAll             bool
	AllValue                      string
	Datasource                    datasource
}

// several says whether any number of its values may be chosen, which Grafana
// writes as a regular expression.
func (v variable) several() bool { return v.Multi || v.IncludeAll }

func decode(text []byte) (board, error) {
	b := board{text: string(text)}
	if err := json.Unmarshal(text, &b); err != nil {
		return board{}, fmt.Errorf("decode dashboard: %w", err)
	}
	if err := json.Unmarshal(text, &b.top); err != nil {
		return board{}, fmt.Errorf("decode dashboard: %w", err)
	}
	read, err := queries.Decode(text)
	b.variables, b.undecoded = read.Variables, err
	return b, nil
}

// all are the panels, rows left out, those in folded rows not.
func (b board) all() (panels []panel) {
	for _, p := range b.Panels {
		if p.Type == "row" {
			panels = append(panels, p.Panels...)
			continue
		}
		panels = append(panels, p)
	}
	return panels
}

// asked are all selectors of a panel's queries.
func (p panel) asked() (all []selector) {
	for _, t := range p.Targets {
		all = append(all, selectors(t.Expr)...)
	}
	return all
}

// classicSchema: what every Grafana imports and every sidecar provisions. The
// second schema has elements, and that before version 14 had rows.
func classicSchema(b board, say report) {
	for _, key := range []string{"rows", "elements", "spec", "apiVersion", "__inputs", "id"} {
		if value, ok := b.top[key]; ok && string(value) != "null" {
			say(b.Title, "a dashboard that is imported as it is has no %q", key)
		}
	}
	if len(b.Panels) == 0 {
		say(b.Title, "it has no panels")
	}
	if b.SchemaVersion < 36 {
		say(b.Title, "schema version %d: before 36 data sources had names in place of uids", b.SchemaVersion)
	}
}

func identity(b board, say report) {
	if !strings.HasPrefix(b.UID, "dra-") {
		say(b.Title, "uid %q does not begin with dra-", b.UID)
	}
	if !strings.HasPrefix(b.Title, "DRA / ") {
		say(b.Title, "the title does not begin with %q", "DRA / ")
	}
	if b.Description == "" {
		say(b.Title, "it has no description")
	}
	if !strings.Contains(strings.Join(b.Tags, " "), "dra-exporter") {
		say(b.Title, "it has no tag dra-exporter: the menu does not find it")
	}
	if b.Time.From == "" || b.Time.To != "now" {
		say(b.Title, "its time range does not end now")
	}
	if strings.HasSuffix(b.Refresh, "s") {
		say(b.Title, "it refreshes every %s; exporters are scraped less often", b.Refresh)
	}
}

// uneditable: what is changed in a provisioned dashboard is lost with its next
// version. Who imported it can make it editable in its settings, or copy it.
func uneditable(b board, say report) {
	if b.Editable {
		say(b.Title, "it can be edited, and the next version takes the changes away")
	}
}

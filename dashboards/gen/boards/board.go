package boards

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// tag is on every dashboard: the menu of each lists those that have it.
const tag = "dra-exporter"

// Board is one dashboard.
type Board struct {
	// UID is its identity in Grafana, in links and in alerts' dashboard_url.
	UID string
	// Title is what the menu shows.
	Title string

	description string
	from        string // of the time range, now-1h where empty
	variables   []cog.Builder[dashboard.VariableModel]
	marks       marks
	rows        []row
}

// row is a heading with its panels. The first row of a board has no heading: it
// answers the board's question. A folded row asks nothing until it is opened.
type row struct {
	title  string
	folded bool
	// repeat names a variable: there is a row for each of its values.
	repeat string
	panels []panel
}

// panel is what all builders of panels are.
type panel = cog.Builder[dashboard.Panel]

// All are the dashboards, in the order of their document.
func All() []Board {
	return []Board{
		overview(),
		claims(),
		claim(),
		workloads(),
		workload(),
		allocation(),
		allocationKubernetes(),
		capacity(),
		rightSizing(),
		reliability(),
		health(),
		node(),
		efficiency(),
		exporter(),
	}
}

// JSON is the dashboard as Grafana imports it (classic schema), with a newline at
// its end.
func (b Board) JSON() ([]byte, error) {
	built, err := b.build()
	if err != nil {
		return nil, fmt.Errorf("build dashboard %s: %w", b.UID, err)
	}
	text, err := json.MarshalIndent(struct {
		dashboard.Dashboard
		Annotations annotations `json:"annotations"` // in place of the SDK's
	}{built, annotations{b.marks.annotations()}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode dashboard %s: %w", b.UID, err)
	}
	return append(text, '\n'), nil
}

func (b Board) build() (dashboard.Dashboard, error) {
	from := b.from
	if from == "" {
		from = "now-1h"
	}
	builder := dashboard.NewDashboardBuilder(b.Title).
		Uid(b.UID).
		Description(b.description).
		Tags([]string{tag, "kubernetes"}).
		Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time(from, "now").
		Refresh("1m").
		Readonly().
		Variables(b.variables).
		Links([]cog.Builder[dashboard.DashboardLink]{menu()})
	for _, r := range b.rows {
		if err := r.addTo(builder); err != nil {
			return dashboard.Dashboard{}, err
		}
	}
	built, err := builder.Build()
	if err != nil {
		return dashboard.Dashboard{}, err
	}
	for i := range built.Links { // the SDK's default puts them into a menu, where Grafana 12.3 does not show all
		built.Links[i].Placement = nil
	}
	number := uint32(0)
	for _, p := range built.Panels {
		number = numbered(p, number)
	}
	return built, nil
}

// addTo puts the row and its panels below what is there. Panels of a row that is
// open stand beside its heading in the schema, those of a folded one in it.
func (r row) addTo(builder *dashboard.DashboardBuilder) error {
	if r.title != "" {
		heading := dashboard.NewRowBuilder(r.title).Collapsed(r.folded)
		if r.repeat != "" {
			heading.Repeat(r.repeat)
		}
		if r.folded {
			for _, p := range r.panels {
				heading.WithPanel(p)
			}
		}
		builder.WithRow(heading)
	}
	if r.folded && r.title == "" {
		return fmt.Errorf("a folded row has no title")
	}
	if !r.folded {
		for _, p := range r.panels {
			builder.WithPanel(p)
		}
	}
	return nil
}

// numbered gives a panel and those in it the next ids, which links to panels use.
func numbered(p dashboard.PanelOrRowPanel, last uint32) uint32 {
	if p.Panel != nil {
		last++
		p.Panel.Id = cog.ToPtr(last)
	}
	if p.RowPanel != nil {
		last++
		p.RowPanel.Id = last
		for i := range p.RowPanel.Panels {
			last++
			p.RowPanel.Panels[i].Id = cog.ToPtr(last)
		}
	}
	return last
}

// menu lists all dashboards of ours, with the time range and the variables kept.
func menu() *dashboard.DashboardLinkBuilder {
	return dashboard.NewDashboardLinkBuilder("DRA").
		Type(dashboard.DashboardLinkTypeDashboards).
		Tags([]string{tag}).
		AsDropdown(true).
		KeepTime(true).
		IncludeVars(true)
}

// source is the data source that the reader chose.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// Name is that of the file without .json: claims.
func (b Board) Name() string { return strings.TrimPrefix(b.UID, "dra-") }

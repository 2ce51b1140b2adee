package boards

import (
	"cmp"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/table"
)

// key is a column of a label.
type key struct {
	label string
	title string
	links []link
	// hidden columns distinguish rows and are not shown.
	hidden bool
	// narrow columns have space for their titles alone, where most cells are empty.
	narrow bool
	// last puts the column behind the values: for what only some of them have, such
	// as the currency of costs.
	last bool
}

// column is a column of values: one instant query. Its result has the labels of
// the listing's keys and no others, so that the rows of all columns meet.
type column struct {
	title string
	expr  string
	unit  string
	// more are properties of Grafana's fields: thresholds, mappings, cell options.
	more []dashboard.DynamicConfigValue
	// hidden columns select or order rows and are not shown.
	hidden bool
}

// tableHeight is that of a table in which a number of rows can be seen at once. A row
// has 36 pixels; title, header and frame have 70; a unit of the grid is 38 with its gap.
func tableHeight(rows uint32) uint32 { return (36*rows + 70 + 8 + 37) / 38 }

// listing is a table of now: a row for each set of keys, of which a number can be seen
// at once. It is ordered by the first column of values, the greatest first. A column
// that no query answers is not there; a cell of which nothing is known is empty.
func listing(width, rows uint32, what about, keys []key, columns ...column) *table.PanelBuilder {
	queries := make([]query, len(columns))
	for i, c := range columns {
		queries[i] = at(c.expr)
	}
	builder := table.NewPanelBuilder().
		Title(what.title).
		Description(what.description()).
		Unit(what.unit).
		NoValue(what.orNone(noRows)).
		Datasource(source()).
		Span(width).
		Height(tableHeight(rows)).
		Targets(lettered(queries)).
		CellHeight(common.TableCellHeightSm).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{})).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	if columns[0].hidden { // the table itself orders by what it shows alone
		builder.WithTransformation(greatestFirst("Value #A"))
	} else {
		builder.SortBy(byColumn(columns[0].title, true))
	}
	builder.WithTransformation(arranged(keys, columns))
	titles := map[string]string{}
	for _, k := range keys {
		if !k.hidden {
			titles[k.label] = k.title
		}
	}
	builder.OverrideByRegexp("/.*/", []dashboard.DynamicConfigValue{property("noValue", "")})
	for _, k := range keys {
		if !k.hidden {
			builder.OverrideByName(k.title, k.properties(width, titles))
		}
	}
	for _, c := range columns {
		if !c.hidden {
			builder.OverrideByName(c.title, c.properties(what.unit))
		}
	}
	return builder
}

// byColumn orders a table by a column that it shows.
func byColumn(title string, greatestFirst bool) []cog.Builder[common.TableSortByFieldState] {
	return []cog.Builder[common.TableSortByFieldState]{
		common.NewTableSortByFieldStateBuilder().DisplayName(title).Desc(greatestFirst),
	}
}

// greatestFirst orders rows by a field, whether or not it is shown later.
func greatestFirst(field string) dashboard.DataTransformerConfig {
	return dashboard.DataTransformerConfig{Id: "sortBy", Options: map[string]any{
		"sort": []map[string]any{{"field": field, "desc": true}},
	}}
}

// arranged names the columns and puts them into the order in which they are
// listed, keys first. Grafana calls the values of query A "Value #A", or "Value"
// where there is no other.
func arranged(keys []key, columns []column) dashboard.DataTransformerConfig {
	order, names, excluded := map[string]int{}, map[string]string{}, map[string]bool{"Time": true}
	place := func(last bool) {
		for _, k := range keys {
			if k.last != last {
				continue
			}
			order[k.label], names[k.label] = len(order), k.title
			if k.hidden {
				excluded[k.label] = true
			}
		}
	}
	place(false)
	for i, c := range columns {
		field := fmt.Sprintf("Value #%s", letter(i))
		if len(columns) == 1 {
			field = "Value"
		}
		order[field], names[field] = len(order), c.title
		if c.hidden {
			excluded[field] = true
		}
	}
	place(true)
	return dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"indexByName": order, "renameByName": names, "excludeByName": excluded,
	}}
}

func (k key) properties(table uint32, titles map[string]string) []dashboard.DynamicConfigValue {
	all := []dashboard.DynamicConfigValue{
		property("custom.minWidth", k.width(table)),
		property("custom.filterable", true),
	}
	if len(k.links) > 0 {
		links := make([]map[string]any, len(k.links))
		for i, l := range k.links {
			links[i] = l.ofRow(titles)
		}
		all = append(all, property("links", links))
	}
	return all
}

func (c column) properties(unit string) []dashboard.DynamicConfigValue {
	all := []dashboard.DynamicConfigValue{property("custom.minWidth", c.width(cmp.Or(c.unit, unit)))}
	if c.unit != "" {
		all = append(all, property("unit", c.unit))
	}
	return append(all, c.more...)
}

// gauge draws a ratio as a bar in its cell. Without the mapping Grafana draws the
// bar of 0, in the colour of 0, where nothing is known.
func gauge(thresholds cog.Builder[dashboard.ThresholdsConfig]) []dashboard.DynamicConfigValue {
	return append(coloured(thresholds, "gauge"), property("min", 0), property("max", 1), property("mappings", []dashboard.ValueMapping{
		{SpecialValueMap: &dashboard.SpecialValueMap{Type: "special", Options: dashboard.DashboardSpecialValueMapOptions{
			Match:  dashboard.SpecialValueMatchNullAndNan,
			Result: dashboard.ValueMappingResult{Text: cog.ToPtr(""), Color: cog.ToPtr("transparent")},
		}}},
	}))
}

// tinted writes the value in its threshold's colour.
func tinted(thresholds cog.Builder[dashboard.ThresholdsConfig]) []dashboard.DynamicConfigValue {
	return coloured(thresholds, "color-text")
}

func coloured(thresholds cog.Builder[dashboard.ThresholdsConfig], cell string) []dashboard.DynamicConfigValue {
	built, err := thresholds.Build()
	if err != nil {
		built = dashboard.ThresholdsConfig{} // no colours; the lint asks for steps
	}
	options := map[string]any{"type": cell}
	if cell == "gauge" {
		options["mode"] = "basic"
	}
	return []dashboard.DynamicConfigValue{
		property("thresholds", built),
		property("color", map[string]any{"mode": "thresholds"}),
		property("custom.cellOptions", options),
	}
}

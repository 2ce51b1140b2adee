package boards

import (
	"cmp"
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/bargauge"
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/text"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// columnsOfGrid is the whole width.
const columnsOfGrid = 24

// What a panel shows instead of values, where it says nothing of its own; its
// description says why.
const (
	noData = "no data"
	noRows = "nothing to list"
	// noneSeen is for what should not be there. It is true also where nothing looks
	// for it.
	noneSeen = "none seen"
)

// about is what a panel says of itself.
type about struct {
	// title is a noun phrase. It names the range if the panel is about the range.
	title string
	// unit is one of the SDK's package units.
	unit string
	// reads says how to read the panel, in whole sentences.
	reads string
	// empty says when there is no data, from "no …" on, without a full stop.
	empty string
	// none is what the panel shows then, for those where that is good.
	none string
}

func (a about) description() string { return a.reads + "\n\nNo data: " + a.empty + "." }

func (a about) orNone(text string) string { return cmp.Or(a.none, text) }

// query is one question to Prometheus.
type query = *prometheus.DataqueryBuilder

// minStep is how often the shipped monitors scrape, fiveMinutes how often increases
// are recorded. It is the least step of queries, and a quarter of $__rate_interval: by
// the data source's default, 15 s, a rate had two samples or one, and came and went.
const (
	minStep     = "30s"
	fiveMinutes = "5m"
)

// recorded asks for increases of five minutes, one point for each.
func recorded(expr, legend string) query { return over(expr, legend).Interval(fiveMinutes) }

// over asks for the whole range; the legend is a template of labels.
func over(expr, legend string) query {
	return prometheus.NewDataqueryBuilder().
		Interval(minStep).
		Expr(promql(expr)).
		LegendFormat(legend).
		Range().
		Datasource(source()).
		EditorMode(prometheus.QueryEditorModeCode)
}

// at asks for the end of the range alone: for tables and single numbers, which
// are cheap also where there are thousands of rows.
func at(expr string) query {
	return prometheus.NewDataqueryBuilder().
		Interval(minStep).
		Expr(promql(expr)).
		LegendFormat("__auto").
		Instant().
		Format(prometheus.PromQueryFormatTable).
		Datasource(source()).
		EditorMode(prometheus.QueryEditorModeCode)
}

// lettered gives queries the names A, B, C … in their order.
func lettered(queries []query) []cog.Builder[variants.Dataquery] {
	all := make([]cog.Builder[variants.Dataquery], len(queries))
	for i, q := range queries {
		all[i] = q.RefId(letter(i))
	}
	return all
}

func letter(i int) string { return string(rune('A' + i)) }

// number is one big number of now, or one for each series of the answer.
func number(width uint32, what about, queries ...query) *stat.PanelBuilder {
	for _, q := range queries {
		q.Format(prometheus.PromQueryFormatTimeSeries)
	}
	return stat.NewPanelBuilder().
		Title(what.title).
		Description(what.description()).
		Unit(what.unit).
		NoValue(what.orNone(noData)).
		Mappings(uncoloured()).
		Datasource(source()).
		Span(width).
		Height(4).
		Targets(lettered(queries)).
		GraphMode(common.BigValueGraphModeNone).
		ColorMode(common.BigValueColorModeValue).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// timeline is lines over time. What has the same unit belongs into one. Lines are
// not filled: where many overlap, that is mud. A line ends with its claim and is not
// drawn to the next; a value without neighbours is a point.
func timeline(width uint32, what about, queries ...query) *timeseries.PanelBuilder {
	legend := beside()
	if width < columnsOfGrid {
		legend = below()
	}
	return timeseries.NewPanelBuilder().
		Title(what.title).
		Description(what.description()).
		Unit(what.unit).
		NoValue(what.orNone(noData)).
		Datasource(source()).
		Span(width).
		Height(8).
		Min(0).
		Targets(lettered(queries)).
		FillOpacity(0).
		LineWidth(1).
		SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)}).
		ShowPoints(common.VisibilityModeAuto).
		Legend(legend).
		Tooltip(common.NewVizTooltipOptionsBuilder().
			Mode(common.TooltipDisplayModeMulti).
			Sort(common.SortOrderDescending))
}

// beside is a legend with values, the greatest first.
func beside() cog.Builder[common.VizLegendOptions] {
	return common.NewVizLegendOptionsBuilder().
		DisplayMode(common.LegendDisplayModeTable).
		Placement(common.LegendPlacementRight).
		ShowLegend(true).
		Calcs([]string{"lastNotNull", "max"}).
		SortBy("Last *").
		SortDesc(true)
}

// below is a legend under the panel, for few or short names.
func below() cog.Builder[common.VizLegendOptions] {
	return common.NewVizLegendOptionsBuilder().
		DisplayMode(common.LegendDisplayModeList).
		Placement(common.LegendPlacementBottom).
		ShowLegend(true)
}

// stairs is a timeline of counts, which change at once: a slope between two of them
// would be a sawtooth where claims are short.
func stairs(width uint32, what about, queries ...query) *timeseries.PanelBuilder {
	return timeline(width, what, queries...).LineInterpolation(common.LineInterpolationStepAfter)
}

// stacked is a timeline whose lines add up: of what is additive alone. Its steps are
// those of counts: with slopes, a line that ends would bend all above it.
func stacked(width uint32, what about, queries ...query) *timeseries.PanelBuilder {
	return stairs(width, what, queries...).
		FillOpacity(40).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// note is a line of Markdown; title is what it is about.
func note(title, reads, line string) *text.PanelBuilder {
	return text.NewPanelBuilder().
		Title(title).
		Description(reads).
		Span(columnsOfGrid).
		Height(2).
		Mode(text.TextModeMarkdown).
		Content(line)
}

// bars compares a few values of now, each in a line of text's height.
func bars(width uint32, what about, q query) *bargauge.PanelBuilder {
	return bargauge.NewPanelBuilder().
		Title(what.title).
		Description(what.description()).
		Unit(what.unit).
		NoValue(what.orNone(noData)).
		Datasource(source()).
		Span(width).
		Height(5).
		Min(0).
		Targets(lettered([]query{q.Format(prometheus.PromQueryFormatTimeSeries)})).
		Orientation(common.VizOrientationHorizontal).
		DisplayMode(common.BarGaugeDisplayModeBasic).
		NamePlacement(common.BarGaugeNamePlacementLeft).
		Sizing(common.BarGaugeSizingManual).
		MinVizHeight(20).
		MaxVizHeight(32).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// states is what each of several things was over time.
func states(width uint32, what about, queries ...query) *statetimeline.PanelBuilder {
	return statetimeline.NewPanelBuilder().
		Title(what.title).
		Description(what.description()).
		Unit(what.unit).
		NoValue(what.orNone(noData)).
		Datasource(source()).
		Span(width).
		Height(8).
		Targets(lettered(queries)).
		MergeValues(true).
		ShowValue(common.VisibilityModeAuto).
		RowHeight(0.85).
		FillOpacity(80)
}

// heat is how observations of a classic histogram are spread over time; the query
// is a sum of rates by (le).
func heat(width uint32, what about, q query) *heatmap.PanelBuilder {
	return heatmap.NewPanelBuilder().
		Title(what.title).
		Description(what.description()).
		NoValue(what.orNone(noData)).
		Datasource(source()).
		Span(width).
		Height(8).
		Targets(lettered([]query{q.Format(prometheus.PromQueryFormatHeatmap)})).
		Calculate(false).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(what.unit)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Steps(64)).
		CellGap(1)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func property(id string, value any) dashboard.DynamicConfigValue {
	return dashboard.DynamicConfigValue{Id: id, Value: value}
}

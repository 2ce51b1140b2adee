package boards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Colours have one meaning on all dashboards.
const (
	good     = "green"
	warning  = "orange"
	critical = "red"
	unknown  = "#808080"
	neutral  = "blue"
	// plain is the colour of text: of numbers in tables that are neither good nor
	// bad. Blue ones would look like links there.
	plain = "text"
)

// steps are thresholds: the colour at the bottom, and from each value on.
func steps(base string, more ...step) cog.Builder[dashboard.ThresholdsConfig] {
	all := []dashboard.Threshold{{Color: base}}
	for _, s := range more {
		all = append(all, dashboard.Threshold{Value: cog.ToPtr(s.from), Color: s.colour})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(all)
}

type step struct {
	from   float64
	colour string
}

// anyIs is for what should not be there at all.
func anyIs(colour string) cog.Builder[dashboard.ThresholdsConfig] {
	return steps(good, step{1, colour})
}

// byThresholds colours a value by the thresholds of its panel.
func byThresholds() cog.Builder[dashboard.FieldColor] {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdThresholds)
}

// always has one colour, for what is neither good nor bad.
func always(colour string) cog.Builder[dashboard.FieldColor] {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdFixed).FixedColor(colour)
}

// byName gives a series the colour of its name: a class or a namespace has the same
// one on all panels.
func byName() cog.Builder[dashboard.FieldColor] {
	return dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassicByName)
}

// uncoloured is for the absence of a value, which Grafana else writes in the colour
// of the lowest values: green or red for something unknown.
func uncoloured() []dashboard.ValueMapping {
	return []dashboard.ValueMapping{{SpecialValueMap: &dashboard.SpecialValueMap{Type: "special", Options: dashboard.DashboardSpecialValueMapOptions{
		Match:  dashboard.SpecialValueMatchNullAndNan,
		Result: dashboard.ValueMappingResult{Color: cog.ToPtr(unknown)},
	}}}}
}

// named is a value that is shown as a word.
type named struct {
	value  string
	text   string
	colour string
}

// words maps values to words and colours.
func words(all ...named) []dashboard.ValueMapping {
	options := map[string]dashboard.ValueMappingResult{}
	for i, n := range all {
		options[n.value] = dashboard.ValueMappingResult{
			Text: cog.ToPtr(n.text), Color: cog.ToPtr(n.colour), Index: cog.ToPtr(int32(i)),
		}
	}
	return []dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: "value", Options: options}}}
}

package lint

import "time"

// steps: a line is not drawn over the gap between two claims, counts that are added
// up have stairs, and no query has a step shorter than a scrape: all others draw
// sawteeth where claims are short.
func steps(b board, say report) {
	const scrape = 30 * time.Second
	for _, p := range b.all() {
		custom := p.FieldConfig.Defaults.Custom
		if p.Type == "timeseries" {
			if string(custom.SpanNulls) != "false" {
				say(p.Title, "its lines span gaps (spanNulls is %s)", custom.SpanNulls)
			}
			if custom.Stacking.Mode == "normal" && custom.LineInterpolation != "stepAfter" {
				say(p.Title, "it is stacked with slopes, which bend where a line ends")
			}
		}
		for _, t := range p.Targets {
			if least, err := time.ParseDuration(t.Interval); err != nil || least < scrape {
				say(p.Title, "query %s has %q as its least step, which is shorter than a scrape (%s)", t.RefID, t.Interval, scrape)
			}
		}
	}
}

// Package compare reports whether a scraped page and what was pushed by OTLP
// are the same: every family, with equal values, units, start times and label
// sets, and nothing else.
//
// Pages and pushes have different times. Rows belong to a snapshot, which has
// one time in a push: those of a page and of a push of the same snapshot are
// equal to the last bit. Live metrics (of the process, and histograms) have
// the time of the request: their counts are between those of two pages, one
// before the push and one after it.
package compare

// Package compare says whether a scraped page and what was pushed by OTLP are
// the same: every family, with equal values, units, start times and label
// sets, and nothing else.
//
// Pages and pushes are of different moments. Rows are of a snapshot, which has
// one time in a push: those of a page and of a push of the same snapshot are
// equal to the last bit. Live metrics (of the process, and histograms) are of
// the moment at which they are asked for: what they count lies between what
// two pages say, one from before the push and one from after it.
package compare

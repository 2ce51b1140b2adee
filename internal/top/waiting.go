package top

import (
	"cmp"
	"slices"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// summary counts those that wait, by reason, the commonest first.
func summary(document page.PendingAnswer) Waiting {
	waiting := Waiting{Count: len(document.Pending), Unread: document.Unread, Reasons: []ReasonCount{}, At: document.At}
	counts := map[string]int{}
	for _, reference := range document.Pending {
		counts[cmp.Or(reference.Reason, "unknown")]++
		since := reference.Since
		if !since.IsZero() && (waiting.Oldest.IsZero() || since.Before(waiting.Oldest)) {
			waiting.Oldest = since
		}
	}
	for reason, count := range counts {
		waiting.Reasons = append(waiting.Reasons, ReasonCount{reason, count})
	}
	slices.SortFunc(waiting.Reasons, func(a, b ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return waiting
}

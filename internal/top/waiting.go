package top

import (
	"cmp"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// summary counts pending claims by reason, the commonest first. An older
// cluster role has gated references among the others, which counts the same.
func summary(document page.PendingAnswer) Waiting {
	for i := range document.Pending {
		document.Pending[i].Reason = cmp.Or(document.Pending[i].Reason, "unknown")
	}
	count := page.CountPending(document.Pending, document.Gated)
	waiting := Waiting{
		Count: count.Pending, Gated: count.Gated, Oldest: count.Oldest, Reasons: []ReasonCount{},
		Unread: document.Unread, At: document.At,
	}
	for _, reason := range count.Reasons {
		waiting.Reasons = append(waiting.Reasons, ReasonCount(reason))
	}
	return waiting
}

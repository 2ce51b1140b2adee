// Package invariant checks rules for every page of metrics, independent of
// hardware and holders: no number is counted twice, and none contradicts
// another one of the same page, or of an earlier page of the same process.
//
// It depends only on pages: names, labels and values, as rows before they are
// shown or as exposition text that was parsed. So unit tests, property tests and the
// end-to-end tests check pages by the same rules, which Rules lists. A rule is not applied to a page without the series that
// it needs, for example because a family was capped.
//
// Pages may be foreign. The number of violations and the length of their texts
// are bounded; texts may contain control characters.
package invariant

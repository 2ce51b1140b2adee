// Package invariant checks rules for every page of metrics, independent of
// hardware and holders: no number is counted twice, and none contradicts
// another one of the same page, or of an earlier page of the same process.
//
// It only depends on pages: names, labels and values, as rows before they are
// shown or as exposition text that was parsed. So unit tests, property tests,
// the end-to-end tests and `dra-exporter check agent` hold pages to the same
// rules, which Rules lists. A rule never guesses: where a page does not say
// what the rule needs, for example because a family was capped, the rule is
// silent.
//
// Pages may be foreign. The number of violations and the length of their texts
// are bounded; texts may contain control characters.
package invariant

package dcgm

import "time"

// integral adds up a rate that an engine averages over each of its intervals.
type integral struct {
	total float64
	at    int64 // timestamp of the last value, microseconds; 0: none yet
}

// gapIntervals is how many intervals may lie between two values that are taken
// to have nothing between them but values that were not looked at.
const gapIntervals = 3

// add takes in a value with its timestamp and returns the total, which never
// falls. A value speaks of the interval that it ends, and of what was missed
// since the one before it, unless that is too much: then of the interval
// alone. A value that is known already, or older, adds nothing.
func (n *integral) add(rate float64, at int64, interval time.Duration) float64 {
	seconds := (float64(at) - float64(n.at)) / 1e6
	if n.at != 0 && seconds > 0 && rate > 0 {
		if seconds > gapIntervals*interval.Seconds() {
			seconds = interval.Seconds()
		}
		n.total += rate * seconds
	}
	n.at = at
	return n.total
}

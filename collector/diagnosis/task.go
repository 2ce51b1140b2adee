package diagnosis

import (
	"errors"
	"iter"
)

// errSuspended ends work at the end of a turn, if it is not to be continued.
var errSuspended = errors.New("the turn is over")

// task is a diagnosis that can be suspended at the end of a turn. Its methods
// are called from one goroutine.
type task struct {
	meter   *workMeter
	version uint64 // of the inventory when it began
	result  *podDiagnosis
	next    func() (struct{}, bool)
	stop    func() // ends it, wherever it is
}

// newTask returns a task that has not begun. The function does the work.
func newTask(pace *dutyCycle, version uint64, work func(*workMeter) *podDiagnosis) *task {
	t := &task{meter: &workMeter{pace: pace, limit: podWork}, version: version}
	t.next, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.meter.suspend = func() error {
			if !yield(struct{}{}) {
				return errSuspended
			}
			return nil
		}
		t.result = work(t.meter)
	})
	return t
}

// resume continues for a turn, and reports whether the diagnosis is complete.
func (t *task) resume() bool {
	t.meter.resume()
	_, more := t.next()
	t.meter.measure()
	return !more
}

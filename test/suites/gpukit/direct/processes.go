package direct

import "math"

// processes lists the processes that use the device, or nil if the driver lists
// none of a kind. A GPU without graphics has no list of their processes.
func (q *query) processes() []Process {
	all := []Process{}
	for _, list := range []struct {
		kind     string
		from     *processesCall
		optional bool
	}{
		{"compute", &q.library.compute, false},
		{"graphics", &q.library.graphics, true},
		{"mps", &q.library.mps, true},
	} {
		infos, reported := q.list(list.from)
		if !reported && !list.optional {
			return nil
		}
		for _, info := range infos {
			if info.pid == 0 {
				continue // drivers leave entries of their buffers empty
			}
			p := Process{PID: int(info.pid), Kind: list.kind}
			if info.memory != math.MaxUint64 { // NVML_VALUE_NOT_AVAILABLE
				p.Memory = finite(float64(info.memory))
			}
			all = append(all, p)
		}
	}
	return all
}

// list calls a function that fills a buffer, with a larger one each time as long
// as the buffer is too small.
func (q *query) list(c *processesCall) ([]processInfo, bool) {
	if c.function == nil {
		return nil, false
	}
	q.library.current.Store(&c.name)
	for room := uint32(64); room <= 1<<16; room *= 4 {
		buffer, count := make([]processInfo, room), room
		code := c.function(q.handle, &count, &buffer[0])
		if code == insufficientSize {
			continue
		}
		if !q.check(c.name, code) {
			return nil, false
		}
		return buffer[:min(count, room)], true
	}
	q.errors[c.name] = insufficientSize
	return nil, false
}

// samples asks for the utilization of processes since a time, in microseconds.
// It returns only samples that are newer, and that can be of a process.
func (q *query) samples(since int64) []ProcessSample {
	c := &q.library.processUtilization
	if c.function == nil {
		return nil
	}
	q.library.current.Store(&c.name)
	for room := uint32(256); room <= 1<<16; room *= 4 {
		buffer, count := make([]processSample, room), room
		code := c.function(q.handle, &buffer[0], &count, uint64(max(since, 0)))
		if code == insufficientSize {
			continue
		}
		if !q.check(c.name, code) {
			return nil
		}
		var found []ProcessSample
		for _, s := range buffer[:min(count, room)] {
			if s.pid == 0 || s.timestamp > math.MaxInt64 || int64(s.timestamp) <= since || s.sm > 100 {
				continue
			}
			found = append(found, ProcessSample{
				PID: int(s.pid), Timestamp: int64(s.timestamp), SM: float64(s.sm) / 100, Memory: float64(s.memory) / 100,
				Encoder: float64(s.encoder) / 100, Decoder: float64(s.decoder) / 100,
			})
		}
		return found
	}
	q.errors[c.name] = insufficientSize
	return nil
}

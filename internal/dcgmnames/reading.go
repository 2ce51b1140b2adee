package dcgmnames

import "math"

// readings is what the rows of one snapshot tell, arranged by the plan. NaN
// stands for what they do not tell.
type readings struct {
	devices []deviceReadings
	holders []holderReadings
}

type deviceReadings struct {
	values [sources]float64
	heard  bool    // somebody listens for Xids of the device
	xidAt  float64 // when the newest came, seconds since 1970; 0: none did
}

// holderReadings are the shares that Split shows.
type holderReadings [shares]float64

// begin forgets everything.
func (r *readings) begin(p *plan) {
	r.devices = resize(r.devices, len(p.devices))
	for d := range r.devices {
		values := &r.devices[d].values
		for i := range values {
			values[i] = math.NaN()
		}
		r.devices[d].heard, r.devices[d].xidAt = false, 0
	}
	r.holders = resize(r.holders, len(p.holders))
	for h := range r.holders {
		for i := range r.holders[h] {
			r.holders[h][i] = math.NaN()
		}
	}
}

func resize[T any](s []T, length int) []T {
	if cap(s) < length {
		return make([]T, length)
	}
	return s[:length]
}

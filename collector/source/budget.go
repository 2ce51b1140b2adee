package source

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// ErrRefused is the error of what a Budget refuses. A source without observations that
// fails with it must not be kept in memory.
var ErrRefused = errors.New("it has the most of all")

// Budget bounds what several foreign programs have or cause together, such as bytes in
// memory. Beyond it, the share with the most is refused, so that the others go on. It
// is safe for concurrent use.
type Budget struct {
	name  string // of what is bounded, for messages
	most  int
	every time.Duration // 0: what a share has counts until it is released
	now   clock.Clock

	mu     sync.Mutex
	shares map[*Share]struct{}
	total  int
	began  time.Duration // of the present period
}

// NewBudget returns a budget of what is held at a time. The name is that of what is
// bounded, such as "bytes of pages".
func NewBudget(name string, most int) *Budget {
	return &Budget{name: name, most: most, shares: make(map[*Share]struct{})}
}

// NewWork returns a budget of what is done in each period. A share that is refused
// stays refused until the period ends.
func NewWork(name string, most int, every time.Duration, now clock.Clock) *Budget {
	b := NewBudget(name, most)
	b.every, b.now, b.began = every, now, now().Elapsed
	return b
}

// Share is what one foreign program has of a Budget.
type Share struct {
	budget  *Budget
	refused func(error)
	amount  int
	ended   bool // refused until the period ends
}

// Share adds a program to the budget, until Leave. refused, which may be nil, is called
// if the share has to give up what it has because others ask for more; it must not wait
// for a call of this budget.
func (b *Budget) Share(refused func(error)) *Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &Share{budget: b, refused: refused}
	b.shares[s] = struct{}{}
	return s
}

// Set sets what the share has. It fails, and the share has nothing, if the budget is
// exceeded and no other share has more.
func (s *Share) Set(amount int) error { return s.change(amount, false) }

// Add adds to what the share has, and fails as Set does.
func (s *Share) Add(amount int) error { return s.change(amount, true) }

// Leave releases the share. What is set or added after it is not counted.
func (s *Share) Leave() {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.shares[s]; ok {
		b.total -= s.amount
		delete(b.shares, s)
	}
}

func (s *Share) change(amount int, add bool) error {
	b := s.budget
	b.mu.Lock()
	b.renew()
	if _, ok := b.shares[s]; !ok {
		b.mu.Unlock()
		return nil
	}
	if s.ended {
		b.mu.Unlock()
		return b.exceeded()
	}
	if add {
		amount += s.amount
	}
	b.total += amount - s.amount
	s.amount = amount
	var err error
	var others []*Share
	for b.total > b.most {
		largest := b.largest(s)
		b.total -= largest.amount
		largest.amount, largest.ended = 0, b.every > 0
		if largest == s {
			err = b.exceeded()
		} else {
			others = append(others, largest)
		}
	}
	b.mu.Unlock()
	for _, other := range others {
		if other.refused != nil {
			other.refused(b.exceeded())
		}
	}
	return err
}

// renew begins a new period if the present one has ended.
func (b *Budget) renew() {
	if b.every == 0 {
		return
	}
	now := b.now().Elapsed
	if now-b.began < b.every {
		return
	}
	b.began, b.total = now, 0
	for share := range b.shares {
		share.amount, share.ended = 0, false
	}
}

// largest returns the share with the most, and that which asks if others have as much.
func (b *Budget) largest(asks *Share) *Share {
	largest := asks
	for share := range b.shares {
		if share.amount > largest.amount {
			largest = share
		}
	}
	return largest
}

func (b *Budget) exceeded() error {
	period := ""
	if b.every > 0 {
		period = fmt.Sprintf(" in %v", b.every)
	}
	return &Failure{Reason: ReasonResourceExhausted, Err: fmt.Errorf("there are more than %d %s%s: %w", b.most, b.name, period, ErrRefused)}
}

// frameCost is what a frame of HTTP/2 costs beside its bytes: a flood of small ones
// costs more than data.
const frameCost = 512

// meteredConn charges what is read from a connection of HTTP/2, with each frame.
type meteredConn struct {
	net.Conn
	charge func(cost int) error
	header [9]byte // of the next frame
	have   int     // bytes of it
	left   int     // bytes of the present frame
}

// MeterFrames returns a connection to a server of HTTP/2 that calls charge with the cost
// of what is read: its bytes, and half a KiB for each frame. If charge fails, so does
// the read, and the connection is closed.
func MeterFrames(connection net.Conn, charge func(cost int) error) net.Conn {
	return &meteredConn{Conn: connection, charge: charge}
}

// Read implements net.Conn.
func (c *meteredConn) Read(buffer []byte) (int, error) {
	n, err := c.Conn.Read(buffer)
	if n == 0 {
		return n, err
	}
	if refused := c.charge(n + frameCost*c.frames(buffer[:n])); refused != nil {
		_ = c.Close() // the read fails anyway
		return 0, refused
	}
	return n, err
}

// frames returns how many frames have their header complete with these bytes.
func (c *meteredConn) frames(text []byte) (count int) {
	for len(text) > 0 {
		if c.left > 0 {
			n := min(c.left, len(text))
			c.left, text = c.left-n, text[n:]
			continue
		}
		n := copy(c.header[c.have:], text)
		c.have, text = c.have+n, text[n:]
		if c.have == len(c.header) {
			count++
			c.have, c.left = 0, int(c.header[0])<<16|int(c.header[1])<<8|int(c.header[2])
		}
	}
	return count
}

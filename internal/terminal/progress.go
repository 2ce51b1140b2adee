package terminal

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Progress reports what a command is waiting for: on a terminal in one line
// that is rewritten each second, elsewhere in one line after the first second.
type Progress struct{ To io.Writer }

// Until returns when done reports true, or false at the end of ctx. It calls done
// every 20 ms, and missing for the names of what is still awaited.
func (p Progress) Until(ctx context.Context, missing func() []string, done func() bool) bool {
	isTerminal, seconds := Is(p.To), 0
	poll, second := time.NewTicker(20*time.Millisecond), time.NewTicker(time.Second)
	defer poll.Stop()
	defer second.Stop()
	defer func() {
		if isTerminal && seconds > 0 {
			fmt.Fprint(p.To, "\r\x1b[K")
		}
	}()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-poll.C:
		case <-second.C:
			seconds++
			line := "still reading"
			if names := missing(); len(names) > 0 {
				line += ": " + strings.Join(names, ", ")
			}
			if isTerminal {
				fmt.Fprintf(p.To, "\r\x1b[K%s (%ds)", line, seconds)
			} else if seconds == 1 {
				fmt.Fprintln(p.To, line)
			}
		}
	}
	return true
}

// During runs do, which must return at the end of ctx, and reports what it is
// waiting for.
func (p Progress) During(ctx context.Context, missing func() []string, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	p.Until(ctx, missing, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	<-done
}

// Missing returns a function that always returns one name, for Until and During.
func Missing(subject string) func() []string { return func() []string { return []string{subject} } }

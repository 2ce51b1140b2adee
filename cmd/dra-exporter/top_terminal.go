package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/top"
)

// screen is the terminal at which a person watches and types.
type screen struct{ in, out *os.File }

// screenOf is the terminal that the output goes to, if it can be typed at.
func screenOf(stdout io.Writer) (*screen, bool) {
	out, isFile := stdout.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	t := &screen{in: os.Stdin, out: out}
	return t, term.IsTerminal(int(t.in.Fd())) && term.IsTerminal(int(t.out.Fd()))
}

// lookOf is how a table looks that is printed once.
func lookOf(stdout io.Writer) top.Look {
	look := top.Look{Styled: terminal.Styled(stdout), Glyphs: glyphs()}
	if out, isFile := stdout.(*os.File); isFile && term.IsTerminal(int(out.Fd())) {
		look.Width, _ = (&screen{out: out}).size()
		look.Bars = true
	}
	return look
}

// glyphs go by the locale, as programs of C do.
func glyphs() top.Glyphs {
	locale := strings.ToUpper(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8") {
		return top.Unicode()
	}
	return top.ASCII()
}

// size is that of the terminal, or what terminals used to have.
func (t *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// show lets a person watch until they have had enough. However it ends, the
// terminal is as it was before.
func (t *screen) show(ctx context.Context, flags *topFlags, way *topWay, listing top.Listing) (err error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP) // would end the program as it stands
	defer release()
	before, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("read keys from the terminal: %w; --once needs none", err)
	}
	defer func() {
		_, failed := io.WriteString(t.out, top.Leave)
		err = errors.Join(err, failed, term.Restore(int(t.in.Fd()), before))
	}()
	if _, err := io.WriteString(t.out, top.Enter); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	live := &top.Live{
		Watch:  &top.Watch{Asker: way.asker, First: listing, List: way.relist, Interval: flags.interval, Relist: 30 * time.Second, Rest: 10 * time.Second},
		Clock:  way.asker.Clock,
		Wanted: flags.wanted(),
		State:  flags.state(),
		Look:   top.Look{Styled: terminal.Styled(t.out), Bars: true, Glyphs: glyphs()},
		Input:  t.typed(), Resized: resized, Size: t.size, Output: t.out,
	}
	return live.Run(ctx)
}

// typed is what is typed. The goroutine waits in a read that nothing can end
// but the terminal or the end of the program.
func (t *screen) typed() <-chan []byte {
	input := make(chan []byte)
	go func() {
		defer close(input)
		buffer := make([]byte, 256)
		for {
			n, err := t.in.Read(buffer)
			if n > 0 {
				input <- append([]byte(nil), buffer[:n]...)
			}
			if err != nil {
				return
			}
		}
	}()
	return input
}

// progress tells a person who waits for longer than a second how far it is.
type progress struct {
	clock    clock.Clock
	began    clock.Instant
	told     clock.Instant
	stderr   io.Writer
	renewing bool // the same line over and over
}

func newProgress(now clock.Clock, stderr io.Writer) *progress {
	file, isFile := stderr.(*os.File)
	return &progress{clock: now, began: now(), stderr: stderr, renewing: isFile && term.IsTerminal(int(file.Fd()))}
}

func (p *progress) tell(fleet *top.Fleet) {
	now := p.clock()
	pause := 10 * time.Second
	if p.renewing {
		pause = 200 * time.Millisecond
	}
	if now.Since(p.began) < time.Second || (!p.told.IsZero() && now.Since(p.told) < pause) {
		return
	}
	p.told = now
	asked, all := fleet.Asked()
	if p.renewing {
		fmt.Fprintf(p.stderr, "\rasked %d of %d agents\x1b[K", asked, all)
		return
	}
	fmt.Fprintf(p.stderr, "asked %d of %d agents\n", asked, all)
}

func (p *progress) done() {
	if p.renewing && !p.told.IsZero() {
		fmt.Fprint(p.stderr, "\r\x1b[K")
	}
}

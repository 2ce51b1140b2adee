package top

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
)

// Terminal is where a person watches and types.
type Terminal struct{ in, out *os.File }

// OpenTerminal returns the terminal of in and out, if both are one.
func OpenTerminal(in *os.File, out io.Writer) (*Terminal, bool) {
	file, isFile := out.(*os.File)
	if !isFile || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	return &Terminal{in: in, out: file}, terminal.Is(in) && terminal.Is(file)
}

// LookOf returns how a table looks that is printed once.
func LookOf(out io.Writer) Look {
	look := Look{Styled: terminal.Styled(out), Glyphs: localeGlyphs()}
	if file, isFile := out.(*os.File); isFile && terminal.Is(file) {
		look.Width, _ = sizeOf(file)
		look.Bars = true
	}
	return look
}

// localeGlyphs depend on the locale, as in programs of C.
func localeGlyphs() Glyphs {
	locale := strings.ToUpper(cmp.Or(os.Getenv("LC_ALL"), os.Getenv("LC_CTYPE"), os.Getenv("LANG")))
	if strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8") {
		return unicodeGlyphs()
	}
	return asciiGlyphs()
}

// sizeOf returns the size of the terminal; 80 by 24 if that is unknown.
func sizeOf(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Show runs the table on the terminal, whose input, output and look it sets. It
// restores the terminal at the end.
func (t *Terminal) Show(ctx context.Context, live *Live) (err error) {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP) // would end the program without restoring the terminal
	defer release()
	before, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return fmt.Errorf("read keys from the terminal: %w; --once needs none", err)
	}
	defer func() {
		_, failed := io.WriteString(t.out, Leave)
		err = errors.Join(err, failed, term.Restore(int(t.in.Fd()), before))
	}()
	if _, err := io.WriteString(t.out, Enter); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	live.Look = Look{Styled: terminal.Styled(t.out), Bars: true, Glyphs: localeGlyphs()}
	live.Input, live.Resized, live.Output = t.read(), resized, t.out
	live.Size = func() (int, int) { return sizeOf(t.out) }
	return live.Run(ctx)
}

// read returns what is typed. Its goroutine blocks in a read that only the terminal
// or the end of the program can end.
func (t *Terminal) read() <-chan []byte {
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

// Progress reports how many agents have been read, after a second: on a
// terminal in one line that is rewritten, elsewhere every ten seconds.
type Progress struct {
	clock     clock.Clock
	began     clock.Instant
	reported  clock.Instant
	to        io.Writer
	rewriting bool
}

// NewProgress begins now.
func NewProgress(now clock.Clock, to io.Writer) *Progress {
	return &Progress{clock: now, began: now(), to: to, rewriting: terminal.Is(to)}
}

// Report writes the progress of the fleet, if it is time to.
func (p *Progress) Report(fleet *Fleet) {
	now := p.clock()
	pause := 10 * time.Second
	if p.rewriting {
		pause = 200 * time.Millisecond
	}
	if now.Since(p.began) < time.Second || (!p.reported.IsZero() && now.Since(p.reported) < pause) {
		return
	}
	p.reported = now
	asked, all := fleet.Asked()
	if p.rewriting {
		fmt.Fprintf(p.to, "\rread %d of %d agents\x1b[K", asked, all)
		return
	}
	fmt.Fprintf(p.to, "read %d of %d agents\n", asked, all)
}

// Clear removes the line from the terminal.
func (p *Progress) Clear() {
	if p.rewriting && !p.reported.IsZero() {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
}

package top

import (
	"cmp"
	"context"
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
func OpenTerminal(input *os.File, out io.Writer) (*Terminal, bool) {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	return &Terminal{in: input, out: file}, terminal.Is(input) && terminal.Is(file)
}

// LookOf returns how a table looks that is printed once.
func LookOf(out io.Writer) Look {
	look := Look{Styled: terminal.Styled(out), Glyphs: localeGlyphs()}
	if file, ok := out.(*os.File); ok && terminal.Is(file) {
		look.Width, _ = terminalSize(file)
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

// terminalSize returns the size of the terminal; 80 by 24 if that is unknown.
func terminalSize(file *os.File) (width, height int) {
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Show runs the display on the terminal, whose input, output and look it sets. It
// restores the terminal at the end.
func (t *Terminal) Show(ctx context.Context, live *Live) error {
	ctx, release := signal.NotifyContext(ctx, syscall.SIGHUP) // would end the program without restoring the terminal
	defer release()
	live.Look = Look{Styled: terminal.Styled(t.out), Bars: true, Glyphs: localeGlyphs()}
	live.Input, live.Output = t.in, t.out
	return live.Run(ctx)
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
func NewProgress(now clock.Clock, w io.Writer) *Progress {
	return &Progress{clock: now, began: now(), to: w, rewriting: terminal.Is(w)}
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

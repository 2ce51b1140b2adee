package top

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Live is a table that is refreshed on a terminal in raw mode.
type Live struct {
	Watch   *Watch
	Clock   clock.Clock
	Wanted  Wanted
	State   State            // to begin with
	Look    Look             // without the size
	Input   <-chan []byte    // typed bytes; closed at the end of the input
	Resized <-chan os.Signal // the size may have changed
	Size    func() (width, height int)
	Output  io.Writer // one write a frame
}

// Terminal control: another screen without a cursor, and back.
const (
	Enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	Leave = "\x1b[?25h\x1b[?1049l"
)

const (
	escapeWait = 50 * time.Millisecond  // sequences arrive faster than users type
	frameWait  = 200 * time.Millisecond // answers within this time are one frame
)

// Run shows the table until the user quits, the input ends or ctx ends. It
// fails if it cannot write.
func (l *Live) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changes := make(chan Change)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.Watch.Run(ctx, func(change Change) {
			select {
			case changes <- change:
			case <-ctx.Done():
			}
		})
	}()
	err := l.loop(ctx, changes)
	stop()
	<-watched
	return err
}

// viewer is the state of the loop. Only the loop's goroutine uses it.
type viewer struct {
	*Live
	fleet    *Fleet
	keyboard Keyboard
	state    State
	space    Space // of the frame that is shown
	reading  Reading
}

func (l *Live) loop(ctx context.Context, changes <-chan Change) error {
	v := &viewer{Live: l, fleet: NewFleet(), state: l.State}
	frames, escape := time.NewTicker(frameWait), time.NewTimer(time.Hour)
	defer frames.Stop()
	defer escape.Stop()
	news, redraw := true, true
	drawn := l.Clock()
	for !v.state.Done {
		if redraw {
			if err := v.show(news); err != nil {
				return err
			}
			news, redraw, drawn = false, false, l.Clock()
		}
		select {
		case <-ctx.Done():
			return nil
		case change := <-changes:
			change(v.fleet)
			news = true
		case <-frames.C: // the time of day moves too
			redraw = news || l.Clock().Since(drawn) >= time.Second
			news = redraw
		case <-l.Resized:
			redraw = true
		case typed, more := <-l.Input:
			if !more {
				return nil
			}
			v.press(v.keyboard.Feed(typed))
			redraw = true
			if v.keyboard.Waiting() {
				escape.Reset(escapeWait)
			}
		case <-escape.C:
			v.press(v.keyboard.GiveUp())
			redraw = true
		}
	}
	return nil
}

func (v *viewer) press(keys []Keystroke) {
	for _, key := range keys {
		v.state = v.state.Press(key, v.space)
	}
}

// show writes a frame. Each line clears the rest of its line, which avoids
// flicker.
func (v *viewer) show(news bool) error {
	if news {
		v.reading = v.fleet.Reading(v.Clock().Wall, v.Wanted)
	}
	look := v.Look
	look.Width, look.Height = v.Size()
	look.Width = max(look.Width-1, 1) // clearing the rest of a full line would erase the last column
	screen := Draw(v.reading, v.state, look)
	v.space = screen.Space
	v.state = v.state.Within(v.space)
	var frame bytes.Buffer
	frame.WriteString("\x1b[H")
	for i, line := range screen.Lines {
		if i > 0 {
			frame.WriteString("\r\n")
		}
		frame.WriteString(line + "\x1b[K")
	}
	frame.WriteString("\x1b[J")
	if _, err := v.Output.Write(frame.Bytes()); err != nil {
		return fmt.Errorf("write to the terminal: %w", err)
	}
	return nil
}

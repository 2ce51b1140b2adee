package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	tea "charm.land/bubbletea/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Live is the interactive display. The library that draws it reads keys and the
// mouse, and restores the terminal at the end, after a panic as well.
type Live struct {
	Watch  *Watch
	Clock  clock.Clock
	Wanted Wanted
	Order  Order     // of claims, to begin with
	Look   Look      // without the size
	Input  io.Reader // keys; if it is a terminal, it is in raw mode meanwhile
	Output io.Writer

	Width, Height int // of an output that is no terminal
}

// Run shows the display until the user quits, the input ends or ctx ends. It
// fails if it cannot write.
func (l *Live) Run(ctx context.Context) error {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	program := tea.NewProgram(newScreen(l), tea.WithContext(running), tea.WithoutSignalHandler(), // the context ends with signals
		tea.WithInput(watchedInput(l.Input, stop)), tea.WithOutput(watchedOutput(l.Output, stop)), tea.WithWindowSize(l.Width, l.Height))
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		l.Watch.Run(running, func(change FleetChange) { program.Send(change) })
	}()
	_, err := program.Run()
	cause := context.Cause(running)
	stop(nil)
	<-watched
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return fmt.Errorf("show the display, which is a bug: %w", err)
	case err == nil || ctx.Err() != nil || errors.Is(cause, io.EOF):
		return nil
	case cause != nil:
		return cause
	default:
		return fmt.Errorf("use the terminal: %w; --once needs none", err)
	}
}

// watchedInput ends the program with the input, which the library does not.
func watchedInput(input io.Reader, stop context.CancelCauseFunc) io.Reader {
	read := func(n int, err error) (int, error) {
		if err != nil {
			stop(io.EOF)
		}
		return n, err
	}
	if file, ok := input.(*os.File); ok { // the library must see that it is a terminal
		return &terminalFile{File: file, done: read}
	}
	return reader(func(p []byte) (int, error) { return read(input.Read(p)) })
}

// watchedOutput ends the program if it cannot write.
func watchedOutput(output io.Writer, stop context.CancelCauseFunc) io.Writer {
	written := func(n int, err error) (int, error) {
		if err != nil {
			stop(fmt.Errorf("write to the terminal: %w", err))
		}
		return n, err
	}
	if file, ok := output.(*os.File); ok {
		return &terminalFile{File: file, done: written}
	}
	return writer(func(p []byte) (int, error) { return written(output.Write(p)) })
}

// terminalFile reports the results of reads and writes.
type terminalFile struct {
	*os.File
	done func(int, error) (int, error)
}

func (t *terminalFile) Read(p []byte) (int, error)  { return t.done(t.File.Read(p)) }
func (t *terminalFile) Write(p []byte) (int, error) { return t.done(t.File.Write(p)) }

type reader func([]byte) (int, error)

func (r reader) Read(p []byte) (int, error) { return r(p) }

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

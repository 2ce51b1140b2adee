package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/term"

	"github.com/dra-exporter/dra-exporter/internal/check"
)

// checkFlags are those of every check.
type checkFlags struct {
	output  string
	timeout time.Duration

	inherited    []string // flags taken over from the exporter of this container; nil: there is none
	inheritError error
}

// addCheck adds the subcommand that says what is missing, and what to do.
func (c *commands) addCheck(stdout, stderr io.Writer) {
	command := c.app.Command("check", "Say what the exporter can and cannot see here, and what to do about it.")
	flags := &checkFlags{}
	command.Flag("output", "text or json.").Short('o').Default("text").EnumVar(&flags.output, "text", "json")
	command.Flag("timeout", "How long to wait for answers.").Default("20s").DurationVar(&flags.timeout)
	c.check = flags
	c.addCheckNode(command, flags, stdout, stderr)
	c.addCheckCluster(command, flags, stdout, stderr)
	c.addCheckAgent(command, flags, stdout, stderr)
}

// run has something checked and shows what was found. A failure is an error.
func (f *checkFlags) run(ctx context.Context, stdout io.Writer, examine func(context.Context) (*check.Report, error)) error {
	if f.timeout <= 0 {
		return fmt.Errorf("--timeout=%s is no time to check anything in", f.timeout)
	}
	report, err := examine(ctx)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("stopped: %w", ctx.Err())
	}
	if err := f.show(report, stdout); err != nil {
		return err
	}
	return report.Err()
}

func (f *checkFlags) show(report *check.Report, stdout io.Writer) error {
	if f.output == "json" {
		return report.JSON(stdout)
	}
	if _, err := io.WriteString(stdout, report.Text(check.Style{Colour: styled(stdout), Columns: widthOf(stdout)})); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// widthOf is how wide the terminal is; 0: it is none, or nobody knows.
func widthOf(to io.Writer) int {
	const narrowest, widest = 60, 140
	width := 0
	if file, isFile := to.(*os.File); isFile {
		if told, _, err := term.GetSize(int(file.Fd())); err == nil {
			width = told
		} else {
			return 0
		}
	}
	if told, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		width = cmp.Or(told, width)
	}
	if width == 0 {
		return 0
	}
	return min(max(width, narrowest), widest)
}

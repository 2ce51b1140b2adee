package phases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/report"
)

const (
	sessionsTitle = "Sessions without attachments"
	sessionsText  = "What a session of the management library opens, by the flags of nvmlInitWithFlags. " +
		"A reset of a GPU and an unload of the driver were not tried."
)

// TrySessions begins and ends a session with each combination of flags, each in a
// process of its own, until ctx ends. The rows are those of the table in
// docs/release.md.
func TrySessions(ctx context.Context, o Options) report.Section {
	section := report.Section{Title: sessionsTitle, Text: sessionsText}
	for _, row := range []struct {
		name  string
		flags uint32
	}{{"none", 0}, {"NO_ATTACH", direct.NoAttach}, {"NO_GPUS", direct.NoGPUs}, {"NO_ATTACH, NO_GPUS", direct.NoAttach | direct.NoGPUs}} {
		r := compare.Result{Row: row.name, Against: compare.Library, Status: compare.Failed}
		s, err := trySession(ctx, o, row.flags)
		if ctx.Err() != nil {
			break // what was interrupted has not failed
		}
		if err != nil {
			r.Detail = err.Error()
		} else {
			judge(&r, s)
		}
		section.Results = append(section.Results, r)
	}
	return section
}

// trySession runs `gpukit session`.
func trySession(ctx context.Context, o Options, flags uint32) (direct.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	var s direct.Session
	decoded := errors.New("it has printed nothing")
	complaint := &child.Tail{Bytes: 1 << 10}
	p, err := child.Start(ctx, child.Options{
		Path: o.Program, Arguments: []string{"session", "--library=" + o.Library, "--flags=" + strconv.FormatUint(uint64(flags), 10)},
		Out: &child.Lines{Each: func(line []byte) { decoded = json.Unmarshal(line, &s) }, Most: mostLine}, Err: complaint,
	})
	if err != nil {
		return s, err
	}
	ended := p.Err()
	if ctx.Err() != nil {
		return s, fmt.Errorf("the session has not ended: %w", context.Cause(ctx))
	}
	if err := errors.Join(ended, decoded); err != nil {
		return s, fmt.Errorf("the session has failed: %w; %s", err, complaint)
	}
	return s, nil
}

// judge fills in the row of a session. It fails if the session does not end or
// leaves a file open, and is not reported if the library refuses the flags.
func judge(r *compare.Result, s direct.Session) {
	r.Other = "opens " + renderFiles(s.During.Files)
	details := []string{"nvmlInitWithFlags: " + renderReturn(s.Init)}
	if s.Count != nil {
		details = append(details, fmt.Sprintf("nvmlDeviceGetCount_v2: %s, %d GPUs", renderReturn(*s.Count), s.GPUs))
	}
	if s.Shutdown != nil {
		details = append(details, "nvmlShutdown: "+renderReturn(*s.Shutdown))
	}
	details = append(details, "open after it: "+renderFiles(s.After.Files),
		fmt.Sprintf("references of the driver: %s before, %s during, %s after", renderReferences(s.Before), renderReferences(s.During), renderReferences(s.After)))
	r.Detail = strings.Join(details, "; ")
	switch {
	case len(s.After.Files) > 0 || s.Shutdown != nil && s.Shutdown.Code != 0:
		r.Status = compare.Failed
	case s.Init.Code != 0:
		r.Status = compare.NotReported
	default:
		r.Status = compare.Passed
	}
}

func renderReturn(r direct.Return) string {
	if r.Code == 0 {
		return "0"
	}
	return fmt.Sprintf("%d (%s)", r.Code, r.Text)
}

func renderReferences(m direct.Moment) string {
	if m.References == nil {
		return "not readable"
	}
	return strconv.Itoa(*m.References)
}

// renderFiles names sorted files, each once and with the number of times that it is open.
func renderFiles(files []string) string {
	var names []string
	for i := 0; i < len(files); {
		times := 1
		for i+times < len(files) && files[i+times] == files[i] {
			times++
		}
		name := files[i]
		if times > 1 {
			name += fmt.Sprintf(" (%d times)", times)
		}
		names = append(names, name)
		i += times
	}
	if len(names) == 0 {
		return "no /dev/nvidia*"
	}
	return strings.Join(names, ", ")
}

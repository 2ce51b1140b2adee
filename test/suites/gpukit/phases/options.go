package phases

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Options are those of a run.
type Options struct {
	Program     string // path of gpukit itself, for its commands load and direct
	Agent       string // path of the agent, built with cgo
	Recorder    string // path of libnvidia-ml-recorder.so
	Library     string // path or soname of NVIDIA's management library
	CUDALibrary string // path or soname of the CUDA driver
	SMI         string // path of nvidia-smi; empty: none
	Out         string // folder for the report, the recording and the agent's log
	Record      string // file for the recording; empty: RecordingFile in Out
	Device      string // UUID of the device for loads; empty: the first
	Imitated    string // the parts that are not from real hardware, for the report

	Scale     float64  // of all durations, for tests; 1 otherwise
	Only      []string // names of phases; empty: all that are not optional
	Xid       bool     // the phase that makes the driver report an Xid
	Long      bool     // the phase of ten minutes
	Profiling bool     // the agent reads the GPUs' profiling counters
	Simulated bool     // a simulated procfs even if cgroups can be made

	Progress io.Writer // receives one line for each phase, and more
	Terminal bool      // whether Progress can show the time that is left
}

// recording is the file for the recording of the management library.
func (o Options) recording() string {
	return cmp.Or(o.Record, filepath.Join(o.Out, RecordingFile))
}

// Validate returns an error that names each wrong flag.
func (o Options) Validate() error {
	var wrong []error
	if o.Scale <= 0 || o.Scale > 1 {
		wrong = append(wrong, fmt.Errorf("--scale=%g: must be more than 0, and at most 1", o.Scale))
	}
	var names []string
	for _, p := range Table() {
		names = append(names, p.Name)
	}
	for _, name := range o.Only {
		if !slices.Contains(names, name) {
			wrong = append(wrong, fmt.Errorf("--only=%s: must be one of %s", name, strings.Join(names, ", ")))
		}
	}
	for _, required := range []struct{ flag, value string }{
		{"--agent", o.Agent}, {"--recorder", o.Recorder}, {"--library", o.Library}, {"--cuda-library", o.CUDALibrary}, {"--out", o.Out},
	} {
		if required.value == "" {
			wrong = append(wrong, fmt.Errorf("%s: must be given", required.flag))
		}
	}
	return errors.Join(wrong...)
}

// shortest is how long a phase takes at least: comparisons need some samples.
const shortest = 8 * time.Second

// selected are the phases of a run, with their scaled durations.
func (o Options) selected() []Phase {
	var all []Phase
	for _, p := range Table() {
		asked := slices.Contains(o.Only, p.Name) || p.Name == "xid" && o.Xid || p.Name == "long" && o.Long
		if asked || len(o.Only) == 0 && !p.Optional {
			if p.Trial == nil {
				p.Duration = max(time.Duration(float64(p.Duration)*o.Scale), shortest)
			}
			all = append(all, p)
		}
	}
	return all
}

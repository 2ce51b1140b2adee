package direct

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Flags of nvmlInitWithFlags.
const (
	NoGPUs   = 1 // NVML_INIT_FLAG_NO_GPUS: do not fail without GPUs
	NoAttach = 2 // NVML_INIT_FLAG_NO_ATTACH: do not attach GPUs
)

// References is the file in which the kernel counts who uses NVIDIA's driver.
const References = "/sys/module/nvidia/refcnt"

// Return is what a function of the library returned.
type Return struct {
	Code int    `json:"code"` // the number of nvmlReturn_t
	Text string `json:"text"` // the library's description
}

// Moment is what holds the driver at one time.
type Moment struct {
	// Files are the device files of NVIDIA that this process has open, sorted,
	// without /dev/. A file that is open several times is there several times.
	Files []string `json:"files"`
	// References is the number of References; nil: not readable.
	References *int `json:"references,omitempty"`
}

// Session is what a session has done that was initialized with flags, and that
// asked for the number of GPUs alone.
type Session struct {
	Flags    uint32  `json:"flags"`
	Init     Return  `json:"init"`
	Count    *Return `json:"count,omitempty"` // nil: there was no session
	GPUs     uint32  `json:"gpus"`
	Shutdown *Return `json:"shutdown,omitempty"` // nil: there was no session

	Before Moment `json:"before"`
	During Moment `json:"during"` // after the number of GPUs
	After  Moment `json:"after"`
}

// Try initializes a libnvidia-ml with flags, asks for the number of GPUs, and
// shuts it down. References are read from a file. No other session of this process
// may be open.
func Try(path string, flags uint32, references string) (Session, error) {
	s := Session{Flags: flags}
	l, err := load(path)
	if err != nil {
		return s, err
	}
	if l.initWithFlags.function == nil {
		return s, fmt.Errorf("%s has no %s", path, l.initWithFlags.name)
	}
	var problems [3]error
	s.Before, problems[0] = observe(references)
	s.Init = l.describe(l.initWithFlags.function(flags))
	if s.Init.Code == success {
		count := l.describe(l.count.function(&s.GPUs))
		s.Count = &count
	}
	s.During, problems[1] = observe(references)
	if s.Init.Code == success {
		shutdown := l.describe(l.shutdown.function())
		s.Shutdown = &shutdown
	}
	s.After, problems[2] = observe(references)
	return s, errors.Join(problems[:]...)
}

// EncodeSession writes one line of JSON.
func EncodeSession(to io.Writer, s Session) error {
	if err := json.NewEncoder(to).Encode(s); err != nil {
		return fmt.Errorf("write a session of the library: %w", err)
	}
	return nil
}

func (l *Library) describe(code int32) Return {
	return Return{Code: int(code), Text: l.failure("", code).Text}
}

// observe finds out what holds the driver now.
func observe(references string) (Moment, error) {
	const folder = "/proc/self/fd"
	m := Moment{Files: []string{}}
	descriptors, err := os.ReadDir(folder)
	if err != nil {
		return m, fmt.Errorf("list the open files: %w", err)
	}
	for _, d := range descriptors {
		target, err := os.Readlink(filepath.Join(folder, d.Name()))
		if errors.Is(err, fs.ErrNotExist) { // closed since, such as the folder itself
			continue
		}
		if err != nil {
			return m, fmt.Errorf("list the open files: %w", err)
		}
		if _, rest, ok := strings.Cut(target, "/dev/nvidia"); ok {
			m.Files = append(m.Files, "nvidia"+rest)
		}
	}
	slices.Sort(m.Files)
	if text, err := os.ReadFile(references); err == nil {
		if count, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			m.References = &count
		}
	}
	return m, nil
}

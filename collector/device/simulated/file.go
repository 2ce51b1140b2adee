package simulated

import (
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// lookInterval is how often a source looks whether its file has changed.
const lookInterval = time.Second

const maxFile = 16 << 20 // bytes

// file is where a source's config comes from, if it comes from a file.
type file struct {
	path string

	mu   sync.Mutex
	due  time.Duration // when, in elapsed time, to look again
	last []byte
	err  error // why what is there now was not taken up
}

// Open returns a source that shows what the file says, and goes on to do so
// when the file changes: at its next call, within a second. A file that has
// become wrong changes nothing; the next call of Readers says what is wrong
// with it. An error names the file.
func Open(path string, now clock.Clock) (*Source, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	config, err := parseFile(path, data)
	if err != nil {
		return nil, err
	}
	s := New(config, now)
	s.file.path, s.file.last = path, data
	return s, nil
}

func readFile(path string) ([]byte, error) {
	data, err := hostfile.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("read simulated devices: %w", err)
	}
	return data, nil
}

func parseFile(path string, data []byte) (Config, error) {
	config, err := Parse(data)
	if err != nil {
		return Config{}, &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf("%s: %w", path, err)}
	}
	return config, nil
}

// reload takes up the file where it has changed.
func (s *Source) reload() error {
	f := &s.file
	if f.path == "" {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := s.now().Elapsed
	if now < f.due {
		return f.err
	}
	f.due = now + lookInterval
	data, err := readFile(f.path)
	if err != nil || bytes.Equal(data, f.last) {
		f.err = err
		return f.err
	}
	config, err := parseFile(f.path, data)
	if f.err = err; err == nil {
		f.last = data
		s.Replace(config)
	}
	return f.err
}

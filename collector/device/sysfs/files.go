// Package sysfs reads the files in which the kernel describes hardware: one
// value a file, as text, below /sys. The sources without a vendor's library
// share it. They cannot use github.com/prometheus/procfs for these files: there
// a value that cannot be read is zero, and one bad file hides a whole device.
package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"syscall"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// page is how much one read of a file of the kernel's gives at most.
const page = 4096

// Files reads files, one at a time. Its zero value is ready; it is not safe
// for concurrent use.
type Files struct {
	buffer [page]byte
}

// Bytes returns what one read of the file gives; it is good until the next
// call. Errors are of the type *fs.PathError; one of the reading, not of the
// opening, may come from the hardware's driver.
//
// Drivers may answer "try again", at which os.ReadFile would wait for ever,
// and may hang: then the calling thread does.
func (f *Files) Bytes(path string) ([]byte, error) {
	n, err := hostfile.ReadOnce(path, f.buffer[:])
	if wrong, ok := errors.AsType[*fs.PathError](err); ok && wrong.Op == "read" {
		wrong.Err = refused(wrong.Err)
	}
	if err != nil {
		return nil, err
	}
	return f.buffer[:n], nil
}

// refused wraps an EPERM of a read: the driver does not permit the read at
// present, because its hardware is suspended or being reset. A missing
// permission fails the opening of the file instead.
func refused(err error) error {
	if errors.Is(err, syscall.EPERM) {
		return &source.Failure{Reason: source.ReasonDeviceError, Err: fmt.Errorf("the driver refuses: %w", err)}
	}
	return err
}

// Text returns the text of a file without the white space around it, as valid
// UTF-8.
func (f *Files) Text(path string) (string, error) {
	raw, err := f.Bytes(path)
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(raw)), "\uFFFD"), nil
}

// Number returns the number that is a file's text.
func (f *Files) Number(path string) (float64, error) {
	text, err := f.Text(path)
	if err != nil {
		return 0, err
	}
	value, err := ParseNumber(text)
	if err != nil {
		return 0, &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return value, nil
}

// ParseNumber reads a decimal integer of at most 64 bits. Some drivers write
// "N/A (…)" where they have no number: that is Absent.
func ParseNumber(text string) (float64, error) {
	if strings.HasPrefix(text, "N/A") {
		return 0, syscall.ENODATA
	}
	unsigned, err := strconv.ParseUint(text, 10, 64)
	if err == nil {
		return float64(unsigned), nil
	}
	signed, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return math.NaN(), fmt.Errorf("no number: %s", strconv.Quote(abbreviated(text)))
	}
	return float64(signed), nil
}

// abbreviated is a text short enough for a message.
func abbreviated(text string) string {
	const enough = 40
	if runes := []rune(text); len(runes) > enough {
		return string(runes[:enough]) + "…"
	}
	return text
}

// Numbered returns the number that follows the prefix of a name, such as card0.
func Numbered(name, prefix string) (number int, found bool) {
	digits, found := strings.CutPrefix(name, prefix)
	if !found {
		return 0, false
	}
	parsed, err := strconv.ParseUint(digits, 10, 31)
	return int(parsed), err == nil
}

// maxNames is how many names a folder may have: a node has some hundreds of PCI
// functions.
const maxNames = 10_000

// Names returns the names in a folder, sorted. It fails for a folder with more
// than 10,000 names. It does not block on an irregular file.
func Names(folder string) ([]string, error) { return hostfile.Names(folder, maxNames) }

// Package hostfile reads files and folders that others write, within limits. It opens
// nothing that could wait or have an effect: a pipe, a terminal, a socket or a device
// in the place of a file is an error. Errors are of the type *fs.PathError, and
// source.ReasonOf returns their reason.
//
// A file system whose server hangs, such as NFS or FUSE, still blocks the calling
// thread: source.Await bounds how long a source waits for it.
package hostfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Read returns the content of a regular file of at most limit bytes. A file of size 0
// is empty and is not read: files of procfs and tracefs have this size too, and reads
// of some wait for ever, or take the text from other readers.
func Read(path string, limit int64) ([]byte, error) {
	// Opening a device can have an effect, such as starting a watchdog. So the type is
	// checked before as well as after.
	if err := Check(path); err != nil {
		return nil, err
	}
	fd, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }() // closing what was only read loses nothing
	switch {
	case size == 0:
		return nil, nil
	case size > limit:
		return nil, &fs.PathError{Op: "read", Path: path, Err: tooLarge(limit)}
	default:
		return readAll(fd, path, limit, size)
	}
}

// Check returns an error if there is no regular file, for a file that a library reads.
func Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := checkType(typeBits(info.Mode())); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return nil
}

// ReadKernel returns the content of a file of procfs, sysfs or a cgroup, of which the
// size is not known before, and which has at most limit bytes.
func ReadKernel(path string, limit int64) ([]byte, error) {
	fd, _, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }()
	return readAll(fd, path, limit, 0)
}

// ReadOnce reads what one read of a file gives into the buffer, and returns its
// length. Attributes of sysfs are read in this way.
func ReadOnce(path string, buffer []byte) (int, error) {
	fd, _, err := open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Close(fd) }()
	n, err := read(fd, buffer)
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return n, nil
}

// Names returns the names in a folder, sorted. It fails for a folder with more than
// limit names.
func Names(folder string, limit int) ([]string, error) {
	opened, err := os.OpenFile(folder, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	names, err := opened.Readdirnames(limit + 1)
	switch {
	case errors.Is(err, io.EOF): // it is empty
		return nil, nil
	case err != nil:
		return nil, err
	case len(names) > limit:
		return nil, &fs.PathError{Op: "list", Path: folder, Err: &source.Failure{
			Reason: source.ReasonResourceExhausted, Err: fmt.Errorf("it has more names than the limit of %d", limit)}}
	}
	slices.Sort(names)
	return names, nil
}

// open opens a regular file and returns its size. It waits neither for a writer of a
// pipe nor for a device, and makes no terminal the one of this process.
func open(path string) (fd int, size int64, err error) {
	for {
		fd, err = syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		return 0, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	var found syscall.Stat_t
	if err = syscall.Fstat(fd, &found); err == nil {
		err = checkType(uint32(found.Mode) & syscall.S_IFMT)
	}
	if err != nil {
		_ = syscall.Close(fd) // nothing was read
		return 0, 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, found.Size, nil
}

// checkType refuses irregular files: reading from a pipe or a device takes data from
// other readers, and may never end.
func checkType(bits uint32) error {
	switch bits {
	case syscall.S_IFREG:
		return nil
	case syscall.S_IFDIR:
		return &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf("it is not a regular file: %w", syscall.EISDIR)}
	default:
		return &source.Failure{Reason: source.ReasonInvalid, Err: errors.New("it is not a regular file")}
	}
}

// typeBits returns the type of a file as fstat has it; 0 for what is neither a file
// nor a folder.
func typeBits(mode fs.FileMode) uint32 {
	switch {
	case mode.IsRegular():
		return syscall.S_IFREG
	case mode.IsDir():
		return syscall.S_IFDIR
	default:
		return 0
	}
}

// readAll reads to the end. It does not wait: a read that could not be answered now
// fails with EAGAIN.
func readAll(fd int, path string, limit, size int64) ([]byte, error) {
	const step = 4 << 10
	text := make([]byte, 0, min(max(size, step)+1, limit+1))
	for {
		n, err := read(fd, text[len(text):cap(text)])
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		}
		text = text[:len(text)+n]
		switch {
		case n == 0:
			return text, nil
		case int64(len(text)) > limit:
			return nil, &fs.PathError{Op: "read", Path: path, Err: tooLarge(limit)}
		case len(text) == cap(text):
			text = slices.Grow(text, int(min(int64(max(len(text), step)), limit+1-int64(len(text)))))
		}
	}
}

// read is one read that is repeated if a signal has interrupted it.
func read(fd int, buffer []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, buffer)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

func tooLarge(limit int64) error {
	return &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf("it has more than %d bytes", limit)}
}

package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// maxFile is more than the kernel writes of one process: a path of 4 KiB for
// each of the hierarchies of version 1.
const maxFile = 64 << 10

var errTooLarge = errors.New("it is larger than 64 KiB")

// errGone says that there is no such process, or none any more.
var errGone = errors.New("no such process")

// identity tells a process from a later one with its pid. procfs makes an
// inode for each process that somebody asks for, and keeps it for that
// process alone: once it has ended, the inode of its pid is another. The
// kernel may forget an inode and make a new one; then a process that is still
// the same looks like another, and is only read once more.
//
// To ask for it takes one system call, whose cost does not depend on how many
// threads the process has, as that of its stat file does.
type identity struct {
	inode   uint64
	changed int64 // when the inode was made, or an entry of the folder of an imitated procfs
}

// identify returns the present identity of the process in a folder of procfs.
func identify(folder string) (identity, error) {
	var found unix.Stat_t
	err := again(func() error { return unix.Stat(folder, &found) })
	return identityOf(folder, &found, err)
}

func identityOf(folder string, found *unix.Stat_t, err error) (identity, error) {
	switch {
	case err != nil:
		return identity{}, failed("stat", folder, err)
	case found.Mode&unix.S_IFMT != unix.S_IFDIR:
		return identity{}, failed("stat", folder, unix.ENOTDIR)
	}
	return identity{found.Ino, found.Ctim.Nano()}, nil
}

// sighting is all that one look at the files of a process tells.
type sighting struct {
	identity
	life
	owner dra.Owner
}

// files reads the files of processes. It is not safe for concurrent use.
type files struct{ buffer []byte }

func newFiles() *files { return &files{make([]byte, maxFile)} }

// look reads all of the process in the folder. It opens the folder first, and
// so reads one process even if its pid becomes another's meanwhile. The error
// is errGone if there is none.
func (f *files) look(folder string) (sighting, error) {
	at, err := open(unix.AT_FDCWD, folder, unix.O_DIRECTORY)
	if err != nil {
		return sighting{}, failed("open", folder, err)
	}
	defer func() { _ = unix.Close(at) }()
	var found unix.Stat_t
	err = again(func() error { return unix.Fstat(at, &found) })
	var s sighting
	if s.identity, err = identityOf(folder, &found, err); err != nil {
		return sighting{}, err
	}
	text, err := f.read(at, folder, "stat")
	if err != nil {
		return sighting{}, err
	}
	if s.life, err = decodeLife(text); err != nil {
		return sighting{}, undecoded(folder+"/stat", err)
	}
	if text, err = f.read(at, folder, "cgroup"); err != nil {
		return sighting{}, err
	}
	if s.owner, err = decodeOwner(text); err != nil {
		return sighting{}, undecoded(folder+"/cgroup", err)
	}
	return s, nil
}

func undecoded(path string, err error) error {
	return &source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf("decode %s: %w", path, err)}
}

// read returns what the file in an open folder holds; it is good until the
// next call.
func (f *files) read(at int, folder, name string) ([]byte, error) {
	path := folder + "/" + name
	fd, err := open(at, name, 0)
	if err != nil {
		return nil, failed("open", path, err)
	}
	defer func() { _ = unix.Close(fd) }()
	for total := 0; ; {
		var n int
		err := again(func() (err error) { n, err = unix.Read(fd, f.buffer[total:]); return err })
		if err != nil {
			return nil, failed("read", path, err)
		}
		if n == 0 {
			return f.buffer[:total], nil
		}
		if total += n; total == len(f.buffer) {
			return nil, failed("read", path, errTooLarge)
		}
	}
}

func open(at int, name string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// again repeats a system call that a signal has interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// failed is errGone where the error means that there is no such process:
// ENOENT before a file is opened, ESRCH after.
func failed(op, path string, err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) {
		return errGone
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

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

// maxFile is more than the kernel writes for one process: a path of 4 KiB for
// each of the hierarchies of version 1.
const maxFile = 64 << 10

var errTooLarge = errors.New("it is larger than 64 KiB")

// errGone means that there is no such process, or that it has ended.
var errGone = errors.New("no such process")

// processIdentity distinguishes a process from a later one with the same pid. procfs
// creates an inode for each process that is read, and keeps it for that process
// alone: after it has ended, its pid has another inode. The kernel may drop an
// inode and create a new one. Then the same process looks like another, which
// only causes one more read.
//
// Reading it takes one system call, whose cost does not depend on the number of
// threads, unlike that of the stat file.
type processIdentity struct {
	inode   uint64
	changed int64 // when the inode was created, or an entry of the folder of a simulated procfs
}

// identify returns the current identity of the process in a folder of procfs.
func identify(folder string) (processIdentity, error) {
	var found unix.Stat_t
	err := retryInterrupted(func() error { return unix.Stat(folder, &found) })
	return newProcessIdentity(folder, &found, err)
}

func newProcessIdentity(folder string, found *unix.Stat_t, err error) (processIdentity, error) {
	switch {
	case err != nil:
		return processIdentity{}, failed("stat", folder, err)
	case found.Mode&unix.S_IFMT != unix.S_IFDIR:
		return processIdentity{}, failed("stat", folder, unix.ENOTDIR)
	}
	return processIdentity{found.Ino, found.Ctim.Nano()}, nil
}

// procInfo is what the files of a process say at one time.
type procInfo struct {
	processIdentity
	lifetime
	owner dra.Owner
}

// files reads the files of processes. It is not safe for concurrent use.
type files struct{ buffer []byte }

func newFiles() *files { return &files{make([]byte, maxFile)} }

// readProcess reads the files of the process in the folder. It opens the folder
// first, so that all of them are of one process even if its pid is reused in
// between. The error is errGone if there is no such process.
func (f *files) readProcess(folder string) (procInfo, error) {
	at, err := open(unix.AT_FDCWD, folder, unix.O_DIRECTORY)
	if err != nil {
		return procInfo{}, failed("open", folder, err)
	}
	defer func() { _ = unix.Close(at) }()
	var found unix.Stat_t
	err = retryInterrupted(func() error { return unix.Fstat(at, &found) })
	var s procInfo
	if s.processIdentity, err = newProcessIdentity(folder, &found, err); err != nil {
		return procInfo{}, err
	}
	text, err := f.read(at, folder, "stat")
	if err != nil {
		return procInfo{}, err
	}
	if s.lifetime, err = decodeStat(text); err != nil {
		return procInfo{}, undecoded(folder+"/stat", err)
	}
	if text, err = f.read(at, folder, "cgroup"); err != nil {
		return procInfo{}, err
	}
	if s.owner, err = decodeOwner(text); err != nil {
		return procInfo{}, undecoded(folder+"/cgroup", err)
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
		err := retryInterrupted(func() (err error) { n, err = unix.Read(fd, f.buffer[total:]); return err })
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
	err = retryInterrupted(func() (err error) {
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		return err
	})
	return fd, err
}

// again repeats a system call that a signal has interrupted.
func retryInterrupted(call func() error) error {
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

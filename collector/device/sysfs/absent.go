package sysfs

import (
	"errors"
	"io/fs"
	"syscall"
)

// notSupported is the kernel's own ENOTSUPP, which some drivers let out.
const notSupported = syscall.Errno(524)

// Absent reports whether an error only says that there is no such value:
// drivers leave out the files of what a device does not have, or answer their
// reading with one of a few codes.
func Absent(err error) bool {
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	for _, code := range []error{syscall.EOPNOTSUPP, syscall.ENODATA, syscall.EINVAL, notSupported} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

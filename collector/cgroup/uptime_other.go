//go:build !linux

package cgroup

import (
	"errors"
	"time"
)

// uptime fails: without Linux there is no procfs to compare it with.
func uptime() (time.Duration, error) {
	return 0, errors.New("read the time since boot: only known on Linux")
}

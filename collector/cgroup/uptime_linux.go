package cgroup

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long ago the machine booted, as the start times of processes
// count it: with the time that it was suspended, and in the time namespace of
// this process.
func uptime() (time.Duration, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, fmt.Errorf("read the time since boot: %w", err)
	}
	return time.Duration(now.Nano()), nil
}

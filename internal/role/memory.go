package role

import (
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/hostfile"
)

// Go's memory limit as a share of the memory limit of the process's cgroup. In the
// node role, vendors' libraries allocate memory outside of Go.
const (
	ClusterMemoryShare = 0.9
	NodeMemoryShare    = 2.0 / 3
)

// LimitMemory sets Go's memory limit to a share of the cgroup's, unless
// GOMEMLIMIT is set or the cgroup has none.
func LimitMemory(share float64, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, limited := cgroupMemoryLimit("/")
	if !limited {
		return
	}
	soft := int64(float64(limit) * share)
	debug.SetMemoryLimit(soft)
	log.Info("Go's memory limit is set from the cgroup", "cgroup_bytes", limit, "go_bytes", soft)
}

// Series of one family for which there is memory. A series takes less than a
// kilobyte, with its labels and its part of a page, but several families may
// have as many, and most memory is that of objects. With the limit of the chart
// this suffices for the devices of 20,000 nodes.
const (
	bytesPerSeries  = 10 << 10 // of Go's memory limit
	fewestSeries    = 10_000
	mostSeries      = 1_000_000
	unlimitedSeries = 100_000 // without a memory limit
)

// SeriesLimit returns how many series a family may have, given Go's memory limit.
func SeriesLimit(log *slog.Logger) int {
	limit := seriesWithin(debug.SetMemoryLimit(-1))
	log.Info("the number of series of a family is limited", "series", limit)
	return limit
}

// seriesWithin returns the number for a memory limit in bytes, math.MaxInt64
// without one.
func seriesWithin(memory int64) int {
	if memory == math.MaxInt64 {
		return unlimitedSeries
	}
	return int(min(max(memory/bytesPerSeries, fewestSeries), mostSeries))
}

// Limits of reads of cgroups.
const (
	cgroupFileBytes = 64 << 10
	cgroupDepth     = 64
)

// cgroupMemoryLimit returns the smallest memory limit of this process's cgroup and its
// ancestors, as far as they are visible below the root, in bytes; false if there is
// none. Files that cannot be read are ignored.
func cgroupMemoryLimit(root string) (int64, bool) {
	smallest := int64(math.MaxInt64)
	for line := range strings.Lines(readFile(filepath.Join(root, "proc/self/cgroup"))) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		group := filepath.Clean("/" + fields[2])
		switch controllers := strings.Split(fields[1], ","); {
		case fields[1] == "": // version 2
			smallest = min(smallest, smallestLimit(filepath.Join(root, "sys/fs/cgroup"), group, "memory.max"))
		case slices.Contains(controllers, "memory"):
			smallest = min(smallest, smallestLimit(filepath.Join(root, "sys/fs/cgroup/memory"), group, "memory.limit_in_bytes"))
		}
	}
	return smallest, smallest < unlimited
}

// unlimited is less than the value without a limit in version 1: the largest number of
// whole pages.
const unlimited = 1 << 60

// smallestLimit returns the smallest limit of a cgroup and its ancestors. In a container
// the path may be that of the host, of which only the container's own cgroup is
// mounted, as the root.
func smallestLimit(mount, group, file string) int64 {
	smallest := int64(math.MaxInt64)
	for range cgroupDepth {
		limit, err := strconv.ParseInt(strings.TrimSpace(readFile(filepath.Join(mount, group, file))), 10, 64)
		if err == nil && limit > 0 {
			smallest = min(smallest, limit)
		}
		if group == "/" {
			break
		}
		group = filepath.Dir(group)
	}
	return smallest
}

// readFile returns the text of a file; nothing if it cannot be read.
func readFile(path string) string {
	text, err := hostfile.ReadKernel(path, cgroupFileBytes)
	if err != nil {
		return ""
	}
	return string(text)
}

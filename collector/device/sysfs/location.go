package sysfs

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// locationsInterval is the time between two looks at the PCI functions: few are ever
// added, such as the virtual functions of a network adapter.
const locationsInterval = time.Minute

// locationsTimeout is how long a look may take before it is logged.
const locationsTimeout = 10 * time.Second

// LocationReader reads where the PCI functions of a node are. What cannot be read is
// unknown, which is no failure: a virtual machine may have no PCI. Latest is safe for
// concurrent use.
type LocationReader struct {
	root    string
	log     *slog.Logger
	look    func() map[string]device.Location // locations
	files   Files
	known   map[string]device.Location
	latest  atomic.Pointer[device.Locations]
	changed chan struct{}
}

// NewLocationReader returns a reader of the sysfs that is mounted at root.
func NewLocationReader(root string, log *slog.Logger) *LocationReader {
	r := &LocationReader{root: root, log: log, changed: make(chan struct{}, 1)}
	r.look = r.locations
	return r
}

// Run reads now and each minute, until the context ends, even if a look hangs: the
// goroutine of that look remains until it returns. Call Run once.
func (r *LocationReader) Run(ctx context.Context) {
	ticker := time.NewTicker(locationsInterval)
	defer ticker.Stop()
	for {
		known, ok := source.Await(ctx, locationsTimeout, func() {
			r.log.Warn("the locations of PCI functions cannot be read: sysfs hangs", "folder", r.root, "after", locationsTimeout)
		}, r.look)
		if !ok {
			return
		}
		r.apply(known)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Latest returns the locations that were read last. The pointer changes only if they
// have.
func (r *LocationReader) Latest() *device.Locations { return r.latest.Load() }

// Changed receives after each read that found other locations. It holds one signal.
func (r *LocationReader) Changed() <-chan struct{} { return r.changed }

func (r *LocationReader) apply(known map[string]device.Location) {
	if maps.Equal(known, r.known) {
		return
	}
	r.known = known
	r.latest.Store(device.NewLocations(known))
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// locations returns where each function is whose place is known.
func (r *LocationReader) locations() map[string]device.Location {
	names, err := Names(filepath.Join(r.root, "bus/pci/devices"))
	if err != nil {
		return nil
	}
	found := make(map[string]device.Location)
	for _, name := range names {
		folder, address := FunctionFolder(r.root, name), device.PCIAddress(name)
		at := device.Location{PCIeRoot: rootComplex(folder), NUMANode: r.numaNode(folder), Network: r.isNetwork(folder)}
		if address != "" && at != (device.Location{}) {
			found[address] = at
		}
	}
	return found
}

// rootComplex returns the root complex in the path of a function, which the link of
// its folder has: ../../../devices/pci0000:17/0000:17:01.0/0000:18:00.0. Kubernetes'
// attribute pcieRoot has the same spelling.
func rootComplex(folder string) string {
	path, err := os.Readlink(folder)
	if err != nil {
		return ""
	}
	for part := range strings.SplitSeq(path, "/") {
		numbers, isRoot := strings.CutPrefix(part, "pci")
		domain, bus, whole := strings.Cut(numbers, ":")
		if isRoot && whole && isHex(domain) && isHex(bus) {
			return part
		}
	}
	return ""
}

func isHex(text string) bool {
	_, err := strconv.ParseUint(text, 16, 32)
	return err == nil
}

// isNetwork reports whether the PCI class of a function is that of network
// controllers, such as 0x020000 of Ethernet and 0x020700 of InfiniBand.
func (r *LocationReader) isNetwork(folder string) bool {
	text, err := r.files.Text(filepath.Join(folder, "class"))
	return err == nil && len(text) == len("0x020000") && strings.HasPrefix(text, "0x02")
}

// numaNode returns the number of the function's NUMA node; empty: the kernel knows
// none.
func (r *LocationReader) numaNode(folder string) string {
	text, err := r.files.Text(filepath.Join(folder, "numa_node"))
	if number, notNumber := strconv.ParseUint(text, 10, 31); err == nil && notNumber == nil {
		return strconv.FormatUint(number, 10)
	}
	return ""
}

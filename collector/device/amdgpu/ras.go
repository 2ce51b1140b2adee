package amdgpu

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// errorCounts are the sums over the card's blocks.
type errorCounts struct {
	uncorrected, corrected sysfs.Total
}

// isMemory tells the blocks whose errors are those of memories, on the card or
// in the GPU, from those of links to elsewhere.
func isMemory(block string) bool {
	return block != "xgmi_wafl" && block != "pcie_bif" && block != "pcie"
}

// countErrors adds the memory errors that the driver has counted since it was
// loaded. Deferred errors, which nothing has consumed yet, are uncorrected
// ones that the driver does not count as such; they are left out.
func (c *card) countErrors(o *device.Observation) error {
	folder := filepath.Join(c.folder, "ras")
	names, err := sysfs.Names(folder)
	if err != nil {
		if sysfs.Absent(err) {
			return nil
		}
		return c.failure(device.ECCErrors, err)
	}
	uncorrected, corrected := make(map[string]float64), make(map[string]float64)
	var errs []error
	for _, name := range names {
		block, isCount := strings.CutSuffix(name, "_err_count")
		if !isCount || !isMemory(block) {
			continue
		}
		count, err := c.blockErrors(filepath.Join(folder, name))
		switch {
		case err == nil:
			uncorrected[block], corrected[block] = count.uncorrected, count.corrected
		case !sysfs.Absent(err):
			errs = append(errs, c.failure(device.ECCErrors, err))
		}
	}
	for _, part := range []struct {
		severity string
		total    *sysfs.Total
		answered map[string]float64
	}{{"uncorrected", &c.errors.uncorrected, uncorrected}, {"corrected", &c.errors.corrected, corrected}} {
		if len(part.answered) > 0 {
			total, _ := part.total.Sum(part.answered)
			add(o, device.Slow, device.Reading{Quantity: device.ECCErrors, Details: [2]string{part.severity}, Value: total})
		}
	}
	return errors.Join(errs...)
}

// linkErrors adds the errors of the links to other cards that the driver has
// counted since it was loaded.
func (c *card) linkErrors(o *device.Observation) error {
	count, err := c.blockErrors(filepath.Join(c.folder, "ras/xgmi_wafl_err_count"))
	switch {
	case sysfs.Absent(err):
		return nil
	case err != nil:
		return c.failure(device.XGMIErrors, err)
	}
	add(o, device.Slow, device.Reading{Quantity: device.XGMIErrors, Details: [2]string{"uncorrected"}, Value: count.uncorrected})
	add(o, device.Slow, device.Reading{Quantity: device.XGMIErrors, Details: [2]string{"corrected"}, Value: count.corrected})
	return nil
}

func (c *card) blockErrors(path string) (blockCount, error) {
	text, err := c.files.Text(path)
	if err != nil {
		return blockCount{}, err
	}
	count, err := parseBlockCount(text)
	if err != nil {
		return blockCount{}, &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return count, nil
}

// blockCount is how many errors one block has had.
type blockCount struct {
	uncorrected, corrected float64
}

// errBusy is what the driver says while the card is being reset.
var errBusy = fmt.Errorf("the driver does not answer now: %w", fs.ErrNotExist)

// parseBlockCount reads what a file of a block says: lines of a kind of error
// ("ue", "ce", and on some "de") and a count.
func parseBlockCount(text string) (blockCount, error) {
	if strings.HasPrefix(text, "Query currently inaccessible") {
		return blockCount{}, errBusy
	}
	kinds := make(map[string]float64)
	for line := range strings.Lines(text) {
		kind, count, _ := strings.Cut(line, ":")
		value, err := sysfs.ParseNumber(strings.TrimSpace(count))
		if err != nil {
			return blockCount{}, err
		}
		kinds[strings.TrimSpace(kind)] = value
	}
	uncorrected, hasUncorrected := kinds["ue"]
	corrected, hasCorrected := kinds["ce"]
	if !hasUncorrected || !hasCorrected {
		return blockCount{}, errors.New("no counts of uncorrected and corrected errors")
	}
	return blockCount{uncorrected: uncorrected, corrected: corrected}, nil
}

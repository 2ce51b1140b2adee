package amdgpu

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// errorCounts are the sums over the card's blocks.
type errorCounts struct {
	uncorrected, corrected sysfs.Total
}

// isMemory reports whether the errors of a block are memory errors, on the card
// or in the GPU, and not errors of links.
func isMemory(block string) bool {
	return block != "xgmi_wafl" && block != "pcie_bif" && block != "pcie"
}

// blockCount is the number of errors of one block.
type blockCount struct {
	uncorrected, corrected float64
}

// errBusy means that the card is being reset.
var errBusy = fmt.Errorf("the driver does not answer now: %w", fs.ErrNotExist)

// parseBlockCount parses the file of a block: lines of a kind of error ("ue",
// "ce", and on some "de") and a count.
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
	uncorrected, ok := kinds["ue"]
	corrected, hasCorrected := kinds["ce"]
	if !ok || !hasCorrected {
		return blockCount{}, errors.New("no counts of uncorrected and corrected errors")
	}
	return blockCount{uncorrected: uncorrected, corrected: corrected}, nil
}

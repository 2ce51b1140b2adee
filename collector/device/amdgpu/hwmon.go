package amdgpu

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// hwmon is the card's hwmon device. Its number changes whenever the driver
// registers it again, for example after a reset.
type hwmon struct {
	folder string            // empty: the card has none
	inputs map[string]string // the file of each temperature, by the label of its sensor
}

// find finds the device in the card's folder.
func (h *hwmon) find(files *sysfs.Files, among string) error {
	names, err := sysfs.Names(among)
	if err != nil || len(names) == 0 {
		*h = hwmon{}
		if err == nil || sysfs.Absent(err) {
			return nil
		}
		return fmt.Errorf("list the hwmon devices: %w", err)
	}
	if folder := filepath.Join(among, names[0]); folder != h.folder {
		h.folder, h.inputs = folder, nil
	}
	if h.inputs == nil {
		return h.readLabels(files)
	}
	return nil
}

// readLabels maps the temperatures to the labels of their sensors. The oldest
// cards have one sensor without a label, at the edge of the die.
func (h *hwmon) readLabels(files *sysfs.Files) error {
	names, err := sysfs.Names(h.folder)
	if err != nil {
		return fmt.Errorf("list the sensors: %w", err)
	}
	inputs := make(map[string]string)
	for _, name := range names {
		sensor, isInput := strings.CutSuffix(name, "_input")
		if !isInput || !strings.HasPrefix(sensor, "temp") {
			continue
		}
		label, err := files.Text(filepath.Join(h.folder, sensor+"_label"))
		switch {
		case err == nil:
			inputs[label] = name
		case sysfs.Absent(err) && sensor == "temp1":
			inputs["edge"] = name
		case !sysfs.Absent(err):
			return fmt.Errorf("read the label of a sensor: %w", err)
		}
	}
	h.inputs = inputs
	return nil
}

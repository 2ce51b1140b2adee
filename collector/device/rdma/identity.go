package rdma

import (
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/collector/device/sysfs"
)

// identify asks anew what the function is. Its model is what its driver calls
// it (MT4129), else the board's identification, else its PCI number.
func (a *adapter) identify(devices []string) error {
	function, err := a.files.Function(a.folder)
	if err != nil {
		return err
	}
	id := &a.identity
	id.Vendor, id.DriverVersion, id.Model = vendorOf(function), function.DriverVersion, function.ID()
	for _, file := range []string{"board_id", "hca_type"} {
		if len(devices) == 0 {
			break
		}
		// A driver that does not tell it leaves it out.
		if text, err := a.files.Text(filepath.Join(a.folder, "infiniband", devices[0], file)); err == nil && text != "" {
			id.Model = text
		}
	}
	id.Nodes = a.nodes()
	a.known = true
	return nil
}

// nodes are the device files through which programs use the function.
func (a *adapter) nodes() []string {
	names, err := sysfs.Names(filepath.Join(a.folder, "infiniband_verbs"))
	if err != nil {
		return nil // without them the function is matched otherwise
	}
	var nodes []string
	for _, name := range names {
		nodes = append(nodes, "/dev/infiniband/"+name)
	}
	return nodes
}

// vendorOf names the maker of a function by its PCI number; an unknown one is
// the number. Those that also make accelerators, whose own DRA drivers publish
// no adapters, are told apart from these.
func vendorOf(function sysfs.Function) string {
	switch function.Vendor {
	case "15b3":
		return "mellanox"
	case "14e4":
		return "broadcom"
	case "1d0f":
		return "amazon"
	case "1dd8":
		return "pensando"
	case "1077":
		return "qlogic"
	case "1425":
		return "chelsio"
	case "1414":
		return "microsoft"
	case "19e5":
		return "huawei"
	case "1ded":
		return "alibaba"
	case "434e":
		return "cornelis"
	case "8086":
		return "intel-network"
	case "1ae0":
		return "google-network"
	default:
		return function.Vendor
	}
}

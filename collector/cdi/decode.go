package cdi

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// errNoSpec means that a file is JSON or YAML but not a CDI specification.
var errNoSpec = errors.New("it has no cdiVersion, or its kind is not of the form vendor/class")

// maxValues is the most values of one specification: one of 64 devices has some
// thousands.
const maxValues = 250_000

// Decode decodes one CDI specification, JSON or YAML, regardless of the file's
// name; filename is used in errors only. For each device it keeps the device
// nodes of its own edits, by their path on the host. Edits of the whole
// specification apply to every device and so identify none.
func Decode(data []byte, filename string) ([]dra.CDIDevice, error) {
	if err := objectfields.CheckYAML(data, maxValues, maxFile); err != nil {
		return nil, fmt.Errorf("decode the CDI specification %s: %w", filename, err)
	}
	var spec specs.Spec
	if err := yaml.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("decode the CDI specification %s: %w", filename, err)
	}
	vendor, class, _ := strings.Cut(spec.Kind, "/")
	if spec.Version == "" || vendor == "" || class == "" {
		return nil, fmt.Errorf("decode the CDI specification %s: %w", filename, errNoSpec)
	}
	var devices []dra.CDIDevice
	for _, device := range spec.Devices {
		if device.Name == "" {
			continue
		}
		devices = append(devices, dra.CDIDevice{
			Name:  valid(spec.Kind + "=" + device.Name),
			Nodes: nodes(device.ContainerEdits.DeviceNodes),
		})
	}
	return devices, nil
}

func nodes(listed []*specs.DeviceNode) []string {
	var paths []string
	known := make(map[string]bool, len(listed))
	for _, node := range listed {
		if node == nil || node.Path == "" {
			continue
		}
		if path := valid(hostPath(node)); !known[path] {
			known[path] = true
			paths = append(paths, path)
		}
	}
	return paths
}

// hostPath returns the path of a device node on the host, which may have another
// path in the container. The host's /dev may be below the root of a driver that is
// installed in a container: /run/nvidia/driver/dev/nvidia0. Numbers decide over
// paths: a runtime makes the node of them.
func hostPath(node *specs.DeviceNode) string {
	const nvidia, drm = 195, 226 // majors; see the kernel's devices.txt
	switch {
	case node.Major == nvidia && node.Minor >= 0 && node.Minor < 248: // then come nvidia-modeset and nvidiactl
		return fmt.Sprintf("/dev/nvidia%d", node.Minor)
	case node.Major == drm && node.Minor >= 0 && node.Minor < 64:
		return fmt.Sprintf("/dev/dri/card%d", node.Minor)
	case node.Major == drm && node.Minor >= 128 && node.Minor < 192:
		return fmt.Sprintf("/dev/dri/renderD%d", node.Minor)
	default:
		path := cmp.Or(node.HostPath, node.Path)
		return path[max(0, strings.LastIndex(path, "/dev/")):]
	}
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

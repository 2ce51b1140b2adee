package cdi

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// errNoSpec means that a file is JSON or YAML but not a CDI specification.
var errNoSpec = errors.New("it has no cdiVersion, or its kind is not of the form vendor/class")

// Decode decodes one CDI specification, JSON or YAML, regardless of the file's
// name; filename is used in errors only. For each device it keeps the device
// nodes of its own edits, by their path in the container. Edits of the whole
// specification apply to every device and so identify none.
func Decode(data []byte, filename string) ([]dra.CDIDevice, error) {
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
	for _, node := range listed {
		if node == nil || node.Path == "" {
			continue
		}
		if path := valid(node.Path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

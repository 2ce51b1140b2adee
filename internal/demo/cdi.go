package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// cdiKind is the kind of NVIDIA's specifications: one file for each claim.
const cdiKind = "k8s." + driver + "/claim"

// cdiFolder is where NVIDIA's driver writes a claim's specification when it
// prepares it, and removes it when it unprepares it. Adapters need none: they
// are moved into the pod's network namespace.
type cdiFolder struct {
	path     string
	hardware hardware
}

func cdiName(claim types.UID, device string) string { return string(claim) + "-" + device }

func (f cdiFolder) file(claim types.UID) string {
	return filepath.Join(f.path, fmt.Sprintf("k8s.%s-claim_%s.yaml", driver, claim))
}

// write writes or replaces the claim's specification atomically.
func (f cdiFolder) write(claim *resourcev1.ResourceClaim) error {
	specification := f.specification(claim)
	if len(specification.Devices) == 0 {
		return nil
	}
	data, err := yaml.Marshal(specification)
	if err != nil {
		return fmt.Errorf("encode the CDI specification of %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	draft := f.file(claim.UID) + ".draft"
	if err := os.WriteFile(draft, data, 0o644); err != nil {
		return fmt.Errorf("write the CDI specification of %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	if err := os.Rename(draft, f.file(claim.UID)); err != nil {
		return fmt.Errorf("publish the CDI specification of %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func (f cdiFolder) remove(claim *resourcev1.ResourceClaim) error {
	if err := os.Remove(f.file(claim.UID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the CDI specification of %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

func (f cdiFolder) specification(claim *resourcev1.ResourceClaim) *specs.Spec {
	spec := &specs.Spec{
		Version: "0.5.0",
		Kind:    cdiKind,
		ContainerEdits: specs.ContainerEdits{
			Env:         []string{"NVIDIA_VISIBLE_DEVICES=void"},
			DeviceNodes: deviceNodes("/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidiactl"),
		},
	}
	seen := make(map[string]bool)
	for _, allocated := range claim.Status.Allocation.Devices.Results {
		name := cdiName(claim.UID, allocated.Device)
		if seen[name] || allocated.Driver != driver {
			continue
		}
		seen[name] = true
		spec.Devices = append(spec.Devices, specs.Device{
			Name:           name,
			ContainerEdits: specs.ContainerEdits{DeviceNodes: deviceNodes(f.hardware.deviceNodes(allocated.Device)...)},
		})
	}
	return spec
}

func deviceNodes(paths ...string) []*specs.DeviceNode {
	var nodes []*specs.DeviceNode
	for _, path := range paths {
		nodes = append(nodes, &specs.DeviceNode{Path: path, Permissions: "rwm"})
	}
	return nodes
}

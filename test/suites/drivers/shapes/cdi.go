package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	cdi "tags.cncf.io/container-device-interface/specs-go"
)

// specFolder writes one CDI spec a claim, in the spelling of NVIDIA's driver:
// kind k8s.<driver>/claim, devices <claim UID>-<device>.
type specFolder struct {
	root   string
	driver string
}

func (f specFolder) kind() string { return "k8s." + f.driver + "/claim" }

func (f specFolder) path(claim types.UID) string {
	return filepath.Join(f.root, fmt.Sprintf("k8s.%s-claim_%s.json", f.driver, claim))
}

// write makes or replaces the claim's spec. The runtime never sees half a file.
func (f specFolder) write(claim types.UID, results []resourceapi.DeviceRequestAllocationResult) error {
	spec := cdi.Spec{Version: "0.6.0", Kind: f.kind()}
	for _, result := range results {
		spec.Devices = append(spec.Devices, cdi.Device{
			Name:           deviceName(claim, result),
			ContainerEdits: cdi.ContainerEdits{Env: []string{variableName(result) + "=" + string(claim)}},
		})
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.root, 0o755); err != nil {
		return err
	}
	draft := f.path(claim) + ".draft"
	if err := os.WriteFile(draft, data, 0o644); err != nil {
		return err
	}
	return os.Rename(draft, f.path(claim))
}

func (f specFolder) remove(claim types.UID) error {
	if err := os.Remove(f.path(claim)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// deviceName is the CDI name of one allocated device: a device that one claim
// holds by two shares has two names.
func deviceName(claim types.UID, result resourceapi.DeviceRequestAllocationResult) string {
	name := string(claim) + "-" + result.Device
	if result.ShareID != nil {
		name += "-" + string(*result.ShareID)
	}
	return name
}

// variableName is SHAPES_ and the device's name as a shell would write it:
// gpu-1-mig-1g10gb-19-0 is SHAPES_GPU_1_MIG_1G10GB_19_0. A share of a device
// has its id in the name, since a container may have several.
func variableName(result resourceapi.DeviceRequestAllocationResult) string {
	name := result.Device
	if result.ShareID != nil {
		name += "-" + string(*result.ShareID)
	}
	return "SHAPES_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
}

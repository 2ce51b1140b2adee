package vendors

import (
	"strconv"
	"strings"
)

// PluginForm is a form of the ids by which device plugins name their devices.
type PluginForm uint8

// The forms, as dra_exporter_unresolved_plugin_devices names them.
const (
	PluginOther     PluginForm = iota // of no known form
	PluginUUID                        // GPU-<uuid>, of NVIDIA's plugin and of those that share its GPUs
	PluginAddress                     // 0000:c1:00.0, of AMD's plugin and of those for PCI functions
	PluginNode                        // nvidia0, of GKE's plugin; card0 of Intel's; renderD128
	PluginPartition                   // nvidia0/gi1, of GKE's plugin; amdgpu_xcp_1 of AMD's
	PluginIndex                       // 0: a number, of what is not known
	PluginForms
)

// String returns the label of the form.
func (f PluginForm) String() string {
	return [PluginForms]string{
		PluginOther:     "other",
		PluginUUID:      "uuid",
		PluginAddress:   "pci_address",
		PluginNode:      "device_node",
		PluginPartition: "partition",
		PluginIndex:     "index",
	}[f]
}

// PluginID is what the id of a device plugin's device says. What it does not say is
// empty, or -1.
type PluginID struct {
	Form   PluginForm
	Vendor string // of the hardware; empty: the form is of several vendors

	UUIDs       []string // which the id may be: with and without the number of a share
	Address     string   // as PCIAddress spells it
	Node        string   // the device file
	Minor       int      // the N of /dev/nvidiaN
	GPUInstance int      // of the partition there
}

// DecodePluginID decodes an id of the kubelet's PodResources. Plugins that let
// several containers share a device add a number to its id: <id>::3 (NVIDIA's
// replicas), <id>-3 (HAMi, Volcano, Intel's), <id>-_-3 (Alibaba Cloud's),
// <id>/vgpu3 (GKE's). Any of these is accepted after an id of any form.
//
// GKE's plugin names a GPU after its device file, and a MIG partition after the
// folder of its GPU instance: github.com/GoogleCloudPlatform/container-engine-accelerators.
// Intel's names a GPU after its DRM card: github.com/intel/intel-device-plugins-for-kubernetes.
// AMD's uses the PCI address, and for a partition the name of its platform device:
// github.com/ROCm/k8s-device-plugin.
func DecodePluginID(text string) PluginID {
	ids := []string{text}
	if base, ok := withoutShare(text); ok {
		ids = append(ids, base)
	}
	for _, id := range ids {
		if decoded := decodePlace(id); decoded.Form != PluginOther {
			decoded.UUIDs = ids
			return decoded
		}
	}
	decoded := PluginID{UUIDs: ids, Minor: -1, GPUInstance: -1}
	for _, id := range ids {
		switch {
		case strings.HasPrefix(id, "GPU-") || strings.HasPrefix(id, "MIG-"):
			decoded.Form, decoded.Vendor = PluginUUID, NVIDIA
		case len(id) == len("00000000-0000-0000-0000-000000000000") && strings.Count(id, "-") == 4:
			decoded.Form = PluginUUID
		case isNumber(id):
			decoded.Form = PluginIndex
		default:
			continue
		}
		break
	}
	return decoded
}

// decodePlace decodes an id that says where the device is.
func decodePlace(id string) PluginID {
	decoded := PluginID{Minor: -1, GPUInstance: -1}
	file := strings.TrimPrefix(strings.TrimPrefix(id, "/dev/"), "dri/")
	gpu, instance, isPartition := strings.Cut(file, "/gi")
	minor, isNVIDIA := numbered(gpu, "nvidia")
	_, isCard := numbered(file, "card")
	_, isRender := numbered(file, "renderD")
	_, isXCP := numbered(file, "amdgpu_xcp_")
	switch {
	case PCIAddress(id) != "":
		decoded.Form, decoded.Address = PluginAddress, PCIAddress(id)
	case isNVIDIA && isPartition:
		gi, ok := numbered(instance, "")
		if !ok {
			return decoded
		}
		decoded.Form, decoded.Vendor, decoded.Minor, decoded.GPUInstance = PluginPartition, NVIDIA, minor, gi
	case isNVIDIA:
		decoded.Form, decoded.Vendor, decoded.Minor, decoded.Node = PluginNode, NVIDIA, minor, "/dev/"+file
	case isCard, isRender:
		decoded.Form, decoded.Node = PluginNode, "/dev/dri/"+file
	case isXCP:
		decoded.Form, decoded.Vendor = PluginPartition, AMD
	}
	return decoded
}

// numbered returns the number after a prefix, if the rest is one and is spelled as
// a kernel spells it.
func numbered(text, prefix string) (int, bool) {
	digits, ok := strings.CutPrefix(text, prefix)
	n, err := strconv.ParseUint(digits, 10, 16)
	return int(n), ok && err == nil && strconv.FormatUint(n, 10) == digits
}

// withoutShare removes the number of a share from an id; false if it has none.
func withoutShare(id string) (string, bool) {
	if base, _, ok := strings.Cut(id, "::"); ok {
		return base, base != ""
	}
	rest := strings.TrimRight(id, "0123456789")
	if rest == id {
		return "", false
	}
	for _, separator := range []string{"/vgpu", "-_-", "-", "_", "/"} {
		if base, ok := strings.CutSuffix(rest, separator); ok {
			return base, base != ""
		}
	}
	return "", false
}

// ByResource returns the vendor of the devices of a device plugin's resource, and
// whether these are accelerators. The vendor is empty for a resource of an unknown
// plugin: it is one of accelerators if its name says so. With a resource for
// monitoring, a container sees devices and uses none.
func ByResource(resource string) (vendor string, accelerators bool) {
	if strings.HasSuffix(resource, "_monitoring") {
		return "", false
	}
	for _, v := range All() {
		for _, prefix := range v.Resources {
			if prefix != "" && strings.HasPrefix(resource, prefix) {
				return v.Name, true
			}
		}
	}
	return "", strings.Contains(strings.ToLower(resource), "gpu")
}

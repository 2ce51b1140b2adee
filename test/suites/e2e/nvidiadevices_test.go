package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// nvidiaDevice is a GPU, by its minor number, or a MIG device of one, by the
// ids of its instances.
type nvidiaDevice struct {
	gpu, gi, ci int // gi and ci are -1 for a GPU as a whole
}

// openableDevices returns the devices that a running container can open, which
// are those that NVIDIA's driver injected. A MIG device comes with the node of
// its GPU and is identified by the node of its compute instance.
func openableDevices(pod *corev1.Pod, container string) ([]nvidiaDevice, error) {
	pid, err := shared.ContainerPID(pod, container)
	if err != nil {
		return nil, err
	}
	dev := fmt.Sprintf("/proc/%d/root/dev", pid)
	whole, err := minorsOf(dev, "nvidia[0-9]*")
	if err != nil {
		return nil, err
	}
	capabilities, err := minorsOf(dev, "nvidia-caps/nvidia-cap*")
	if err != nil {
		return nil, err
	}
	var devices []nvidiaDevice
	for _, minor := range capabilities {
		if d, isCompute := computeInstance(minor); isCompute && slices.Contains(whole, d.gpu) {
			devices = append(devices, d)
		}
	}
	for _, minor := range whole {
		if !slices.ContainsFunc(devices, func(d nvidiaDevice) bool { return d.gpu == minor }) {
			devices = append(devices, nvidiaDevice{minor, -1, -1})
		}
	}
	return devices, nil
}

// computeInstance decodes the number of a capability, see
// cluster.MIGCapability.
func computeInstance(capability int) (d nvidiaDevice, isCompute bool) {
	const perInstance, perGPU = 9, 15 * 9
	n := capability - cluster.MIGCapability(0, 0)
	d = nvidiaDevice{gpu: n / perGPU, gi: n % perGPU / perInstance, ci: n%perInstance - 1}
	return d, n >= 0 && d.ci >= 0
}

// minorsOf returns the minor numbers of a folder's character devices.
func minorsOf(dev, pattern string) (minors []int, err error) {
	paths, err := filepath.Glob(filepath.Join(dev, pattern))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		var stat syscall.Stat_t
		if err := syscall.Stat(path, &stat); err != nil {
			return nil, fmt.Errorf("look at the device %s: %w", path, err)
		}
		if stat.Mode&syscall.S_IFMT == syscall.S_IFCHR {
			minors = append(minors, int(stat.Rdev&0xff|stat.Rdev>>12&0xfff00))
		}
	}
	return minors, nil
}

// heldNVIDIADevice is the device that a claim's containers can open.
type heldNVIDIADevice struct {
	nvidiaDevice
	gpuUUID, migUUID string // as NVIDIA's driver published and prepared them
}

// oldUUID returns the name of a MIG device whose UUID is not known, in
// NVIDIA's older format.
func (d heldNVIDIADevice) oldUUID() string { return fmt.Sprintf("MIG-%s/%d/%d", d.gpuUUID, d.gi, d.ci) }

// heldNVIDIADeviceOf reads the device nodes of containers, pod/container each,
// which must all have the same one device.
func heldNVIDIADeviceOf(t *testing.T, namespace string, containers []string) (d heldNVIDIADevice) {
	t.Helper()
	for i, name := range containers {
		podName, container, _ := strings.Cut(name, "/")
		devices, err := openableDevices(running(t, namespace, podName), container)
		if err != nil {
			t.Fatal(err)
		}
		if len(devices) != 1 || i > 0 && devices[0] != d.nvidiaDevice {
			t.Fatalf("%s can open the devices %v, and %s %v", name, devices, containers[0], d.nvidiaDevice)
		}
		d.nvidiaDevice = devices[0]
	}
	d.gpuUUID = publishedUUID(t, d.gpu)
	if d.gi >= 0 {
		d.migUUID = preparedMIG(t, d)
	}
	return d
}

// publishedUUID returns the UUID of a GPU from its slice, which has it as an
// attribute of the GPU or of its parts.
func publishedUUID(t *testing.T, gpu int) (uuid string) {
	t.Helper()
	found, err := shared.Client().ResourceV1().ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + cluster.NVIDIADriver})
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("gpu-%d", gpu)
	for _, slice := range found.Items {
		for _, device := range slice.Spec.Devices {
			switch {
			case device.Name == name:
				return text(device, "uuid")
			case strings.HasPrefix(device.Name, name+"-mig-"):
				uuid = text(device, "parentUUID")
			}
		}
	}
	return uuid
}

// preparedMIG returns the UUID of a MIG device from the checkpoint of NVIDIA's
// driver.
func preparedMIG(t *testing.T, d heldNVIDIADevice) (uuid string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(shared.KubeletDir(), "plugins", cluster.NVIDIADriver, "checkpoint.json"))
	if err != nil {
		t.Fatal(err)
	}
	var notes any
	if err := json.Unmarshal(data, &notes); err != nil {
		t.Fatal(err)
	}
	eachObject(notes, func(object map[string]any) {
		if object["parentUUID"] == d.gpuUUID && object["giId"] == float64(d.gi) && object["ciId"] == float64(d.ci) {
			uuid, _ = object["migUUID"].(string)
		}
	})
	if uuid == "" {
		t.Fatalf("the driver has prepared no MIG device %v of %s: %s", d.nvidiaDevice, d.gpuUUID, data)
	}
	return uuid
}

// eachObject calls do for every object in a JSON value.
func eachObject(value any, do func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		do(value)
		for _, inner := range value {
			eachObject(inner, do)
		}
	case []any:
		for _, inner := range value {
			eachObject(inner, do)
		}
	}
}

package cluster

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// standIns are replacements for the programs of NVIDIA's driver that its DRA
// driver runs, and the script that mounts the files which the kernel module
// would show.
//
//go:embed nvidia
var standIns embed.FS

// nvidiaVersion is the version of the kernel driver where none is set. The names of
// its libraries contain it.
const nvidiaVersion = "580.65.06"

// Major numbers of devices: 195 is assigned to NVIDIA, the others are chosen
// when the module is loaded.
const (
	nvidiaMajor = 195
	uvmMajor    = 510
	capsMajor   = 234
)

// driverRoot is the folder of what an installation of NVIDIA's driver puts on
// a node: root contains its files, next to those that the kernel module shows.
type driverRoot string

func (r driverRoot) path(parts ...string) string {
	return filepath.Join(append([]string{string(r)}, parts...)...)
}

func (c *Cluster) driverRoot() driverRoot { return driverRoot(c.layout.path("nvidia")) }

// makeDriverRoot creates the folder again for each driver.
func (c *Cluster) makeDriverRoot(options NVIDIAOptions) (driverRoot, error) {
	r := c.driverRoot()
	if err := os.RemoveAll(string(r)); err != nil {
		return "", err
	}
	for _, dir := range []string{"namespace", "root/usr/bin", "root/usr/lib64", "root/dev", "root/tmp/nvidia-mps", "root/var/log/nvidia-mps"} {
		if err := os.MkdirAll(r.path(dir), 0o755); err != nil {
			return "", err
		}
	}
	for _, step := range []func(NVIDIAOptions) error{r.copyFiles, r.makeDevices, r.makeCapabilities} {
		if err := step(options); err != nil {
			return "", err
		}
	}
	return r, nil
}

// copyFiles copies the library and the stand-ins. The driver only needs the
// name of libcuda.
func (r driverRoot) copyFiles(options NVIDIAOptions) error {
	library, err := os.ReadFile(options.Library)
	if err != nil {
		return err
	}
	version := cmp.Or(options.Version, nvidiaVersion)
	files := map[string][]byte{
		"root/usr/lib64/libnvidia-ml.so." + version: library,
		"root/usr/lib64/libcuda.so." + version:      nil,
	}
	for target, name := range map[string]string{
		"enter.sh": "enter.sh", "root/usr/bin/nvidia-smi": "nvidia-smi",
		"root/usr/bin/nvidia-cuda-mps-control": "nvidia-cuda-mps-control",
	} {
		if files[target], err = fs.ReadFile(standIns, "nvidia/"+name); err != nil {
			return err
		}
	}
	for target, content := range files {
		if err := os.WriteFile(r.path(target), content, 0o755); err != nil {
			return err
		}
	}
	for _, library := range []string{"libnvidia-ml.so", "libcuda.so"} {
		if err := os.Symlink(library+"."+version, r.path("root/usr/lib64", library+".1")); err != nil {
			return err
		}
	}
	return nil
}

// makeDevices creates the device nodes that the driver injects into
// containers. They have no device.
func (r driverRoot) makeDevices(options NVIDIAOptions) error {
	nodes := map[string][2]int{
		"nvidiactl":        {nvidiaMajor, 255},
		"nvidia-uvm":       {uvmMajor, 0},
		"nvidia-uvm-tools": {uvmMajor, 1},
	}
	for gpu := range options.GPUs {
		nodes[fmt.Sprint("nvidia", gpu)] = [2]int{nvidiaMajor, gpu}
	}
	for name, number := range nodes {
		device := number[0]<<8 | number[1]
		if err := syscall.Mknod(r.path("root/dev", name), syscall.S_IFCHR|0o666, device); err != nil {
			return fmt.Errorf("make the device %s: %w", name, err)
		}
	}
	return nil
}

// makeCapabilities writes the files that map MIG devices to device nodes. The
// module shows those of existing instances. Here they are written for all
// possible instances, because MIG devices are created and deleted.
func (r driverRoot) makeCapabilities(options NVIDIAOptions) error {
	for gpu := range options.GPUs {
		for gi := range 15 {
			folder := r.path(fmt.Sprintf("proc-driver/nvidia/capabilities/gpu%d/mig/gi%d", gpu, gi))
			if err := writeCapability(folder, MIGCapability(gpu, gi)); err != nil {
				return err
			}
			for ci := range 8 {
				if err := writeCapability(fmt.Sprintf("%s/ci%d", folder, ci), MIGCapability(gpu, gi)+1+ci); err != nil {
					return err
				}
			}
		}
	}
	devices := fmt.Sprintf("Character devices:\n  1 mem\n%d nvidia\n%d nvidia-caps\n%d nvidia-uvm\n\nBlock devices:\n  7 loop\n", nvidiaMajor, capsMajor, uvmMajor)
	return os.WriteFile(r.path("proc-devices"), []byte(devices), 0o644)
}

func writeCapability(folder string, minor int) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor)
	return os.WriteFile(filepath.Join(folder, "access"), []byte(text), 0o644)
}

// MIGCapability returns the minor number of the device node of a GPU instance,
// as /proc/driver/nvidia-caps/mig-minors numbers them. Those of its compute
// instances follow.
func MIGCapability(gpu, gi int) int { return 3 + gpu*135 + gi*9 }

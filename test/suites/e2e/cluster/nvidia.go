package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// NVIDIADriver is the name under which NVIDIA's driver registers.
	NVIDIADriver = "gpu.nvidia.com"

	// NVIDIANamespace is the namespace of its MPS control daemons.
	NVIDIANamespace = "nvidia-dra-driver-gpu"

	nvidiaProcess = "driver-nvidia"
	mpsImage      = "localhost/nvidia-mps:1"
)

// NVIDIAOptions are the hardware and features of NVIDIA's driver.
type NVIDIAOptions struct {
	FeatureGates string   // as in TimeSlicingSettings=true,MPSSupport=true
	Library      string   // the libnvidia-ml.so.1 that it loads
	Hardware     []string // variables by which the library finds its hardware
	GPUs         int      // their number, with the minor numbers from 0 on
	Version      string   // of the kernel driver, in the names of its libraries; empty: the library's default
}

// StartNVIDIADriver starts NVIDIA's own DRA driver, unpatched, as the process
// driver-nvidia, and waits until its devices are published. No other driver
// may run under its name: Retire ends one. It may be started again with other
// options after it was retired.
func (c *Cluster) StartNVIDIADriver(ctx context.Context, options NVIDIAOptions) (*Process, error) {
	program, err := c.builtTool("dra-driver-nvidia-gpu-*", "gpu-kubelet-plugin")
	if err != nil {
		return nil, err
	}
	root, err := c.makeDriverRoot(options)
	if err != nil {
		return nil, fmt.Errorf("make the root of NVIDIA's driver: %w", err)
	}
	if err := c.prepareMPS(ctx); err != nil {
		return nil, err
	}
	c.forget(nvidiaProcess)
	p := &Process{
		name:    nvidiaProcess,
		program: "unshare",
		args: []string{
			"--mount", "sh", root.path("enter.sh"), root.path("namespace"), filepath.Dir(program),
			root.path("proc-driver"), root.path("proc-devices"), program,
		},
		env:   append(c.nvidiaEnv(root, options, filepath.Dir(program)), options.Hardware...),
		ready: func(ctx context.Context) error { return c.published(ctx, NVIDIADriver) },
	}
	return p, c.launch(ctx, p)
}

func (c *Cluster) nvidiaEnv(root driverRoot, options NVIDIAOptions, tools string) []string {
	return []string{
		"NODE_NAME=" + c.NodeName(),
		"NAMESPACE=" + NVIDIANamespace,
		"KUBECONFIG=" + c.Kubeconfig(),
		"CDI_ROOT=" + c.CDIDir(),
		"KUBELET_REGISTRAR_DIRECTORY_PATH=" + c.registrarDir(),
		"KUBELET_PLUGINS_DIRECTORY_PATH=" + c.pluginsDir(),
		"NVIDIA_DRIVER_ROOT=" + root.path("root"),
		"DRIVER_ROOT_CTR_PATH=" + root.path("root"),
		"NVIDIA_CDI_HOOK_PATH=" + filepath.Join(tools, "nvidia-cdi-hook"),
		"IMAGE_NAME=" + mpsImage,
		"FEATURE_GATES=" + options.FeatureGates,
		"V=6",
	}
}

// prepareMPS creates what the pod of an MPS control daemon needs: its
// namespace, and an image with the commands of the driver's template.
func (c *Cluster) prepareMPS(ctx context.Context) error {
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: " + NVIDIANamespace + "}}"
	if err := c.Apply(ctx, namespace); err != nil {
		return err
	}
	commands := map[string]string{}
	for _, name := range []string{"sh", "rm", "cat", "tail"} {
		commands["/bin/"+name] = "/bin/busybox"
	}
	return c.ImportImage(ctx, Image{Name: mpsImage, Files: commands})
}

// Retire ends a driver and deletes its ResourceSlices immediately, as the
// kubelet does half a minute later, so that they are not mistaken for those of
// the next driver of the same name.
func (c *Cluster) Retire(ctx context.Context, driver string, p *Process) error {
	if err := p.Stop(); err != nil {
		return err
	}
	slices := c.client.ResourceV1().ResourceSlices()
	err := slices.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	if err != nil {
		return fmt.Errorf("delete the slices of %s: %w", driver, err)
	}
	return nil
}

// NVIDIALog returns the log that a stand-in of the driver's root has written
// in a hardware folder, empty if there is none.
func NVIDIALog(hardware, name string) string {
	data, err := os.ReadFile(filepath.Join(hardware, name+".log"))
	if err != nil {
		return ""
	}
	return string(data)
}

package cluster

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StartExampleDriver starts an instance of dra-example-driver with its own
// driver name, as the process driver-<name>, and waits until its devices are
// published. env are the driver's variables: NUM_DEVICES, GPU_PARTITIONS,
// GPU_ALLOW_MULTIPLE_ALLOCATIONS …
func (c *Cluster) StartExampleDriver(ctx context.Context, name string, env map[string]string) (*Process, error) {
	program, err := c.builtTool("dra-example-driver-*", "dra-example-kubeletplugin")
	if err != nil {
		return nil, err
	}
	variables := []string{
		"DRIVER_NAME=" + name,
		"NODE_NAME=" + c.NodeName(),
		"KUBECONFIG=" + c.Kubeconfig(),
		"CDI_ROOT=" + c.CDIDir(),
		"KUBELET_REGISTRAR_DIRECTORY_PATH=" + c.registrarDir(),
		"KUBELET_PLUGINS_DIRECTORY_PATH=" + c.pluginsDir(),
	}
	for key, value := range env {
		variables = append(variables, key+"="+value)
	}
	return c.startDriver(ctx, name, &Process{program: program, env: variables})
}

// StartShapesDriver starts the driver of test/suites/drivers/shapes, as the process
// driver-<name>, with the devices of a file and more flags, and waits until
// they are published.
func (c *Cluster) StartShapesDriver(ctx context.Context, name, devicesFile string, more ...string) (*Process, error) {
	program, err := c.builtTool("shapes-driver", "shapes")
	if err != nil {
		return nil, err
	}
	return c.startDriver(ctx, name, &Process{program: program, args: append([]string{
		"--driver-name", name,
		"--node-name", c.NodeName(),
		"--devices", devicesFile,
		"--kubeconfig", c.Kubeconfig(),
		"--cdi-root", c.CDIDir(),
		"--kubelet-registrar-directory", c.registrarDir(),
		"--kubelet-plugins-directory", c.pluginsDir(),
	}, more...)})
}

func (c *Cluster) startDriver(ctx context.Context, name string, p *Process) (*Process, error) {
	p.name = "driver-" + name
	p.ready = func(ctx context.Context) error { return c.published(ctx, name) }
	return p, c.launch(ctx, p)
}

func (c *Cluster) registrarDir() string { return c.layout.path("kubelet", "plugins_registry") }
func (c *Cluster) pluginsDir() string   { return c.layout.path("kubelet", "plugins") }

// published checks that a driver serves the kubelet and has devices in the
// API.
func (c *Cluster) published(ctx context.Context, driver string) error {
	if err := accepts(c.layout.path("kubelet", "plugins", driver, "dra.sock"))(ctx); err != nil {
		return err
	}
	slices, err := c.client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	if err != nil {
		return fmt.Errorf("list resource slices: %w", err)
	}
	var published, complete int64
	for _, slice := range slices.Items {
		published++
		complete = slice.Spec.Pool.ResourceSliceCount
	}
	if published == 0 || published < complete {
		return errors.New("its devices are not published")
	}
	return nil
}

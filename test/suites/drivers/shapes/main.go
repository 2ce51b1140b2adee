// Command shapes is a DRA driver for tests. It publishes the devices of a file
// under any driver name, so that a test can have shapes for which it has no
// hardware: whole GPUs, MIG devices with and without a UUID, taints, counters.
//
// It can also be slow, fail, attach its devices late, call them unhealthy, and pass
// them to virtual machines, as a second file says (--behaviour). Both files are read
// again when they change.
//
// It runs as a process on the node. Preparing a claim hands each container that
// uses it an environment variable SHAPES_<DEVICE>=<claim UID>, or
// SHAPES_<DEVICE>_<SHARE>, the ground truth of who holds which device.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// options are the command line.
type options struct {
	driverName   string
	nodeName     string
	devicesFile  string
	behaviour    string
	health       bool
	kubeconfig   string
	cdiRoot      string
	registrarDir string
	pluginsDir   string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, parse()); err != nil {
		fmt.Fprintln(os.Stderr, "shapes:", err)
		os.Exit(1)
	}
}

func parse() options {
	var o options
	flag.StringVar(&o.driverName, "driver-name", "gpu.nvidia.com", "name of the DRA driver")
	flag.StringVar(&o.nodeName, "node-name", "", "name of the node, and of the pool")
	flag.StringVar(&o.devicesFile, "devices", "", "YAML or JSON file with the slices to publish")
	flag.StringVar(&o.behaviour, "behaviour", "", "YAML file that says how the driver misbehaves")
	flag.BoolVar(&o.health, "health", false, "report the devices' health to the kubelet")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flag.StringVar(&o.cdiRoot, "cdi-root", "/var/run/cdi", "folder for CDI specs")
	flag.StringVar(&o.registrarDir, "kubelet-registrar-directory", kubeletplugin.KubeletRegistryDir, "where the kubelet looks for plugins")
	flag.StringVar(&o.pluginsDir, "kubelet-plugins-directory", kubeletplugin.KubeletPluginsDir, "parent folder of the driver's own socket")
	flag.Parse()
	return o
}

// run publishes the devices and serves the kubelet until ctx is done or an
// error appears from which the driver cannot recover.
func run(ctx context.Context, o options) error {
	client, err := newClient(o.kubeconfig)
	if err != nil {
		return err
	}
	pluginDir := filepath.Join(o.pluginsDir, o.driverName)
	if err := os.MkdirAll(pluginDir, 0o750); err != nil {
		return fmt.Errorf("make plugin folder: %w", err)
	}

	plugin := &plugin{
		driverName: o.driverName,
		specs:      specFolder{root: o.cdiRoot, driver: o.driverName},
		devices:    devicesSource{path: o.devicesFile, node: o.nodeName},
		behaviour:  behaviourFile(o.behaviour),
		failed:     make(chan error, 1),
	}
	helper, err := kubeletplugin.Start(ctx, plugin,
		kubeletplugin.KubeClient(client),
		kubeletplugin.NodeName(o.nodeName),
		kubeletplugin.DriverName(o.driverName),
		kubeletplugin.RegistrarDirectoryPath(o.registrarDir),
		kubeletplugin.PluginDataDirectoryPath(pluginDir),
		kubeletplugin.HealthService(o.health),
	)
	if err != nil {
		return fmt.Errorf("start kubelet plugin: %w", err)
	}
	defer helper.Stop()
	go func() {
		plugin.fail(plugin.devices.follow(ctx, func(resources resourceslice.DriverResources) error {
			return helper.PublishResources(ctx, resources)
		}))
	}()
	binder := &binder{driverName: o.driverName, client: client, behaviour: plugin.behaviour}
	go binder.run(ctx)

	select {
	case <-ctx.Done():
		return nil
	case err := <-plugin.failed:
		return err
	}
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return client, nil
}

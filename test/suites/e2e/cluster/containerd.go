package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
)

// containerdConfig is a template. Its arguments are the root folder, the state
// folder, the socket twice, the NRI socket, the pause image, the folder of
// registries, the CDI folder, the CNI folder, and NVIDIA's runtime, which need
// not exist before a pod of its handler starts.
const containerdConfig = `version = 3
root = %q
state = %q

[grpc]
address = %q

[ttrpc]
address = %q

[plugins.'io.containerd.nri.v1.nri']
socket_path = %q
plugin_path = "/nonexistent"
plugin_config_path = "/nonexistent"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = %q

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = %q

[plugins.'io.containerd.cri.v1.runtime']
cdi_spec_dirs = [%q]
netns_mounts_under_state_dir = true
# Raising a score needs CAP_SYS_RESOURCE, which build machines often lack.
restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = %q

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
SystemdCgroup = false

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
BinaryName = %q
SystemdCgroup = false
`

// builtTool finds a program that the Makefile built into a folder whose name
// has a version.
func (c *Cluster) builtTool(folder, name string) (string, error) {
	found, _ := filepath.Glob(filepath.Join(c.options.BinDir, folder, name))
	if len(found) == 0 {
		return "", fmt.Errorf("find %s under %s (run `make e2e` in test/): %w", name, c.options.BinDir, os.ErrNotExist)
	}
	return found[len(found)-1], nil
}

func (c *Cluster) startContainerd(ctx context.Context) error {
	program, err := c.builtTool("containerd-*", "containerd")
	if err != nil {
		return err
	}
	l := c.layout
	config := fmt.Sprintf(containerdConfig, l.path("containerd"), l.path("run", "containerd"),
		l.containerdSocket(), l.containerdSocket()+".ttrpc", l.nriSocket(), PauseImage, l.registries(), l.cdi(), l.cniConfig(), l.nvidiaRuntime())
	if err := writeFile(l.path("containerd.toml"), config); err != nil {
		return err
	}
	return c.launch(ctx, &Process{
		name:    "containerd",
		program: program,
		args:    []string{"--config", l.path("containerd.toml")},
		// containerd finds the shim on PATH, in its own folder.
		env:   []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
		ready: accepts(l.containerdSocket()),
	})
}

// accepts returns a check that a unix socket accepts connections.
func accepts(socket string) func(context.Context) error {
	return func(ctx context.Context) error {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "unix", socket)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}

// ctr runs containerd's command-line client in the namespace of Kubernetes.
func (c *Cluster) ctr(ctx context.Context, args ...string) error {
	program, err := c.builtTool("containerd-*", "ctr")
	if err != nil {
		return err
	}
	args = append([]string{"--address", c.layout.containerdSocket(), "--namespace", "k8s.io"}, args...)
	return command(ctx, program, args...)
}

// command runs a program until it ends. Its output is part of its error.
func command(ctx context.Context, program string, args ...string) error {
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s %q: %w: %s", filepath.Base(program), args, err, output)
	}
	return nil
}

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// NVIDIARuntimeHandler is containerd's name of NVIDIA's runtime.
	NVIDIARuntimeHandler = "nvidia"

	// ManagementDevice is the CDI device of all GPUs, as NVIDIA's container
	// toolkit names it for pods that manage the node.
	ManagementDevice = "management.nvidia.com/gpu=all"

	managementKind = "management.nvidia.com"
	toolkitFolder  = "nvidia-container-toolkit-*"
)

// toolkitConfig is the toolkit's config.toml. Its arguments are more settings,
// the root of the driver, the log and the hook. Other settings have the
// toolkit's defaults.
const toolkitConfig = `%s
[nvidia-container-cli]
root = %q
[nvidia-container-runtime]
debug = %q
runtimes = ["runc"]
[nvidia-ctk]
path = %q
`

// runtimeScript runs the toolkit's runtime with a configuration of this
// cluster, as the GPU operator's scripts do. Its arguments are the variables
// and the program.
const runtimeScript = "#!/bin/sh\nexport %s\nexec %q \"$@\"\n"

// InstallNVIDIARuntime installs NVIDIA's own container runtime where
// containerd expects it. It injects the GPUs of the driver that was started
// last, with that driver's library, which finds its hardware by these
// variables. Settings are lines of config.toml outside of tables. It may be
// installed again with other settings.
func (c *Cluster) InstallNVIDIARuntime(hardware []string, settings ...string) error {
	runtime, err := c.builtTool(toolkitFolder, "nvidia-container-runtime")
	if err != nil {
		return err
	}
	folder := c.layout.path("nvidia-toolkit")
	config := filepath.Join(folder, "nvidia-container-runtime", "config.toml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		return fmt.Errorf("install NVIDIA's runtime: %w", err)
	}
	hook := filepath.Join(filepath.Dir(runtime), "nvidia-cdi-hook")
	text := fmt.Sprintf(toolkitConfig, strings.Join(settings, "\n"), c.driverRoot().path("root"), c.layout.log("nvidia-container-runtime"), hook)
	if err := writeFile(config, text); err != nil {
		return err
	}
	variables := append([]string{"XDG_CONFIG_HOME=" + folder}, hardware...)
	script := fmt.Sprintf(runtimeScript, strings.Join(variables, " "), runtime)
	if err := os.WriteFile(c.layout.nvidiaRuntime(), []byte(script), 0o755); err != nil {
		return fmt.Errorf("install NVIDIA's runtime: %w", err)
	}
	return nil
}

// WriteManagementSpec runs the toolkit to write the CDI spec of
// ManagementDevice, as its installer does, and returns the spec's path.
func (c *Cluster) WriteManagementSpec(ctx context.Context) (string, error) {
	program, err := c.builtTool(toolkitFolder, "nvidia-ctk")
	if err != nil {
		return "", err
	}
	spec := filepath.Join(c.CDIDir(), managementKind+"-gpu.yaml")
	return spec, command(ctx, program, "cdi", "generate", "--mode", "management",
		"--vendor", managementKind, "--class", "gpu", "--output", spec,
		"--driver-root", c.driverRoot().path("root"),
		"--nvidia-cdi-hook-path", filepath.Join(filepath.Dir(program), "nvidia-cdi-hook"))
}

// StartNRIPlugin starts the toolkit's plugin for containerd, which injects CDI
// devices into the pods of a namespace that request them by an annotation.
func (c *Cluster) StartNRIPlugin(ctx context.Context, namespace string) (*Process, error) {
	program, err := c.builtTool(toolkitFolder, "nri-plugin")
	if err != nil {
		return nil, err
	}
	const name = "nvidia-nri-plugin"
	c.forget(name)
	p := &Process{name: name, program: program, args: []string{"-socket", c.layout.nriSocket(), "-namespace", namespace}}
	p.ready = func(context.Context) error {
		if !strings.Contains(p.LogTail(20), "registered") {
			return errors.New("it is not registered")
		}
		return nil
	}
	return p, c.launch(ctx, p)
}

// NVIDIARuntimeLog returns the end of the log of NVIDIA's runtime.
func (c *Cluster) NVIDIARuntimeLog() string {
	return (&Process{logFile: c.layout.log("nvidia-container-runtime")}).LogTail(40)
}

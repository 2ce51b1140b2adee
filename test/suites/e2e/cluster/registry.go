package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// registryHosts is containerd's configuration of a registry. Its arguments are
// twice the URL of the mirror, also as the server, so that the registry itself is
// never asked.
const registryHosts = `server = %q

[host.%q]
capabilities = ["pull", "resolve"]
`

// MirrorRegistry lets the node pull the images of a registry, such as ghcr.io,
// from the mirror, HOST:PORT, over plain HTTP.
func (c *Cluster) MirrorRegistry(registry, mirror string) error {
	folder := filepath.Join(c.layout.registries(), registry)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("configure the registry %s: %w", registry, err)
	}
	url := "http://" + mirror
	return writeFile(filepath.Join(folder, "hosts.toml"), fmt.Sprintf(registryHosts, url, url))
}

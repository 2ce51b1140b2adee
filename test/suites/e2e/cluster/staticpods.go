package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// AddStaticPod runs the pod of a manifest on the kubelet, which reads it from
// its own folder and not from the API server, until remove is called. The API
// server has a mirror of the pod, named <pod>-<node>.
func (c *Cluster) AddStaticPod(name, manifest string) (remove func() error, err error) {
	path := filepath.Join(c.layout.staticPods(), name+".yaml")
	draft := filepath.Join(c.layout.staticPods(), "."+name) // the kubelet skips names that begin with a dot
	if err := writeFile(draft, manifest); err != nil {
		return nil, fmt.Errorf("add static pod: %w", err)
	}
	if err := os.Rename(draft, path); err != nil {
		return nil, fmt.Errorf("add static pod: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

package cluster

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
)

// folderPrefix is the prefix of every cluster's folder, by which leftovers of
// crashed runs are found.
const folderPrefix = "dra-e2e-"

// layout has the path of each of a cluster's files.
type layout struct {
	dir     string
	logsDir string
}

// newLayout creates a new folder with a short name, because paths of unix
// sockets may not be longer than 107 bytes.
func newLayout(parent, logs string) (layout, error) {
	dir, err := os.MkdirTemp(parent, folderPrefix)
	if err != nil {
		return layout{}, fmt.Errorf("make the cluster's folder: %w", err)
	}
	l := layout{dir: dir, logsDir: cmp.Or(logs, filepath.Join(dir, "logs"))}
	for _, d := range []string{l.pki(), l.cdi(), l.cniConfig(), l.kubelet(), l.staticPods(), l.path("pids"), l.logsDir, l.path("run")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return layout{}, fmt.Errorf("make the cluster's folder: %w", err)
		}
	}
	return l, nil
}

func (l layout) path(parts ...string) string {
	return filepath.Join(append([]string{l.dir}, parts...)...)
}

func (l layout) pki() string                   { return l.path("pki") }
func (l layout) cdi() string                   { return l.path("cdi") }
func (l layout) cniConfig() string             { return l.path("cni", "net.d") }
func (l layout) kubelet() string               { return l.path("kubelet") }
func (l layout) staticPods() string            { return l.path("static-pods") }
func (l layout) log(process string) string     { return filepath.Join(l.logsDir, process+".log") }
func (l layout) pid(process string) string     { return l.path("pids", process) }
func (l layout) kubeconfig(user string) string { return l.path("pki", user+".kubeconfig") }
func (l layout) servingCert() string           { return l.path("pki", "apiserver.crt") }
func (l layout) servingKey() string            { return l.path("pki", "apiserver.key") }
func (l layout) serviceAccountKey() string     { return l.path("pki", "service-account.key") }
func (l layout) frontProxyCA() string          { return l.path("pki", "front-proxy-ca.crt") }
func (l layout) frontProxyCert() string        { return l.path("pki", "front-proxy.crt") }
func (l layout) frontProxyKey() string         { return l.path("pki", "front-proxy.key") }
func (l layout) tokens() string                { return l.path("pki", "tokens.csv") }
func (l layout) containerdSocket() string      { return l.path("run", "containerd.sock") }
func (l layout) networkRecord() string         { return l.path("network.json") }
func (l layout) registries() string            { return l.path("registries") }
func (l layout) nriSocket() string             { return l.path("run", "nri.sock") }
func (l layout) nvidiaRuntime() string         { return l.path("nvidia-container-runtime") }

// cgroupRoot returns the cgroup below which the kubelet puts its pods. Each
// cluster has its own, because a kubelet kills unknown processes below its
// root.
func (l layout) cgroupRoot() string { return "/" + filepath.Base(l.dir) }

// writeFile writes a file of the cluster that only root may read.
func writeFile(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	return nil
}

// ports are the ports of one cluster. They are chosen once, so that a
// restarted process listens on the same port.
type ports struct {
	etcd, etcdPeer, apiserver, controllerManager, scheduler, kubelet, kubeletHealth int
}

func freePorts() (ports, error) {
	p, err := porttest.Unused("", 7)
	if err != nil {
		return ports{}, err
	}
	return ports{p[0], p[1], p[2], p[3], p[4], p[5], p[6]}, nil
}

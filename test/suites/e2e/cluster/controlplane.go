package cluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func (c *Cluster) kubernetesTool(name string) string {
	return filepath.Join(c.options.BinDir, "kubernetes-"+c.options.KubernetesVersion, name)
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	clients := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcd)
	peers := fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcdPeer)
	return c.launch(ctx, &Process{
		name:    "etcd",
		program: c.kubernetesTool("etcd"),
		args: []string{
			"--data-dir", c.layout.path("etcd"), "--unsafe-no-fsync",
			"--listen-client-urls", clients, "--advertise-client-urls", clients,
			"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
			"--initial-cluster", "default=" + peers,
		},
		ready: answers(clients + "/health"),
	})
}

// startAPIServer starts the API server on the bridge only, which the host and
// pods reach.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	args := []string{
		"--etcd-servers", fmt.Sprintf("http://127.0.0.1:%d", c.ports.etcd),
		"--bind-address", c.network.gateway, "--advertise-address", c.network.gateway,
		"--secure-port", fmt.Sprint(c.ports.apiserver),
		"--tls-cert-file", c.layout.servingCert(), "--tls-private-key-file", c.layout.servingKey(),
		"--cert-dir", c.layout.pki(),
		"--token-auth-file", c.layout.tokens(), "--authorization-mode", "Node,RBAC",
		"--service-account-issuer", "https://kubernetes.default.svc",
		"--service-account-key-file", c.layout.serviceAccountKey(),
		"--service-account-signing-key-file", c.layout.serviceAccountKey(),
		"--service-cluster-ip-range", serviceRange,
		"--kubelet-preferred-address-types", "InternalIP",
		"--allow-privileged",
	}
	args = append(append(args, c.aggregation()...), c.runtimeConfig()...)
	return c.launch(ctx, &Process{
		name:    "apiserver",
		program: c.kubernetesTool("kube-apiserver"),
		args:    append(args, c.featureGates()...),
		ready:   answers(c.server() + "/readyz"),
	})
}

func (c *Cluster) startControllerManager(ctx context.Context) error {
	kubeconfig := c.layout.kubeconfig("controller-manager")
	args := []string{
		"--kubeconfig", kubeconfig,
		"--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--authorization-always-allow-paths", "/healthz,/metrics",
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(c.ports.controllerManager),
		"--service-account-private-key-file", c.layout.serviceAccountKey(),
		"--root-ca-file", c.layout.servingCert(),
		"--use-service-account-credentials", "--leader-elect=false",
		"--horizontal-pod-autoscaler-sync-period", "2s", // the default of 15s would slow down tests of autoscalers
	}
	return c.launch(ctx, &Process{
		name:    "controller-manager",
		program: c.kubernetesTool("kube-controller-manager"),
		args:    append(args, c.featureGates()...),
		ready:   answers(c.ControllerManagerURL() + "/healthz"),
	})
}

func (c *Cluster) startScheduler(ctx context.Context) error {
	kubeconfig := c.layout.kubeconfig("scheduler")
	args := []string{
		"--kubeconfig", kubeconfig,
		"--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--authorization-always-allow-paths", "/healthz,/metrics",
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(c.ports.scheduler),
		"--leader-elect=false",
	}
	return c.launch(ctx, &Process{
		name:    "scheduler",
		program: c.kubernetesTool("kube-scheduler"),
		args:    append(args, c.featureGates()...),
		ready:   answers(c.SchedulerURL() + "/healthz"),
	})
}

// ControllerManagerURL returns the URL of the controller manager's /metrics,
// which needs no authentication and has a self-signed certificate.
func (c *Cluster) ControllerManagerURL() string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.ports.controllerManager)
}

// SchedulerURL returns the URL of the scheduler's /metrics, likewise.
func (c *Cluster) SchedulerURL() string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.ports.scheduler)
}

// Kubectl runs kubectl as administrator and returns its output.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) (string, error) {
	kubectl := exec.CommandContext(ctx, c.kubernetesTool("kubectl"), args...)
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig())
	var complaints bytes.Buffer
	kubectl.Stderr = &complaints
	output, err := kubectl.Output()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &complaints)
	}
	return string(output), nil
}

package cluster

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeletConfig is a template. Its arguments are the containerd socket, the
// cgroup root, the ports, the folders (the last one for static pods), and the
// pods' DNS server. It disables what would change the machine or evict a
// test's pods, and syncs each pod every 5 s, not 60: only then does the
// kubelet retry a claim that could not be prepared because its driver was
// down.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://%s
cgroupRoot: %s
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: []
makeIPTablesUtilChains: false
oomScoreAdj: 0
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, nodefs.inodesFree: "1", imagefs.available: 1Mi}
address: %s
port: %d
healthzBindAddress: 127.0.0.1
healthzPort: %d
podLogsDir: %s
volumePluginDir: %s
staticPodPath: %s
nodeStatusUpdateFrequency: 4s
syncFrequency: 5s
clusterDNS: [%s]
clusterDomain: %s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
`

func (c *Cluster) startKubelet(ctx context.Context) error {
	l := c.layout
	config := fmt.Sprintf(kubeletConfig, l.containerdSocket(), l.cgroupRoot(), c.network.gateway,
		c.ports.kubelet, c.ports.kubeletHealth, l.path("pod-logs"), l.path("volume-plugins"), l.staticPods(), c.network.gateway, clusterDomain)
	if err := writeFile(l.path("kubelet.yaml"), config); err != nil {
		return err
	}
	return c.launch(ctx, &Process{
		name:    "kubelet",
		program: c.kubernetesTool("kubelet"),
		args: append([]string{
			"--config", l.path("kubelet.yaml"),
			"--kubeconfig", l.kubeconfig("kubelet"),
			"--hostname-override", c.NodeName(), "--node-ip", c.network.gateway,
			"--root-dir", l.kubelet(), "--cert-dir", l.path("kubelet", "pki"),
		}, c.featureGates()...),
		ready: answers(fmt.Sprintf("http://127.0.0.1:%d/healthz", c.ports.kubeletHealth)),
	})
}

// waitReady waits until pods can run: the node is ready, and the default
// namespace has what a pod's service account needs.
func (c *Cluster) waitReady(ctx context.Context) error {
	if err := Eventually(ctx, "node ready", c.nodeReady); err != nil {
		return err
	}
	return Eventually(ctx, "default service account", func(ctx context.Context) error {
		_, noAccount := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		_, noRoot := c.client.CoreV1().ConfigMaps("default").Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		return errors.Join(noAccount, noRoot)
	})
}

func (c *Cluster) nodeReady(ctx context.Context) error {
	node, err := c.client.CoreV1().Nodes().Get(ctx, c.NodeName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("node not ready: %s", condition.Message)
		}
	}
	if len(node.Spec.Taints) > 0 {
		return fmt.Errorf("node has taints %v", node.Spec.Taints)
	}
	return nil
}

// KubeletURL returns the URL of the kubelet's /metrics, which needs no
// authentication and has a self-signed certificate.
func (c *Cluster) KubeletURL() string {
	return fmt.Sprintf("https://%s:%d", c.network.gateway, c.ports.kubelet)
}

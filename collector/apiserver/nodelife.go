package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	kubeversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// decodeNodeLife returns what a node says of how pods come to run there.
func decodeNodeLife(node *corev1.Node) dra.NodeLife {
	return dra.NodeLife{
		Name:          clean(node.Name),
		SandboxPrompt: isSandboxPrompt(node.Status.NodeInfo.KubeletVersion),
	}
}

// isSandboxPrompt: kubelets tell of PodReadyToStartContainers at once from
// 1.36 on, pre-releases included. Of a version that cannot be read nothing is
// known, and so nothing is taken for granted.
func isSandboxPrompt(kubelet string) bool {
	parsed, err := kubeversion.ParseGeneric(kubelet)
	return err == nil && (parsed.Major() > 1 || parsed.Major() == 1 && parsed.Minor() >= 36)
}

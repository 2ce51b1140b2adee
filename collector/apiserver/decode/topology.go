package decode

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Topology determines the domains of nodes by their labels. It is immutable.
type Topology struct {
	keys [dra.TopologyLevels][]string // of labels, of which the first that a node has counts
}

// topologyKeys returns the labels that are known, of each level the more specific
// first. Their sources: NVIDIA's DRA driver and GPU feature discovery (gpu.clique),
// topograph (accelerator, leaf, block), and the documentation of CoreWeave, AWS, GKE
// and OCI.
func topologyKeys() [dra.TopologyLevels][]string {
	return [dra.TopologyLevels][]string{
		dra.LevelLink: {
			"nvidia.com/gpu.clique", "accelerator.topograph.run/domain", "network.topology.nvidia.com/accelerator",
			"ds.coreweave.com/nvlink.domain", "topology.k8s.aws/ultraserver-id",
		},
		dra.LevelRack: {
			"network.topology.nvidia.com/leaf", "cloud.google.com/gce-topology-subblock", "topology.k8s.aws/network-node-layer-3",
			"oci.oraclecloud.com/rdma.local_block_id",
		},
		dra.LevelBlock: {
			"network.topology.nvidia.com/block", "cloud.google.com/gce-topology-block", "topology.k8s.aws/network-node-layer-2",
			"oci.oraclecloud.com/rdma.network_block_id",
		},
	}
}

// NewTopology returns a Topology that knows the table of labels, and before it the keys
// of labels that are used in one cluster alone. Their texts are such as
// rack=example.com/rack, each with a level.
func NewTopology(keys ...string) (*Topology, error) {
	t := &Topology{keys: topologyKeys()}
	for _, text := range slices.Backward(keys) {
		name, key, found := strings.Cut(text, "=")
		if !found {
			return nil, fmt.Errorf("%q is not LEVEL=KEY, such as rack=example.com/rack", text)
		}
		if faults := validation.IsQualifiedName(key); len(faults) > 0 {
			return nil, fmt.Errorf("%q: %q is not the key of a label: %s", text, key, faults[0])
		}
		known := false
		for level := range dra.TopologyLevel(dra.TopologyLevels) {
			if level.String() == name {
				t.keys[level], known = append([]string{key}, t.keys[level]...), true
			}
		}
		if !known {
			return nil, fmt.Errorf("%q: there is no level %q; the levels are link_domain, rack and block", text, name)
		}
	}
	return t, nil
}

// DefaultTopology returns a Topology that knows the table of labels alone.
func DefaultTopology() *Topology { return &Topology{keys: topologyKeys()} }

// domains returns the domains of a node.
func (t *Topology) domains(node *corev1.Node) (domains dra.Domains) {
	for level, keys := range t.keys {
		for _, key := range keys {
			if value := node.Labels[key]; value != "" {
				domains[level] = shortText(value, maxName)
				break
			}
		}
	}
	return domains
}

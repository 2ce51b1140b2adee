package decode

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestTopology(t *testing.T) {
	gke := map[string]string{"cloud.google.com/gce-topology-block": "b", "cloud.google.com/gce-topology-subblock": "s", "nvidia.com/gpu.clique": "c.1", "accelerator.topograph.run/domain": "d"}
	own, err := NewTopology("rack=example.com/rack", "rack=example.com/cabinet", "block=example.com/hall")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		by     *Topology
		labels map[string]string
		want   dra.Domains
	}{
		"nothing":        {DefaultTopology(), map[string]string{"kubernetes.io/hostname": "n"}, dra.Domains{}},
		"GKE":            {DefaultTopology(), gke, dra.Domains{"c.1", "s", "b"}},
		"AWS":            {DefaultTopology(), map[string]string{"topology.k8s.aws/network-node-layer-1": "1", "topology.k8s.aws/network-node-layer-2": "2", "topology.k8s.aws/network-node-layer-3": "3"}, dra.Domains{"", "3", "2"}},
		"own":            {own, map[string]string{"example.com/rack": "r", "example.com/cabinet": "x", "example.com/hall": "h"}, dra.Domains{"", "r", "h"}},
		"the second":     {own, map[string]string{"example.com/cabinet": "x"}, dra.Domains{"", "x", ""}},
		"own and others": {own, gke, dra.Domains{"c.1", "s", "b"}},
		"empty":          {own, map[string]string{"example.com/rack": "", "network.topology.nvidia.com/leaf": "l"}, dra.Domains{"", "l", ""}},
		"long":           {own, map[string]string{"example.com/rack": strings.Repeat("r", 1000)}, dra.Domains{"", shortText(strings.Repeat("r", 1000), maxName), ""}},
	} {
		if got := Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: test.labels}}, test.by).Domains; got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	for text, want := range map[string]string{
		"rack":               `"rack" is not LEVEL=KEY, such as rack=example.com/rack`,
		"row=example.com/r":  `there is no level "row"; the levels are link_domain, rack and block`,
		"rack=a/b/c":         `"a/b/c" is not the key of a label`,
		"rack=":              `"" is not the key of a label`,
		"=example.com/r":     `there is no level ""`,
		"block=example.com/": "is not the key of a label",
	} {
		if _, err := NewTopology(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

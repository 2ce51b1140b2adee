//go:build cgo && linux

package nvml

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// domains reads the NVLink domain of each device, by minor number; -1: a MIG device.
func domains(t *testing.T, from *Source) map[int]string {
	t.Helper()
	found := make(map[int]string)
	for _, r := range readers(t, from) {
		observations, err := r.Read(t.Context(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range observations {
			found[o.Device.Minor] += o.Device.LinkDomain
		}
	}
	return found
}

// The GPUs of a node with switches are one domain, but for one without links and one in
// MIG mode; those that are linked with each other alone are another; a fabric of several
// nodes has its clique.
func TestLinkDomains(t *testing.T) {
	node, from := stubbed(t, 6, Options{})
	none := map[string]string{"nvlink.count": "1", "nvlink.0.state": "0"}
	scripted(node, 2, none)
	scripted(node, 3, map[string]string{"nvlink.count": "1", "nvlink.0.remote.gpu": "4"})
	scripted(node, 4, map[string]string{"nvlink.count": "1", "nvlink.0.remote.gpu": "3"})
	scripted(node, 5, map[string]string{"fabric.state": "3", "fabric.cluster": "01020304-0506-0708-090a-0b0c0d0e0f10", "fabric.clique": "7"})
	found := domains(t, from)
	if found[0] == "" || found[0] != found[1] || found[2] != "" || found[3] == "" || found[3] != found[4] || found[3] == found[0] ||
		found[5] != "01020304-0506-0708-090a-0b0c0d0e0f10.7" {
		t.Errorf("the domains are %v", found)
	}
	for status, values := range map[string]map[string]string{
		"is not registered yet": {"fabric.state": "2", "fabric.status": "0"},
		"failed":                {"fabric.state": "3", "fabric.status": "999"},
	} {
		scripted(node, 5, values)
		if found := domains(t, from); found[5] != found[0] {
			t.Errorf("where the fabric %s, the domains are %v", status, found)
		}
	}
}

package node

import "testing"

// TestAccessMode: the mode and the reason of the manifests are on the page, and nothing is
// where they are unknown.
func TestAccessMode(t *testing.T) {
	s := newScene(t, gpu(0))
	s.run(1)
	if _, ok := s.value("dra_exporter_access_mode_info"); ok {
		t.Error("an unknown mode has a series")
	}
	s.state = NewState(Config{Node: sceneNode, Interval: 1e9, Grace: 1e9, Access: GPUAccess{Mode: "runtimeClass", Reason: "runtime_class"}})
	s.run(1)
	if value, ok := s.value("dra_exporter_access_mode_info", "mode", "runtimeClass", "reason", "runtime_class"); !ok || value != 1 {
		t.Errorf("the mode is %v (%v)", value, ok)
	}
}

package dcgm

import "testing"

func TestUUIDOfAGPU(t *testing.T) {
	for text, want := range map[string]bool{
		"GPU-5c89": true, "MIG-5c89": false, "": false,
		"Cannot perform the requested operation because NVML isn't loaded": false,
	} {
		if isGPU(text) != want {
			t.Errorf("%q is a UUID: %v", text, !want)
		}
	}
}

func TestProfile(t *testing.T) {
	for text, want := range map[string]string{
		"1g.10gb": "1g.10gb", "NVIDIA H100 80GB HBM3 MIG 1g.10gb+me": "1g.10gb+me", "MIG 1c.3g.40gb": "1c.3g.40gb",
		"NVIDIA H100 80GB HBM3": "", "": "", "g.10gb": "", "1g.10": "",
	} {
		if got := profile(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestMajorVersion(t *testing.T) {
	for text, want := range map[string]int{
		"version:4.6.1;arch:x86_64": 4, "arch:x86_64; version:3.3.5": 3, "": 0, "version": 0, "version:x": 0,
	} {
		if got, version := majorVersion(text); got != want || got != 0 && version == "" {
			t.Errorf("%q is %d (%s), want %d", text, got, version, want)
		}
	}
}

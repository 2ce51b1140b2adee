package cgroup

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

const (
	uid    = "0f3c2a51-7d1e-4c6b-9a52-3b8a4d1f6e70"
	other  = "b7a1c9de-11f0-4a77-8e1b-5c2d3e4f5a6b"
	static = "cfe2a1b09d8c7e6f5a4b3c2d1e0f9a8b"
	sysd   = "0f3c2a51_7d1e_4c6b_9a52_3b8a4d1f6e70"
	box    = "1111111111111111111111111111111111111111111111111111111111111111"
	inner  = "2222222222222222222222222222222222222222222222222222222222222222"
)

// TestDecodeOwner has the spellings of the kubelet's drivers, of runtimes and
// of namespaces.
func TestDecodeOwner(t *testing.T) {
	pod, whole, alone := dra.Owner{PodUID: uid}, dra.Owner{PodUID: uid, ContainerID: box}, dra.Owner{ContainerID: box}
	for name, test := range map[string]struct {
		file string
		want dra.Owner
	}{
		"systemd, containerd": {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + sysd + ".slice/cri-containerd-" + box + ".scope\n", whole},
		"systemd, CRI-O":      {"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + sysd + ".slice/crio-" + box + ".scope\n", whole},
		"systemd, crun below": {"0::/kubepods.slice/kubepods-pod" + sysd + ".slice/crio-" + box + ".scope/container\n", whole},
		"systemd, Docker":     {"0::/kubepods.slice/kubepods-pod" + sysd + ".slice/docker-" + box + ".scope\n", whole},
		"systemd, init below": {"0::/kubepods.slice/kubepods-pod" + sysd + ".slice/cri-containerd-" + box + ".scope/init.scope\n", whole},
		"cgroupfs":            {"0::/kubepods/burstable/pod" + uid + "/" + box + "\n", whole},
		"cgroupfs, CRI-O":     {"0::/kubepods/pod" + uid + "/crio-" + box + "\n", whole},
		"containerd without systemd": {
			"0::/system.slice/containerd.service/kubepods-besteffort-pod" + sysd + ".slice:cri-containerd:" + box + "\n", whole},
		"static pod":              {"0::/kubepods/besteffort/pod" + static + "/" + box + "\n", dra.Owner{PodUID: static, ContainerID: box}},
		"static pod, systemd":     {"0::/kubepods.slice/kubepods-pod" + static + ".slice/crio-" + box + ".scope\n", dra.Owner{PodUID: static, ContainerID: box}},
		"cgroup root":             {"0::/a_b.slice/a_b-kubepods.slice/a_b-kubepods-pod" + sysd + ".slice/cri-containerd-" + box + ".scope\n", whole},
		"kind, from inside":       {"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod" + sysd + ".slice/cri-containerd-" + box + ".scope\n", whole},
		"kind, from outside":      {"0::/system.slice/docker-" + inner + ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" + sysd + ".slice/cri-containerd-" + box + ".scope\n", whole},
		"kind, cgroupfs":          {"0::/docker/" + inner + "/kubelet/kubepods/pod" + uid + "/" + box + "\n", whole},
		"another namespace":       {"0::/../../kubepods-besteffort-pod" + sysd + ".slice/cri-containerd-" + box + ".scope\n", whole},
		"another, cgroupfs":       {"0::/../../pod" + uid + "/" + box + "\n", whole},
		"the same pod's":          {"0::/../cri-containerd-" + box + ".scope\n", alone},
		"the same pod's, bare":    {"0::/../" + box + "\n", alone},
		"the same, nested":        {"0::/../" + box + "/docker/" + inner + "\n", alone},
		"nested":                  {"0::/kubepods/pod" + uid + "/" + box + "/docker/" + inner + "\n", whole},
		"a cluster in a pod":      {"0::/kubepods/pod" + uid + "/" + box + "/kubelet/kubepods/pod" + other + "/" + inner + "\n", whole},
		"nested in the unknown":   {"0::/kubepods/pod" + uid + "/what/" + inner + "\n", pod},
		"conmon":                  {"0::/kubepods.slice/kubepods-pod" + sysd + ".slice/crio-conmon-" + box + ".scope\n", pod},
		"conmon, cgroupfs":        {"0::/kubepods/pod" + uid + "/crio-conmon-" + box + "\n", pod},
		"the pod's own":           {"0::/kubepods.slice/kubepods-pod" + sysd + ".slice\n", pod},
		"removed":                 {"0::/kubepods/pod" + uid + "/" + box + " (deleted)\n", whole},
		"no line's end":           {"0::/kubepods/pod" + uid + "/" + box, whole},
		"version 1":               {"12:pids:/kubepods/burstable/pod" + uid + "/" + box + "\n1:name=systemd:/kubepods/burstable/pod" + uid + "/" + box + "\n", whole},
		"version 1, with a colon": {"4:cpu,cpuacct:/kubepods-pod" + sysd + ".slice:cri-containerd:" + box + "\n", whole},
		"hybrid":                  {"9:name=systemd:/\n8:pids:/kubepods/pod" + uid + "/" + box + "\n0::/\n", whole},
		"hybrid, the other way":   {"9:name=systemd:/system.slice/x.service\n0::/kubepods/pod" + uid + "/" + box + "\n", whole},
		"lines that differ":       {"3:cpu:/../" + inner + "\n2:memory:/kubepods/pod" + uid + "\n1:pids:/kubepods/pod" + uid + "/" + box + "\n", whole},
		"a pod before containers": {"3:cpu:/../" + inner + "\n2:memory:/kubepods/pod" + uid + "\n", pod},
		"a bad line beside":       {"nonsense\nx:y:/kubepods/pod" + other + "\n1:pids:/kubepods/pod" + uid + "/" + box + "\n", whole},

		"host":              {"0::/system.slice/sshd.service\n", dra.Owner{}},
		"root":              {"0::/\n", dra.Owner{}},
		"user":              {"0::/user.slice/user-1000.slice/session-3.scope\n", dra.Owner{}},
		"the kubelet":       {"0::/kubelet.slice/kubelet.service\n", dra.Owner{}},
		"all pods":          {"0::/kubepods.slice/kubepods-burstable.slice\n", dra.Owner{}},
		"a pod of podman's": {"0::/machine.slice/machine-libpod_pod_" + box + ".slice/libpod-" + box + ".scope\n", alone},
		"a short UID":       {"0::/kubepods/pod" + uid[:35] + "\n", dra.Owner{}},
		"a long UID":        {"0::/kubepods/pod" + uid + "0\n", dra.Owner{}},
		"no hexadecimal":    {"0::/kubepods/pod" + strings.Replace(uid, "f", "g", 1) + "\n", dra.Owner{}},
		"dashes elsewhere":  {"0::/kubepods/pod0f3c2a517-d1e-4c6b-9a52-3b8a4d1f6e70\n", dra.Owner{}},
		"another prefix":    {"0::/kubepods/tripod" + uid + "\n", dra.Owner{}},
		"a short container": {"0::/kubepods/pod" + uid + "/" + box[1:] + "\n", pod},
		"no bytes of UTF-8": {"0::/kubepods/pod\xff\xfe/" + box + "\n", alone},
		"no hierarchy":      {"", dra.Owner{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeOwner([]byte(test.file))
			if err != nil || got != test.want {
				t.Errorf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestDecodeOwnerRefuses(t *testing.T) {
	for _, file := range []string{"\n", "nonsense", "0:/kubepods", "x::/", "::/", "\x00\x01"} {
		if got, err := decodeOwner([]byte(file)); err == nil || got != (dra.Owner{}) {
			t.Errorf("%q: got %+v, %v", file, got, err)
		}
	}
}

func FuzzDecodeOwner(f *testing.F) {
	f.Add([]byte("0::/kubepods.slice/kubepods-pod" + sysd + ".slice/cri-containerd-" + box + ".scope\n"))
	f.Add([]byte("12:pids:/kubepods/burstable/pod" + uid + "/" + box + "\n0::/../../pod" + other + "/" + inner + " (deleted)\n"))
	f.Add([]byte("1:cpu,cpuacct:/kubepods-pod" + sysd + ".slice:cri-containerd:" + box))
	f.Add([]byte("\xff::/pod_-:\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		owner, err := decodeOwner(file)
		if owner.Gone || err != nil && owner != (dra.Owner{}) {
			t.Errorf("got %+v beside %v", owner, err)
		}
		if owner.PodUID != "" && !isUID(owner.PodUID) {
			t.Errorf("%q is no UID", owner.PodUID)
		}
		if owner.ContainerID != "" && !isContainerID(owner.ContainerID) {
			t.Errorf("%q is no container's id", owner.ContainerID)
		}
		// A line that names no pod and no container changes nothing.
		if more, err := decodeOwner(append([]byte("7:x:/\n"), file...)); err != nil || more != owner {
			t.Errorf("got %+v, %v beside an empty line; %+v alone", more, err, owner)
		}
	})
}

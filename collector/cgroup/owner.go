package cgroup

import (
	"bytes"
	"errors"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// errNoHierarchy means that a file is not a /proc/<pid>/cgroup.
var errNoHierarchy = errors.New("no line has the form hierarchy:controllers:path")

// decodeOwner decodes /proc/<pid>/cgroup (cgroups(7)): a line for each
// hierarchy, of which version 2 has one and version 1 several. They may differ,
// so the most specific line counts. If no line names a pod or a container, it
// returns the zero Owner: a process of the host.
func decodeOwner(file []byte) (dra.Owner, error) {
	var owner dra.Owner
	valid := len(file) == 0 // a kernel without any hierarchy
	for line := range bytes.Lines(file) {
		hierarchy, rest, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(":"))
		_, path, ok := bytes.Cut(rest, []byte(":"))
		if !ok || !isNumber(hierarchy) {
			continue
		}
		valid = true
		if o := parseOwner(string(path)); rank(o) > rank(owner) {
			owner = o
		}
	}
	if !valid {
		return dra.Owner{}, errNoHierarchy
	}
	return owner, nil
}

// rank orders owners by how specific they are.
func rank(o dra.Owner) int {
	n := 0
	if o.PodUID != "" {
		n += 2
	}
	if o.ContainerID != "" {
		n++
	}
	return n
}

// parseOwner finds the pod and the container in the path of a hierarchy. The
// outermost pod counts, and the container is the element directly below it: a
// container may create cgroups below its own, and the elements above a pod are
// those that the node itself runs in. Seen from another cgroup namespace a path
// begins with "..", and from inside the pod it names the container alone.
func parseOwner(path string) dra.Owner {
	var owner dra.Owner
	path = strings.TrimSuffix(path, " (deleted)") // version 2, of a process that is about to be reaped
	elements := strings.Split(path, "/")
	for i, element := range elements {
		if uid, inside := parsePod(element); uid != "" {
			if inside == "" && i+1 < len(elements) {
				inside = elements[i+1]
			}
			return dra.Owner{PodUID: uid, ContainerID: parseContainer(inside)}
		}
		if owner.ContainerID == "" {
			owner.ContainerID = parseContainer(element)
		}
	}
	return owner
}

// parsePod returns the UID of the pod that an element of a path names, or "", and
// the part of the element that names the container.
//
// The kubelet (pkg/kubelet/cm) names a pod's cgroup pod<UID>, below that of its
// QoS class. With the systemd driver the names of all parents precede it,
// joined by dashes, and the UID's own dashes are underscores:
// kubepods-burstable-pod<UID>.slice. A containerd that is not configured to use
// systemd makes one element of such a parent, <slice>:cri-containerd:<id>
// (internal/cri/server, getCgroupsPath).
func parsePod(element string) (uid, inside string) {
	name, inside, _ := strings.Cut(element, ":")
	if slice, ok := strings.CutSuffix(name, ".slice"); ok {
		slice = slice[strings.LastIndexByte(slice, '-')+1:]
		name = strings.ReplaceAll(slice, "_", "-")
	}
	uid, ok := strings.CutPrefix(name, "pod")
	if !ok || !isUID(uid) {
		return "", ""
	}
	return uid, inside
}

// parseContainer returns the runtime's id of the container that an element names,
// or "". It is the bare id with the cgroupfs driver; with the systemd driver it
// follows the runtime's name in a scope (cri-containerd-<id>.scope,
// crio-<id>.scope, docker-<id>.scope); and it is crio-<id> where CRI-O uses
// cgroupfs. crio-conmon-<id> is the cgroup of CRI-O's monitor of that
// container, not of the container.
func parseContainer(element string) string {
	name := strings.TrimSuffix(element, ".scope")
	at := strings.LastIndexAny(name, "-:")
	id := name[at+1:]
	if !isContainerID(id) || at >= 0 && strings.HasSuffix(name[:at], "conmon") {
		return ""
	}
	return id
}

// isUID reports whether s is a UID as Kubernetes generates them: a UUID by the
// API server, or, for a static pod, the kubelet's hash without dashes
// (pkg/kubelet/config, applyDefaults).
func isUID(s string) bool {
	switch len(s) {
	case 32:
		return isHex(s)
	case 36:
		return s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' &&
			isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
	default:
		return false
	}
}

// isContainerID reports whether s is an id as containerd, CRI-O and Docker
// generate them: 32 random bytes in hexadecimal.
func isContainerID(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

func isNumber(s []byte) bool { return len(s) > 0 && len(bytes.Trim(s, "0123456789")) == 0 }

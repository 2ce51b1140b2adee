// Package topology shows how near the devices of a node, of a pod or of a workload are
// to each other, as a matrix on a terminal or as one JSON document. It is made of what
// node agents report, and does no I/O.
package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/vendors"
	"github.com/dra-exporter/dra-exporter/internal/clusterread"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/top"
)

// describe names whose devices are to be shown. A node without a name is any node.
func describe(s clusterread.Subject) string {
	switch {
	case s.Kind == clusterread.KindNode && s.Name == "":
		return "any node"
	case s.Kind == clusterread.KindNode:
		return "node " + s.Name
	default:
		return fmt.Sprintf("%s %s/%s", cmp.Or(s.WorkloadKind, string(s.Kind)), s.Namespace, s.Name)
	}
}

// Document is the topology of a subject. docs/api.md describes its JSON; its names
// do not change within v1.
type Document struct {
	APIVersion string             `json:"apiVersion"`
	At         time.Time          `json:"at"`
	Nodes      []Node             `json:"nodes"`    // by name
	Failures   []top.AgentFailure `json:"failures"` // agents that did not answer: devices of their nodes are missing
}

// Node is the devices of the subject on one node.
type Node struct {
	Node    string   `json:"node"`
	Devices []Device `json:"devices"`
	// Alignments has, for each device, how near it is to each device, in the same
	// order: link, pcie_root, numa_node, unknown, crossing; itself for the device.
	Alignments [][]string `json:"alignments"`
	Pods       []Pod      `json:"pods"` // with several devices, by namespace and name
}

// Device is a whole device. Partitions are where their device is.
type Device struct {
	UUID       string   `json:"uuid"`
	Driver     string   `json:"driver,omitempty"`
	Pool       string   `json:"pool,omitempty"`
	Device     string   `json:"device,omitempty"` // its published name
	Model      string   `json:"model,omitempty"`
	Network    bool     `json:"network"` // it is a network adapter
	PCIeRoot   string   `json:"pcieRoot,omitempty"`
	NUMANode   string   `json:"numaNode,omitempty"`
	LinkDomain string   `json:"linkDomain,omitempty"`
	Claims     []string `json:"claims"` // that hold it or a partition of it, as namespace/name
}

func (d *Device) location() dra.Location {
	return dra.Location{Link: d.LinkDomain, Root: d.PCIeRoot, NUMA: d.NUMANode}
}

// Pod is how near the devices of a pod's claims are to each other.
type Pod struct {
	Namespace string           `json:"namespace"`
	Pod       string           `json:"pod"`
	Place     string           `json:"place,omitempty"` // in its workload
	Topology  []page.Alignment `json:"topology"`
}

// itself is the alignment of a device with itself.
const itself = "itself"

// Of returns the topology of a subject. It fails if no agent that has answered has a
// device of it.
func Of(reading top.FleetState, subject clusterread.Subject) (Document, error) {
	document := Document{APIVersion: "v1", At: reading.At.UTC(), Nodes: []Node{}, Failures: reading.Failures}
	if document.Failures == nil {
		document.Failures = []top.AgentFailure{}
	}
	rows, err := selectRows(reading.Rows, subject)
	if err != nil {
		return document, err
	}
	nodes := make(map[string]*Node)
	for _, d := range wholeDevices(reading.All, rows, subject) {
		node := nodes[d.Node]
		if node == nil {
			node = &Node{Node: d.Node, Pods: listPods(rows, d.Node)}
			nodes[d.Node] = node
		}
		node.Devices = append(node.Devices, newDevice(d, reading.All, rows))
	}
	for _, node := range nodes {
		// Network adapters come last, as in nvidia-smi.
		slices.SortStableFunc(node.Devices, func(a, b Device) int { return compareBool(a.Network, b.Network) })
		node.align()
		document.Nodes = append(document.Nodes, *node)
	}
	slices.SortFunc(document.Nodes, func(a, b Node) int { return cmp.Compare(a.Node, b.Node) })
	if len(document.Nodes) == 0 {
		return document, absent(reading, subject)
	}
	return document, nil
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// absent is why there is no device of the subject.
func absent(reading top.FleetState, subject clusterread.Subject) error {
	switch failed := len(reading.Failures); {
	case reading.Unlisted > 0 && len(reading.All) == 0:
		return fmt.Errorf("the agents do not report their devices: they are older than this program")
	case failed > 0:
		return fmt.Errorf("no device of %s is known; %d of %d agents did not answer: %s: %s",
			describe(subject), failed, reading.Agents, reading.Failures[0].Agent, reading.Failures[0].Error)
	default:
		return fmt.Errorf("no device of %s is known; agents that answered: %d", describe(subject), reading.Answered)
	}
}

// selectRows returns the devices that claims of the subject hold.
func selectRows(all []*top.Row, subject clusterread.Subject) ([]*top.Row, error) {
	if subject.Kind == clusterread.KindNode {
		return all, nil
	}
	var rows []*top.Row
	kinds := make(map[string]bool)
	for _, row := range all {
		if row.Namespace != subject.Namespace {
			continue
		}
		if slices.ContainsFunc(row.Users, func(user top.User) bool {
			if subject.Kind == clusterread.KindPod {
				return user.Pod == subject.Name
			}
			match := user.Workload == subject.Name && (subject.WorkloadKind == "" || strings.EqualFold(user.Kind, subject.WorkloadKind))
			if match {
				kinds[user.Kind] = true
			}
			return match
		}) {
			rows = append(rows, row)
		}
	}
	if len(kinds) > 1 {
		names := slices.Sorted(maps.Keys(kinds))
		return nil, fmt.Errorf("several workloads are named %s/%s: choose one with --workload-kind: %s", subject.Namespace, subject.Name, strings.Join(names, ", "))
	}
	return rows, nil
}

// wholeDevices returns the devices to show, in the order of the agents: those that the
// rows are about, or all. A partition is represented by its device, if that is known.
func wholeDevices(all []*top.Device, rows []*top.Row, subject clusterread.Subject) []*top.Device {
	held, known := make(map[string]bool), make(map[string]bool)
	for _, d := range all {
		known[d.UUID] = true
	}
	for _, row := range rows {
		held[row.UUID] = true
		held[row.ParentUUID] = true
	}
	var whole []*top.Device
	for _, d := range all {
		if (d.ParentUUID == "" || !known[d.ParentUUID]) && (subject.Kind == clusterread.KindNode || held[d.UUID]) {
			whole = append(whole, d)
		}
	}
	return whole
}

func newDevice(agent *top.Device, all []*top.Device, rows []*top.Row) Device {
	d := Device{
		UUID: agent.UUID, Driver: agent.Driver, Pool: agent.Pool, Device: agent.Device, Model: agent.Model, Network: vendors.IsNetwork(agent.Driver),
		PCIeRoot: agent.PCIeRoot, NUMANode: agent.NUMANode, LinkDomain: agent.LinkDomain, Claims: []string{},
	}
	// A driver may publish the partitions alone.
	for _, partition := range all {
		if partition.ParentUUID == agent.UUID {
			d.PCIeRoot, d.NUMANode = cmp.Or(d.PCIeRoot, partition.PCIeRoot), cmp.Or(d.NUMANode, partition.NUMANode)
		}
	}
	for _, row := range rows {
		if row.UUID == agent.UUID || row.ParentUUID == agent.UUID {
			d.Claims = append(d.Claims, row.Namespace+"/"+row.Claim)
		}
	}
	slices.Sort(d.Claims)
	d.Claims = slices.Compact(d.Claims)
	return d
}

// align fills in how near the devices are to each other.
func (n *Node) align() {
	for i := range n.Devices {
		row := make([]string, len(n.Devices))
		for j := range n.Devices {
			row[j] = n.Devices[i].location().AlignmentWith(n.Devices[j].location()).String()
		}
		row[i] = itself
		n.Alignments = append(n.Alignments, row)
	}
}

// listPods returns the pods on a node with several devices.
func listPods(rows []*top.Row, node string) []Pod {
	pods := []Pod{}
	for _, row := range rows {
		if row.Node != node {
			continue
		}
		for _, user := range row.Users {
			if len(user.Topology) > 0 {
				pods = append(pods, Pod{row.Namespace, user.Pod, user.Place, user.Topology})
			}
		}
	}
	compare := func(a, b Pod) int { return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Pod, b.Pod)) }
	slices.SortStableFunc(pods, compare)
	return slices.CompactFunc(pods, func(a, b Pod) bool { return compare(a, b) == 0 })
}

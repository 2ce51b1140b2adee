package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// nodePages returns the contents of the pages of a node.
type nodePages struct{ links Links }

// nodePage is what all of them show.
type nodePage struct {
	View
	*frame
	NodeLinks    []link
	ClaimColumns []column
}

func (p nodePages) common(view View, around *frame) nodePage {
	around.DocumentTitle = "dra-exporter"
	if view.Node != "" {
		around.DocumentTitle = view.Node + " · " + around.DocumentTitle
	}
	links := append(p.links.overview(), p.links.dashboard("Dashboard", "dra-node", "node", view.Node)...)
	return nodePage{view, around, links, unordered(claimColumns())}
}

func (p nodePages) overview(_ *http.Request, view View, around *frame) any {
	around.Groupings = nodeGroupings()
	common := p.common(view, around)
	if unhealthy := len(view.Unhealthy()); unhealthy > 0 {
		around.DocumentTitle = fmt.Sprintf("(%d unhealthy) %s", unhealthy, around.DocumentTitle)
	}
	common.ClaimColumns = around.Selection.columns("claims", claimColumns())
	return struct {
		nodePage
		Overview      overview
		DeviceColumns []column
	}{common, newOverview(view, around.Selection), around.Selection.columns("devices", deviceColumns())}
}

// claim returns the page of the claim that the query names.
func (p nodePages) claim(r *http.Request, view View, around *frame) any {
	namespace, name := r.URL.Query().Get("namespace"), r.URL.Query().Get("name")
	content := struct {
		nodePage
		Title          string
		Claim          *Claim
		One            []Claim
		ObjectLinks    []link
		WorkloadFilter string
	}{nodePage: p.common(view, around), Title: namespace + "/" + name}
	around.DocumentTitle = content.Title + " · " + around.DocumentTitle
	i := slices.IndexFunc(view.Claims, func(c Claim) bool { return c.Namespace == namespace && c.Name == name })
	if i < 0 {
		around.Missing = &absence{"No claim " + namespace + "/" + name + " on this node", "It has ended and its grace period is over, it is used on another node, or its name is different." + downSources(view)}
		return content
	}
	claim := view.Claims[i]
	content.Claim, content.One, content.WorkloadFilter = &claim, []Claim{claim}, claim.workloadFilter()
	content.ObjectLinks = p.links.dashboard("Dashboard of this claim", "dra-claim", "namespace", namespace, "resourceclaim", name)
	for _, device := range claim.Devices {
		if device.Held && device.Health != nil {
			for _, runbook := range p.links.runbook(healthAlert(*device.Health)) {
				if !slices.Contains(content.ObjectLinks, runbook) {
					content.ObjectLinks = append(content.ObjectLinks, runbook)
				}
			}
		}
	}
	for _, consumer := range claim.Consumers {
		if address := p.links.pod(namespace, consumer.Pod); address != "" {
			pod := link{"Pod " + consumer.Pod + " in the cluster", address}
			if !slices.Contains(content.ObjectLinks, pod) {
				content.ObjectLinks = append(content.ObjectLinks, pod)
			}
		}
	}
	return content
}

// device returns the page of the device or partition that the query names.
func (p nodePages) device(r *http.Request, view View, around *frame) any {
	uuid := r.URL.Query().Get("uuid")
	content := struct {
		nodePage
		Title        string
		Device       *Device
		Claims       []Claim // that use the device or a partition of it
		PlainColumns []column
		ObjectLinks  []link
	}{nodePage: p.common(view, around), Title: uuid, PlainColumns: unordered(deviceColumns())}
	overview := around.DocumentTitle
	around.DocumentTitle = uuid + " · " + overview
	device := view.device(uuid)
	if device == nil {
		around.Missing = &absence{"No device " + uuid + " on this node", "No source reports it, and no claim holds it. A partition that was created on demand is gone after its claim." + downSources(view)}
		return content
	}
	content.Title, content.Device = device.Title(), device
	around.DocumentTitle = content.Title + " · " + overview
	of := []string{device.UUID}
	for _, partition := range device.Partitions {
		of = append(of, partition.UUID)
	}
	for _, claim := range view.Claims {
		if slices.ContainsFunc(claim.Devices, func(d ClaimDevice) bool { return slices.Contains(of, d.UUID) }) {
			content.Claims = append(content.Claims, claim)
		}
	}
	content.ObjectLinks = append(p.links.dashboard("Dashboard of health", "dra-health", "node", view.Node), p.links.runbook(healthAlert(device.Health))...)
	return content
}

// downSources names the sources that are down, as a sentence: what only they report is
// not known. It is empty if all are up.
func downSources(view View) string {
	down := slices.DeleteFunc(slices.Clone(view.Sources), func(s Source) bool { return s.Up })
	if len(down) == 0 {
		return ""
	}
	return " Or it is not known, because these sources are down: " + listed(down) + "."
}

// device returns the device or partition with a UUID; nil if there is none.
func (v View) device(uuid string) *Device {
	for i := range v.Devices {
		for _, device := range append([]Device{v.Devices[i]}, v.Devices[i].Partitions...) {
			if device.UUID == uuid {
				return &device
			}
		}
	}
	return nil
}

// claimTable is claims as a table.
type claimTable struct {
	View    View
	Columns []column
	Claims  []Claim
}

func newClaimTable(view View, columns []column, claims []Claim) claimTable {
	return claimTable{view, columns, claims}
}

// unordered returns the columns without links that change the order.
func unordered(columns []column) []column {
	columns = slices.Clone(columns)
	for i := range columns {
		columns[i].Key, columns[i].Address, columns[i].Sorted = "", "", ""
	}
	return columns
}

// workloadFilter is the filter that selects the claims of the same workload.
func (c Claim) workloadFilter() string {
	name, _, _ := strings.Cut(c.Workload(), " ")
	_, name, _ = strings.Cut(name, "/")
	return name
}

// Title is the first of the device's names in the claim.
func (c ClaimDevice) Title() string { return c.name() }

// reportedText shows what a source reports on the health of a device.
func reportedText(healthy *bool) string {
	switch {
	case healthy == nil:
		return absent
	case *healthy:
		return "healthy"
	default:
		return "unhealthy"
	}
}

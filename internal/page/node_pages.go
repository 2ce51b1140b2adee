package page

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
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
		Title       string
		Claim       *Claim
		One         []Claim
		ObjectLinks []link
	}{nodePage: p.common(view, around), Title: namespace + "/" + name}
	around.DocumentTitle = content.Title + " · " + around.DocumentTitle
	i := slices.IndexFunc(view.Claims, func(c Claim) bool { return c.Namespace == namespace && c.Name == name })
	if i < 0 {
		around.Missing = &absence{"No claim " + namespace + "/" + name + " on this node", "It has ended and its grace period is over, it is used on another node, or its name is different." + downSources(view)}
		return content
	}
	claim := view.Claims[i]
	content.Claim, content.One = &claim, []Claim{claim}
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

// workload returns the page of the workload that the query names: its claims on this node.
func (p nodePages) workload(r *http.Request, view View, around *frame) any {
	query := r.URL.Query()
	workload := Workload{query.Get("namespace"), query.Get("kind"), query.Get("name")}
	content := struct {
		nodePage
		Title         string
		Of            Workload
		Claims        []Claim
		Pods, Devices int      // that use them now; that they hold now
		DeviceSeconds *float64 // of all claims
		ObjectLinks   []link
	}{nodePage: p.common(view, around), Title: workload.Title(), Of: workload}
	around.DocumentTitle = content.Title + " · " + around.DocumentTitle
	pods, held := map[string]bool{}, map[string]bool{}
	for _, claim := range view.Claims {
		if workload.Name == "" || claim.Workload() != workload {
			continue
		}
		content.Claims = append(content.Claims, claim)
		for _, consumer := range claim.Consumers {
			if !consumer.Ended {
				pods[consumer.Pod] = true
			}
		}
		for _, device := range claim.Devices {
			if device.Held {
				held[device.UUID] = true
			}
			content.DeviceSeconds = orPlus(content.DeviceSeconds, device.DeviceSeconds)
		}
	}
	if len(content.Claims) == 0 {
		around.Missing = &absence{"No claims of " + cmp.Or(content.Title, "a workload without a name") + " on this node", "Its pods run on other nodes, their claims have ended and their grace period is over, or its kind or name is different." + downSources(view)}
		return content
	}
	content.Pods, content.Devices = len(pods), len(held)
	content.ObjectLinks = p.links.dashboard("Dashboard of claims", "dra-claims", "namespace", workload.Namespace)
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
	uuids := []string{device.UUID}
	for _, partition := range device.Partitions {
		uuids = append(uuids, partition.UUID)
	}
	for _, claim := range view.Claims {
		if slices.ContainsFunc(claim.Devices, func(d ClaimDevice) bool { return slices.Contains(uuids, d.UUID) }) {
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

// unordered returns the columns without links that change the order.
func unordered(columns []column) []column {
	columns = slices.Clone(columns)
	for i := range columns {
		columns[i].Key, columns[i].Address, columns[i].Sorted = "", "", ""
	}
	return columns
}

// Title is the first of the device's names in the claim.
func (c ClaimDevice) Title() string { return c.name() }

// reportedText shows what a source reports on the health of a device.
func reportedText(healthy *bool) string {
	if healthy == nil {
		return absent
	}
	return map[bool]string{true: "healthy", false: "unhealthy"}[*healthy]
}

package page

import (
	"cmp"
	"slices"
	"strings"
)

// overview is the devices and claims of a node that a reader has selected.
type overview struct {
	Devices []Device
	Claims  []group[Claim] // without those that have ended
	Ended   []Claim

	Selected int // claims in Claims
	All      int // claims that have not ended
	AllEnded int
}

// newOverview returns what is selected of the view.
func newOverview(view View, s selection) overview {
	matches := s.matcher()
	var o overview
	for _, device := range view.Devices {
		if matches(device.words()...) {
			o.Devices = append(o.Devices, device)
		}
	}
	var present []Claim
	for _, claim := range view.Claims {
		ended := claim.Ended()
		if ended {
			o.AllEnded++
		} else {
			o.All++
		}
		switch {
		case !matches(claim.words(view.Node)...):
		case ended:
			o.Ended = append(o.Ended, claim)
		default:
			present = append(present, claim)
		}
	}
	o.Selected = len(present)
	o.Devices = sorted(s, "devices", o.Devices, Device.Title, deviceNumbers())
	present, o.Ended = sortedClaims(s, present), sortedClaims(s, o.Ended)
	o.Claims = grouped(s.Group, present, claimGroups(view.Node)[s.Group])
	return o
}

func sortedClaims(s selection, claims []Claim) []Claim {
	return sorted(s, "claims", claims, func(c Claim) string { return c.Namespace + "/" + c.Name }, claimNumbers())
}

// claimGroups maps what claims can be grouped by to the title of a claim's group.
func claimGroups(node string) map[string]func(Claim) string {
	return map[string]func(Claim) string{
		"namespace": func(c Claim) string { return c.Namespace },
		"workload":  func(c Claim) string { return cmp.Or(c.Workload().Title(), "without pods") },
		"node":      func(Claim) string { return cmp.Or(node, "unknown node") },
		"class":     func(c Claim) string { return cmp.Or(c.Class, "unknown class") },
	}
}

// grouping is a choice of the form.
type grouping struct{ Value, Title string }

func nodeGroupings() []grouping {
	return []grouping{{"", "none"}, {"namespace", "namespace"}, {"workload", "workload"}, {"node", "node"}, {"class", "device class"}}
}

func deviceColumns() []column {
	return []column{
		{Key: "name", Title: "Device"}, {Key: "utilization", Title: "Utilization", Class: "wide"}, {Key: "memory", Title: "Memory", Class: "wide"},
		{Key: "power", Title: "Power", Class: "num"}, {Key: "temperature", Title: "Temp.", Class: "num"}, {Title: "Held by", Class: "holders"},
	}
}

func deviceNumbers() map[string]func(Device) *float64 {
	return map[string]func(Device) *float64{
		"utilization": func(d Device) *float64 { return d.Utilization },
		"memory":      func(d Device) *float64 { return d.MemoryUsed },
		"power":       func(d Device) *float64 { return d.Power },
		"temperature": func(d Device) *float64 { return d.Temperature },
	}
}

func claimColumns() []column {
	return []column{
		{Key: "name", Title: "Claim and device"}, {Title: "Attribution"}, {Key: "utilization", Title: "Utilization", Class: "wide"}, {Key: "memory", Title: "Memory", Class: "wide"},
		{Key: "power", Title: "Power", Class: "num"}, {Key: "held", Title: "Held", Class: "num"}, {Key: "busy", Title: "Busy", Class: "num"}, {Key: "energy", Title: "Energy", Class: "num"},
	}
}

// claimNumbers are by what claims are sorted: the largest value of a claim's devices.
func claimNumbers() map[string]func(Claim) *float64 {
	largest := func(number func(ClaimDevice) *float64) func(Claim) *float64 {
		return func(c Claim) *float64 {
			var most *float64
			for _, device := range c.Devices {
				if value := number(device); value != nil && (most == nil || *value > *most) {
					most = value
				}
			}
			return most
		}
	}
	total := func(value func(Account) *float64) func(ClaimDevice) *float64 {
		return func(d ClaimDevice) *float64 {
			var sum *float64
			for _, account := range d.Accounts {
				sum = orPlus(sum, value(account))
			}
			return sum
		}
	}
	return map[string]func(Claim) *float64{
		"utilization": largest(func(d ClaimDevice) *float64 { return d.Utilization }),
		"memory":      largest(func(d ClaimDevice) *float64 { return d.MemoryUsed }),
		"power":       largest(func(d ClaimDevice) *float64 { return d.Power }),
		"held":        largest(func(d ClaimDevice) *float64 { return d.HeldSeconds }),
		"busy":        largest(total(func(a Account) *float64 { return a.Busy })),
		"energy":      largest(total(func(a Account) *float64 { return a.Energy })),
	}
}

// Ended reports whether the claim holds no device any more, and no pod uses it.
func (c Claim) Ended() bool {
	return !c.Held && !slices.ContainsFunc(c.Consumers, func(consumer Consumer) bool { return !consumer.Ended })
}

// Workload is what pods run for, or a pod that has none.
type Workload struct{ Namespace, Kind, Name string }

// Title is empty without a name.
func (w Workload) Title() string {
	if w.Name == "" {
		return ""
	}
	return w.Namespace + "/" + w.Name + " (" + w.Kind + ")"
}

// Workload is what uses the claim: present pods come before those that have ended. Only
// its namespace is known of a claim without pods.
func (c Claim) Workload() Workload {
	for _, present := range []bool{true, false} {
		for _, consumer := range c.Consumers {
			if consumer.Ended == present {
				continue
			}
			if kind, name := consumer.Owner(); name != "" {
				return Workload{c.Namespace, kind, name}
			}
			return Workload{c.Namespace, "Pod", consumer.Pod}
		}
	}
	return Workload{Namespace: c.Namespace}
}

// words are the texts that a filter looks at.
func (c Claim) words(node string) []string {
	words := []string{c.Namespace + "/" + c.Name, c.Class, c.Template, node, c.Severity().String()}
	for _, consumer := range c.Consumers {
		words = append(words, consumer.Pod, consumer.Container, consumer.OwnerKind+"/"+consumer.OwnerName)
		if w := consumer.Workload; w != nil {
			words = append(words, w.Kind+"/"+w.Name, w.Queue, w.Place())
		}
	}
	for _, label := range c.Labels() {
		words = append(words, label.Name+"="+label.Value)
	}
	for _, device := range c.Devices {
		words = append(words, device.UUID, device.Model, device.name(), device.UseAttribution())
	}
	return words
}

// words are those of the device and its partitions.
func (d Device) words() []string {
	words := []string{d.Title(), d.UUID, d.Model, d.PCIBusID, d.Hardware.Serial, d.Vendor, d.Profile, d.Published.Driver, d.Health.Severity().String()}
	for _, holder := range d.Holders {
		words = append(words, holder.Namespace+"/"+holder.Claim, holder.Class, holder.Resource, holder.Attribution)
		for _, pod := range holder.Pods {
			words = append(words, pod.Namespace+"/"+pod.Name, strings.Join(pod.Containers, " "))
		}
	}
	if d.Free() {
		words = append(words, "free")
	}
	for _, partition := range d.Partitions {
		words = append(words, partition.words()...)
	}
	return words
}

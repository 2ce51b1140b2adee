package node

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// pluginConsumer is a container that got a device through a device plugin.
type pluginConsumer struct {
	uuid     string
	pod      dra.PodRef
	name     string
	resource string
}

// plugins determines which containers got devices through device plugins. Only
// the kubelet reports it.
type plugins struct {
	node      string
	families  *families
	devices   *devices
	consumers []pluginConsumer // sorted
	absent    absences
	infos     infoRows[pluginConsumer]
	causes    pluginCauses // of the consumers
}

// pluginCauses is everything that the consumers depend on while the List is
// complete.
type pluginCauses struct {
	listed   span[dra.PluginAssignment]
	hardware uint64
}

func newPlugins(node string, devices *devices, f *families) *plugins {
	return &plugins{node: node, families: f, devices: devices, absent: make(absences)}
}

// update applies the kubelet's List. Where it may not be complete, the API
// server decides which of the missing pods are gone, or, without the API
// server, a second List does.
func (p *plugins) update(facts Facts, now clock.Instant) {
	switch {
	case facts.ListedAt.IsZero():
		return
	case complete(facts.Listing, p.node):
		clear(p.absent)
		causes := pluginCauses{spanOf(facts.Listing.Plugins), p.devices.changes}
		if causes == p.causes {
			return
		}
		p.causes, p.consumers = causes, p.resolve(facts.Listing.Plugins)
	default:
		p.causes = pluginCauses{}
		missing, gone := p.absent.observe(p.pods(), facts.Listing, facts.ListedAt)
		if facts.Cluster.Enabled && facts.Cluster.Fresh {
			gone = withoutPods(missing, facts.Cluster.Pods, facts.Cluster.PluginPods)
		}
		kept := slices.DeleteFunc(slices.Clone(p.consumers), func(c pluginConsumer) bool { return !missing[c.pod] || gone[c.pod] })
		p.consumers = append(kept, p.resolve(facts.Listing.Plugins)...)
		slices.SortFunc(p.consumers, comparePluginConsumers)
	}
	p.infos.update(p.consumers, now,
		func(a, b pluginConsumer) bool { return a == b },
		func(c pluginConsumer) *metric.Labels {
			return metric.NewLabels(p.families.pluginConsumerInfo.Labels, p.node, c.uuid, c.pod.Namespace, c.pod.Name, c.name, c.resource)
		})
}

func (p *plugins) pods() []dra.PodRef {
	pods := make([]dra.PodRef, len(p.consumers))
	for i, c := range p.consumers {
		pods[i] = c.pod
	}
	return pods
}

// resolve finds the hardware of devices that device plugins allocated: their ids
// are UUIDs (with ::N for a replica of a shared device) or PCI addresses.
func (p *plugins) resolve(assignments []dra.PluginAssignment) []pluginConsumer {
	if len(assignments) == 0 {
		return nil
	}
	byAddress := make(map[string]string)
	for _, d := range p.devices.all() {
		if d.hardware && !d.device.IsPartition() && d.device.PCIBusID != "" {
			byAddress[d.device.PCIBusID] = d.uuid
		}
	}
	var consumers []pluginConsumer
	for _, a := range assignments {
		for _, id := range a.DeviceIDs {
			id, _, _ = strings.Cut(id, "::")
			uuid := id
			if address, ok := byAddress[strings.ToLower(id)]; ok {
				uuid = address
			}
			if d := p.devices.get(uuid); d != nil && d.hardware {
				consumers = append(consumers, pluginConsumer{uuid, a.Pod, a.Container, a.Resource})
			}
		}
	}
	slices.SortFunc(consumers, comparePluginConsumers)
	return slices.Compact(consumers)
}

// evict removes the info rows whose grace has ended.
func (p *plugins) evict(now clock.Instant, grace time.Duration) { p.infos.evict(now, grace) }

func (p *plugins) rows(b *rowBuilder) {
	b.In(b.families.pluginConsumerInfo)
	p.infos.addTo(b, true)
}

func comparePluginConsumers(a, b pluginConsumer) int {
	return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.pod.String(), b.pod.String()), cmp.Compare(a.name, b.name), cmp.Compare(a.resource, b.resource))
}

// withoutPods returns the pods without those that a list of the API server has as
// not finished.
func withoutPods(pods map[dra.PodRef]bool, lists ...[]dra.Pod) map[dra.PodRef]bool {
	left := maps.Clone(pods)
	for _, list := range lists {
		for i := range list {
			if !list[i].Terminal {
				delete(left, list[i].Ref)
			}
		}
	}
	return left
}

package node

import (
	"cmp"
	"maps"
	"slices"
	"strings"

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

// plugins is who got devices through device plugins: only the kubelet knows.
type plugins struct {
	consumers []pluginConsumer
	absent    absences
	rows      infoRows[pluginConsumer]
	causes    pluginCauses // what consumers follow from
}

// pluginCauses is all that the consumers depend on while pods are listed.
type pluginCauses struct {
	listed   span[dra.PluginAssignment]
	hardware uint64
}

// updatePlugins takes in what the kubelet lists. Where a List may not be
// complete, the API server says which of the missing pods are gone, or, without
// it, a second List does.
func (s *State) updatePlugins(facts Facts, now clock.Instant) {
	p := &s.plugins
	switch {
	case facts.ListedAt.IsZero():
		return
	case complete(facts.Listing, s.config.Node):
		clear(p.absent)
		causes := pluginCauses{spanOf(facts.Listing.Plugins), s.devices.changes}
		if causes == p.causes {
			return
		}
		p.causes, p.consumers = causes, s.pluginConsumers(facts.Listing.Plugins)
	default:
		p.causes = pluginCauses{}
		missing, gone := p.absent.observe(p.pods(), facts.Listing, facts.ListedAt)
		if facts.Cluster.Enabled && facts.Cluster.Fresh {
			gone = withoutPods(missing, facts.Cluster.Pods, facts.Cluster.PluginPods)
		}
		kept := slices.DeleteFunc(slices.Clone(p.consumers), func(c pluginConsumer) bool { return !missing[c.pod] || gone[c.pod] })
		p.consumers = append(kept, s.pluginConsumers(facts.Listing.Plugins)...)
		slices.SortFunc(p.consumers, comparePluginConsumers)
	}
	p.rows.update(p.consumers, now,
		func(a, b pluginConsumer) bool { return a == b },
		func(c pluginConsumer) *metric.Labels {
			return metric.NewLabels(s.rows.families.pluginConsumerInfo.Labels, s.config.Node, c.uuid, c.pod.Namespace, c.pod.Name, c.name, c.resource)
		})
}

func (p *plugins) pods() []dra.PodRef {
	pods := make([]dra.PodRef, len(p.consumers))
	for i, c := range p.consumers {
		pods[i] = c.pod
	}
	return pods
}

// pluginConsumers finds the hardware of what device plugins gave: their ids
// are UUIDs (with ::N for a replica of a shared device) or PCI addresses.
func (s *State) pluginConsumers(assignments []dra.PluginAssignment) []pluginConsumer {
	if len(assignments) == 0 {
		return nil
	}
	byAddress := make(map[string]string, len(s.devices.byUUID))
	for uuid, u := range s.devices.byUUID {
		if u.hardware && !u.device.IsPartition() && u.device.PCIBusID != "" {
			byAddress[u.device.PCIBusID] = uuid
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
			if u, known := s.devices.byUUID[uuid]; known && u.hardware {
				consumers = append(consumers, pluginConsumer{uuid, a.Pod, a.Container, a.Resource})
			}
		}
	}
	slices.SortFunc(consumers, comparePluginConsumers)
	return slices.Compact(consumers)
}

func comparePluginConsumers(a, b pluginConsumer) int {
	return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.pod.String(), b.pod.String()), cmp.Compare(a.name, b.name), cmp.Compare(a.resource, b.resource))
}

// withoutPods leaves those pods that no list of the API server's has as running.
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

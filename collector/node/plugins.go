package node

import (
	"cmp"
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

// updatePlugins takes in what the kubelet lists. A List without any pod is
// not believed before a second one says so: the kubelet may have restarted.
func (s *State) updatePlugins(facts Facts, now clock.Instant) {
	p := &s.plugins
	switch {
	case facts.ListedAt.IsZero():
		return
	case len(facts.Listing.Pods) > 0:
		clear(p.absent)
		causes := pluginCauses{spanOf(facts.Listing.Plugins), s.hardwareChanges}
		if causes == p.causes {
			return
		}
		p.causes, p.consumers = causes, s.pluginConsumers(facts.Listing.Plugins)
	default:
		p.causes = pluginCauses{}
		gone := p.absent.note(p.pods(), facts.Listing, facts.ListedAt)
		p.consumers = slices.DeleteFunc(slices.Clone(p.consumers), func(c pluginConsumer) bool { return gone[c.pod] })
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
	byAddress := make(map[string]string, len(s.units))
	for uuid, u := range s.units {
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
			if u, known := s.units[uuid]; known && u.hardware {
				consumers = append(consumers, pluginConsumer{uuid, a.Pod, a.Container, a.Resource})
			}
		}
	}
	slices.SortFunc(consumers, func(a, b pluginConsumer) int {
		return cmp.Or(cmp.Compare(a.uuid, b.uuid), cmp.Compare(a.pod.String(), b.pod.String()), cmp.Compare(a.name, b.name), cmp.Compare(a.resource, b.resource))
	})
	return slices.Compact(consumers)
}

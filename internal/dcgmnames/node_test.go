package dcgmnames

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

const sceneNode = "gpu-node-1"

// testNode builds the node that the role would give to a Translator.
type testNode struct {
	node model.Node // its lists are replaced, and not changed
}

func newTestNode() *testNode { return &testNode{node: model.Node{Name: sceneNode}} }

// snapshot returns what is known now. Devices and claims that have not changed are the
// same in memory as before.
func (s *testNode) snapshot() *model.Node {
	n := s.node
	slices.SortStableFunc(n.Claims, func(a, b *model.Claim) int {
		return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name))
	})
	s.node.Devices, s.node.Claims, s.node.Holds = slices.Clone(n.Devices), slices.Clone(n.Claims), slices.Clone(n.Holds)
	s.node.Pods, s.node.Plugins = slices.Clone(n.Pods), slices.Clone(n.Plugins)
	return &n
}

// add adds a device, or gives it another identity.
func (s *testNode) add(id model.Identity) string {
	if id.Parent == "" {
		id.GPUInstance, id.ComputeInstance = device.Unknown, device.Unknown
	}
	if at := s.find(id.UUID); at >= 0 {
		s.node.Devices[at].Identity = &id
		return id.UUID
	}
	s.node.Devices = append(s.node.Devices, model.Device{Identity: &id, Fresh: true})
	slices.SortFunc(s.node.Devices, func(a, b model.Device) int { return cmp.Compare(a.UUID, b.UUID) })
	return id.UUID
}

func (s *testNode) find(uuid string) int {
	return slices.IndexFunc(s.node.Devices, func(d model.Device) bool { return d.UUID == uuid })
}

// gpu adds the whole GPU of the given number, of which nothing is read yet.
func (s *testNode) gpu(number int) string {
	return s.add(model.Identity{UUID: fmt.Sprintf("GPU-%d", number), Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3",
		PCIBusID: fmt.Sprintf("0000:%x:00.0", 0x1a+number), DriverVersion: "580.65.06", Source: "nvml"})
}

// partition adds a MIG partition of it, in a GPU instance of its own.
func (s *testNode) partition(gpu, instance int) string {
	return s.add(model.Identity{UUID: fmt.Sprintf("MIG-%d-%d", gpu, instance), Parent: fmt.Sprintf("GPU-%d", gpu),
		Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3 MIG 1g.10gb", PCIBusID: fmt.Sprintf("0000:%x:00.0", 0x1a+gpu),
		Profile: "1g.10gb", DriverVersion: "580.65.06", Source: "nvml", GPUInstance: instance})
}

// withoutInstance makes the instances of a partition unknown.
func (s *testNode) withoutInstance(uuid string) {
	id := *s.node.Devices[s.find(uuid)].Identity
	id.GPUInstance, id.ComputeInstance = device.Unknown, device.Unknown
	s.add(id)
}

// quantityName spells a quantity as its family does, without dra_device_.
func quantityName(q device.Quantity) string {
	spec := device.Specs()[q]
	name := spec.Name
	if spec.Unit != "" {
		name += "_" + spec.Unit
	}
	if spec.Kind == device.Counter {
		name += "_total"
	}
	return name
}

// read sets quantities of a device: utilization_ratio=0.5 and the like, with the detail
// behind a slash.
func (s *testNode) read(uuid string, values map[string]float64) {
	d := &s.node.Devices[s.find(uuid)]
	readings := slices.Clone(d.Readings)
	for _, o := range origins() {
		key := quantityName(o.quantity)
		if o.detail != "" {
			key += "/" + o.detail
		}
		value, ok := values[key]
		if !ok {
			continue
		}
		reading := device.Reading{Quantity: o.quantity, Details: [2]string{o.detail}, Value: value}
		at := slices.IndexFunc(readings, func(r device.Reading) bool {
			return r.Quantity == reading.Quantity && r.Details == reading.Details
		})
		if at < 0 {
			readings = append(readings, reading)
		} else {
			readings[at] = reading
		}
	}
	d.Readings = readings
}

// unread removes a quantity from the readings of a device.
func (s *testNode) unread(uuid string, q device.Quantity) {
	d := &s.node.Devices[s.find(uuid)]
	d.Readings = slices.DeleteFunc(slices.Clone(d.Readings), func(r device.Reading) bool { return r.Quantity == q })
}

// xids sets the XIDs of a device, which are known then.
func (s *testNode) xids(uuid string, xids ...model.XID) {
	d := &s.node.Devices[s.find(uuid)]
	d.XIDsWatched, d.XIDs = true, xids
}

// claim makes a claim hold the device, for the containers (pod/container).
func (s *testNode) claim(namespace, claim, uuid string, containers ...string) {
	s.hold(dra.ClaimRef{Namespace: namespace, Name: claim}, uuid)
	s.consumers(namespace, claim, uuid, containers...)
}

func (s *testNode) hold(claim dra.ClaimRef, uuid string) *model.Hold {
	for i := range s.node.Holds {
		if hold := &s.node.Holds[i]; hold.Claim == claim && hold.UUID == uuid {
			return hold
		}
	}
	s.node.Holds = append(s.node.Holds, model.Hold{Claim: claim, UUID: uuid, Held: true})
	return &s.node.Holds[len(s.node.Holds)-1]
}

// consumers lets containers use a device of a claim, which may not hold it.
func (s *testNode) consumers(namespace, claim, uuid string, containers ...string) {
	changed := model.Claim{Ref: dra.ClaimRef{Namespace: namespace, Name: claim}, Live: true}
	at := slices.IndexFunc(s.node.Claims, func(c *model.Claim) bool { return c.Ref == changed.Ref })
	if at >= 0 {
		changed = *s.node.Claims[at]
	}
	changed.Devices = append(slices.Clone(changed.Devices), model.ClaimDevice{
		ID: dra.DeviceID{Driver: "gpu.nvidia.com", Pool: sceneNode, Name: strings.ToLower(uuid)}, UUID: uuid, Request: "gpu", Class: "gpu.nvidia.com",
	})
	changed.Consumers = slices.Clone(changed.Consumers)
	for _, each := range containers {
		pod, container, _ := strings.Cut(each, "/")
		changed.Consumers = append(changed.Consumers, model.Consumer{UUID: uuid, Pod: pod, PodUID: "uid-" + pod, Container: container})
	}
	if at >= 0 {
		s.node.Claims[at] = &changed
	} else {
		s.node.Claims = append(s.node.Claims, &changed)
	}
}

func (s *testNode) plugin(namespace, uuid, pod, container string) {
	s.node.Plugins = append(s.node.Plugins, model.PluginConsumer{
		UUID: uuid, Pod: dra.PodRef{Namespace: namespace, Name: pod}, Container: container, Resource: "nvidia.com/gpu",
	})
}

// splits sets the use of the device by a claim that holds it.
func (s *testNode) splits(namespace, claim, uuid string, attribution model.Attribution, utilization, memory float64) {
	hold := s.hold(dra.ClaimRef{Namespace: namespace, Name: claim}, uuid)
	hold.Utilization, hold.Memory = model.Use{Value: utilization, Known: true, Attribution: attribution}, model.Use{Value: memory, Known: true, Attribution: attribution}
}

// podSplits sets the use by the processes of a pod.
func (s *testNode) podSplits(namespace, pod, uuid string, utilization, memory float64) {
	use := func(value float64) model.Use { return model.Use{Value: value, Known: true, Attribution: model.Process} }
	s.node.Pods = append(s.node.Pods, model.PodUse{
		Pod: dra.PodRef{Namespace: namespace, Name: pod}, UUID: uuid, Utilization: use(utilization), Memory: use(memory),
	})
}

func newTranslator(mode Mode) *Translator {
	return New(Options{Mode: mode, Interval: time.Second, Staleness: 10 * time.Second})
}

// seriesOf returns the rows of a family, "pod/container value" each, or the
// value alone.
func seriesOf(rows []metric.Row, family string) []string {
	var found []string
	for _, row := range rows {
		if row.Family.Name == "DCGM_FI_"+family {
			text := fmt.Sprintf("%g", row.Value)
			if pod := row.Labels.Get("pod"); pod != "" {
				text = pod + "/" + row.Labels.Get("container") + " " + text
			}
			found = append(found, text)
		}
	}
	slices.Sort(found)
	return found
}

func wantSeries(t *testing.T, rows []metric.Row, family string, want ...string) {
	t.Helper()
	if got := seriesOf(rows, family); !slices.Equal(got, want) {
		t.Errorf("%s has the series %q, want %q", family, got, want)
	}
}

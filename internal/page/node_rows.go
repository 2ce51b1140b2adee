package page

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// viewOf returns the view of a snapshot's rows at a time. It identifies rows by
// the names of the families and their labels, as any reader of a scrape does;
// families that it does not know are ignored.
func viewOf(rows []metric.Row, at time.Time) View {
	r := newNodeReader(at)
	readRows(rows, r, nodeFamilies())
	return assemble(r)
}

// nodeReader collects what rows say of each device, claim and source. The order of
// the families does not matter.
type nodeReader struct {
	sourceReader
	view    View
	devices map[string]*deviceRecord
	claims  map[claimKey]*claimRecord
	pods    map[podKey]*PodWorkload
	aligned map[podKey][]Alignment
}

func newNodeReader(at time.Time) *nodeReader {
	return &nodeReader{
		sourceReader: sourceReader{at: at},
		view:         View{At: at},
		devices:      map[string]*deviceRecord{},
		claims:       map[claimKey]*claimRecord{},
		pods:         map[podKey]*PodWorkload{},
		aligned:      map[podKey][]Alignment{},
	}
}

// readNodeRow adds a row to what has been read.
type readNodeRow = func(*nodeReader, metric.Row)

// nodeFamilies maps each family to the function that reads its rows.
func nodeFamilies() map[string]readNodeRow {
	return map[string]readNodeRow{
		metric.DeviceInfo:               ofDevice((*deviceRecord).info),
		metric.DevicePublishedInfo:      ofDevice((*deviceRecord).published),
		metric.DevicePartitionInfo:      ofDevice((*deviceRecord).partition),
		metric.DeviceTopologyInfo:       ofDevice((*deviceRecord).location),
		metric.DeviceUtilizationRatio:   ofDevice(func(d *deviceRecord, row metric.Row) { d.Utilization = known(row.Value) }),
		metric.DeviceMemoryUsedBytes:    ofDevice(func(d *deviceRecord, row metric.Row) { d.MemoryUsed = known(row.Value) }),
		metric.DeviceMemorySizeBytes:    ofDevice(func(d *deviceRecord, row metric.Row) { d.MemorySize = known(row.Value) }),
		metric.DevicePowerWatts:         ofDevice(func(d *deviceRecord, row metric.Row) { d.Power = known(row.Value) }),
		metric.DevicePowerLimitWatts:    ofDevice(func(d *deviceRecord, row metric.Row) { d.PowerLimit = known(row.Value) }),
		metric.DeviceTemperatureCelsius: where(isCoreSensor, ofDevice(func(d *deviceRecord, row metric.Row) { d.Temperature = known(row.Value) })),
		metric.DevicePluginConsumerInfo: where(isPresent, ofDevice((*deviceRecord).pluginConsumer)),
		metric.DevicePricePerHour:       where(isPresent, ofDevice((*deviceRecord).price)),

		metric.DeviceUnattributedUtilizationRatio: ofDevice(func(d *deviceRecord, row metric.Row) { d.unattributed.Utilization = known(row.Value) }),
		metric.DeviceUnattributedMemoryBytes:      ofDevice(func(d *deviceRecord, row metric.Row) { d.unattributed.MemoryUsed = known(row.Value) }),
		metric.PodUtilizationRatio:                ofDevice(func(d *deviceRecord, row metric.Row) { d.pod(row).Utilization = known(row.Value) }),
		metric.PodMemoryUsedBytes:                 ofDevice(func(d *deviceRecord, row metric.Row) { d.pod(row).MemoryUsed = known(row.Value) }),

		metric.DeviceHealthy:                 ofDevice((*deviceRecord).healthy),
		metric.DeviceHealthSignalInfo:        ofDevice((*deviceRecord).healthSignal),
		metric.DeviceTaintInfo:               ofDevice((*deviceRecord).taint),
		metric.DeviceXIDErrors:               where(isCounted, ofDevice(func(d *deviceRecord, row metric.Row) { d.xid(row).Count = row.Value })),
		metric.DeviceHeldFailures:            where(isCounted, ofDevice(func(d *deviceRecord, row metric.Row) { d.Health.HeldFailures = row.Value })),
		metric.DeviceXIDLastTimestampSeconds: ofDevice(func(d *deviceRecord, row metric.Row) { d.xid(row).Last = moment(row) }),

		metric.ClaimInfo:         ofClaim((*claimRecord).info),
		metric.ClaimConsumerInfo: ofClaim((*claimRecord).consumer),
		metric.ClaimDeviceInfo:   ofClaimDevice(addAllocation),
		metric.ClaimHeld:         where(isTrue, ofClaimDevice(func(d *ClaimDevice, _ metric.Row) { d.Held = true })),

		metric.PodWorkloadInfo: (*nodeReader).podWorkload,

		metric.ClaimTopologyInfo: ofClaim(func(c *claimRecord, row metric.Row) { c.Topology = append(c.Topology, newAlignment(row)) }),
		metric.PodTopologyInfo:   (*nodeReader).podTopology,

		metric.ClaimUtilizationRatio:          ofClaimDevice(readUtilization),
		metric.ClaimMemoryUsedBytes:           ofClaimDevice(readMemory),
		metric.ClaimPowerWatts:                ofClaimDevice(readPower),
		metric.ClaimIdleSinceTimestampSeconds: ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.IdleSince = moment(row) }),
		metric.ClaimMemoryAllocatedBytes:      ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.MemoryAllocated = known(row.Value) }),
		metric.ClaimHeldSeconds:               ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.HeldSeconds = known(row.Value) }),
		metric.ClaimDeviceSeconds:             ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.DeviceSeconds = known(row.Value) }),
		metric.ClaimBusySeconds:               ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.account(row).Busy = known(row.Value) }),
		metric.ClaimEnergyJoules:              ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.account(row).Energy = known(row.Value) }),
		metric.ClaimNVLinkTransmitBytes:       ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.account(row).NVLinkTransmit = known(row.Value) }),
		metric.ClaimNVLinkReceiveBytes:        ofClaimDevice(func(d *ClaimDevice, row metric.Row) { d.account(row).NVLinkReceive = known(row.Value) }),

		metric.NamespaceDeviceSeconds:       ofNamespace(func(t *Totals, row metric.Row) { t.DeviceSeconds = known(row.Value) }),
		metric.NamespaceSharedDeviceSeconds: ofNamespace(func(t *Totals, row metric.Row) { t.SharedSeconds = known(row.Value) }),
		metric.NamespaceBusySeconds:         ofNamespace(func(t *Totals, row metric.Row) { t.BusySeconds = known(row.Value) }),
		metric.NamespaceEnergyJoules:        ofNamespace(func(t *Totals, row metric.Row) { t.Energy = known(row.Value) }),
		metric.NamespaceCost: ofNamespace(func(t *Totals, row metric.Row) {
			t.Cost, t.Currency = known(row.Value), row.Labels.Get("currency")
		}),

		metric.ExporterProcessAttribution:     where(isTrue, func(r *nodeReader, row metric.Row) { r.view.ProcessAttribution = row.Labels.Get("reason") }),
		metric.ExporterBuildInfo:              func(r *nodeReader, row metric.Row) { r.view.Version = row.Labels.Get("version") },
		metric.ExporterSampleTimestampSeconds: func(r *nodeReader, row metric.Row) { r.view.SampledAt = moment(row) },

		metric.ExporterSourceUp:                          (*nodeReader).sourceUp,
		metric.ExporterSourceErrorInfo:                   (*nodeReader).sourceError,
		metric.ExporterSourceLastSuccessTimestampSeconds: (*nodeReader).sourceSuccess,
	}
}

// where reads the rows that the condition holds for.
func where(condition func(metric.Row) bool, read readNodeRow) readNodeRow {
	return func(r *nodeReader, row metric.Row) {
		if condition(row) {
			read(r, row)
		}
	}
}

func isTrue(row metric.Row) bool       { return row.Value == 1 }
func isPresent(row metric.Row) bool    { return !row.Past }
func isCoreSensor(row metric.Row) bool { return row.Labels.Get("sensor") == "gpu" }

func isCounted(row metric.Row) bool {
	count := known(row.Value)
	return count != nil && *count > 0
}

func ofDevice(read func(*deviceRecord, metric.Row)) readNodeRow {
	return func(r *nodeReader, row metric.Row) { read(r.device(row), row) }
}

func ofClaim(read func(*claimRecord, metric.Row)) readNodeRow {
	return func(r *nodeReader, row metric.Row) { read(r.claim(row), row) }
}

func ofClaimDevice(read func(*ClaimDevice, metric.Row)) readNodeRow {
	return func(r *nodeReader, row metric.Row) { read(r.claim(row).device(row), row) }
}

func ofNamespace(read func(*Totals, metric.Row)) readNodeRow {
	return func(r *nodeReader, row metric.Row) { read(r.totals(row), row) }
}

// device returns the record of the row's device, a new one if there is none.
func (r *nodeReader) device(row metric.Row) *deviceRecord {
	uuid := row.Labels.Get("uuid")
	found := r.devices[uuid]
	if found == nil {
		found = &deviceRecord{Device: Device{UUID: uuid}}
		r.devices[uuid] = found
	}
	if parent := row.Labels.Get("parent_uuid"); parent != "" {
		found.ParentUUID = parent
	}
	r.setNode(row)
	return found
}

// claim returns the record of the row's claim, a new one if there is none.
func (r *nodeReader) claim(row metric.Row) *claimRecord {
	key := claimKey{row.Labels.Get("namespace"), row.Labels.Get("resourceclaim")}
	found := r.claims[key]
	if found == nil {
		found = &claimRecord{Claim: Claim{Namespace: key.namespace, Name: key.name}, devices: map[string]*ClaimDevice{}}
		r.claims[key] = found
	}
	r.setNode(row)
	return found
}

func (r *nodeReader) podWorkload(row metric.Row) {
	get := row.Labels.Get
	r.setNode(row)
	r.pods[podKey{get("namespace"), get("pod")}] = &PodWorkload{
		Kind: get("workload_kind"), Name: get("workload"), Role: get("role"), Replica: get("replica"), Rank: get("rank"), Queue: get("queue"),
	}
}

func (r *nodeReader) podTopology(row metric.Row) {
	r.setNode(row)
	key := podKey{row.Labels.Get("namespace"), row.Labels.Get("pod")}
	r.aligned[key] = append(r.aligned[key], newAlignment(row))
}

func newAlignment(row metric.Row) Alignment {
	get := row.Labels.Get
	return Alignment{Between: get("between"), Is: get("alignment"), Best: get("best")}
}

// totals returns the totals of the row's namespace, class and model, new ones
// if there are none.
func (r *nodeReader) totals(row metric.Row) *Totals {
	get := row.Labels.Get
	r.setNode(row)
	if began := row.Start; !began.IsZero() && (r.view.CountedSince.IsZero() || began.Before(r.view.CountedSince)) {
		r.view.CountedSince = began
	}
	key := Totals{Namespace: get("namespace"), Class: get("deviceclass"), Model: get("model")}
	at := slices.IndexFunc(r.view.Totals, func(t Totals) bool {
		return t.Namespace == key.Namespace && t.Class == key.Class && t.Model == key.Model
	})
	if at < 0 {
		at = len(r.view.Totals)
		r.view.Totals = append(r.view.Totals, key)
	}
	return &r.view.Totals[at]
}

func (r *nodeReader) setNode(row metric.Row) {
	if r.view.Node == "" {
		r.view.Node = row.Labels.Get("node")
	}
}

// deviceRecord is a device, the pods that hold it by a device plugin, and what
// is known of its processes and prices.
type deviceRecord struct {
	Device
	plugins      []Holder
	unattributed Use
	pods         map[podKey]*Use
	prices       []classPrice
}

// podKey identifies a pod.
type podKey struct{ namespace, name string }

// classPrice is the price of a device for claims of a device class.
type classPrice struct {
	class string
	Price
}

func (d *deviceRecord) info(row metric.Row) {
	get := row.Labels.Get
	d.Vendor, d.Model, d.PCIBusID = get("vendor"), get("model"), get("pci_bus_id")
	d.Profile, d.Matched = get("partition_profile"), get("source") != ""
}

func (d *deviceRecord) published(row metric.Row) {
	get := row.Labels.Get
	d.Published = DeviceName{get("driver"), get("pool"), get("device")}
}

func (d *deviceRecord) partition(row metric.Row) {
	get := row.Labels.Get
	d.GPUInstance, d.ComputeInstance = get("gpu_instance_id"), get("compute_instance_id")
}

func (d *deviceRecord) location(row metric.Row) {
	get := row.Labels.Get
	d.PCIeRoot, d.NUMANode, d.LinkDomain = get("pcie_root"), get("numa_node"), get("link_domain")
}

func (d *deviceRecord) price(row metric.Row) {
	if perHour := known(row.Value); perHour != nil {
		d.prices = append(d.prices, classPrice{row.Labels.Get("deviceclass"), Price{*perHour, row.Labels.Get("currency")}})
	}
}

func (d *deviceRecord) pluginConsumer(row metric.Row) {
	get := row.Labels.Get
	for i := range d.plugins {
		holder := &d.plugins[i]
		if pod := &holder.Pods[0]; holder.Resource == get("resource") && pod.Namespace == get("namespace") && pod.Name == get("pod") {
			pod.Containers = append(pod.Containers, get("container"))
			return
		}
	}
	d.plugins = append(d.plugins, Holder{
		Kind: ByDevicePlugin, Namespace: get("namespace"), Resource: get("resource"),
		Pods: []Pod{{Namespace: get("namespace"), Name: get("pod"), Containers: []string{get("container")}}},
	})
}

// pod returns the use by the row's pod, a new one if there is none.
func (d *deviceRecord) pod(row metric.Row) *Use {
	if d.pods == nil {
		d.pods = map[podKey]*Use{}
	}
	return find(d.pods, podKey{row.Labels.Get("namespace"), row.Labels.Get("pod")}, Use{})
}

func (d *deviceRecord) healthy(row metric.Row) {
	healthy := row.Value == 1
	switch row.Labels.Get("by") {
	case "hardware":
		d.Health.Hardware = &healthy
	case "driver":
		d.Health.Driver = &healthy
	case "kubelet":
		d.Health.Kubelet = &healthy
	}
}

func (d *deviceRecord) healthSignal(row metric.Row) {
	d.Health.Signals = append(d.Health.Signals, Signal{row.Labels.Get("signal"), row.Labels.Get("severity")})
}

func (d *deviceRecord) taint(row metric.Row) {
	get := row.Labels.Get
	d.Health.Taints = append(d.Health.Taints, Taint{get("key"), get("value"), get("effect")})
}

// xid returns the row's XID, a new one if there is none.
func (d *deviceRecord) xid(row metric.Row) *XID {
	health, code := &d.Health, row.Labels.Get("xid")
	i := slices.IndexFunc(health.XIDs, func(x XID) bool { return x.Code == code })
	if i < 0 {
		i = len(health.XIDs)
		health.XIDs = append(health.XIDs, XID{Code: code})
	}
	return &health.XIDs[i]
}

// use returns the use by a pod; nil: unknown.
func (d *deviceRecord) use(namespace, pod string) *Use {
	if use := d.pods[podKey{namespace, pod}]; use != nil {
		return use.known()
	}
	return nil
}

// priceFor returns the price for claims of the class; nil: unknown.
func (d *deviceRecord) priceFor(class string) *Price {
	for _, price := range d.prices {
		if price.class == class {
			return &price.Price
		}
	}
	return nil
}

// distinctPrices returns the prices of the device, each once: classes may differ.
func (d *deviceRecord) distinctPrices() []Price {
	var prices []Price
	for _, price := range d.prices {
		if !slices.Contains(prices, price.Price) {
			prices = append(prices, price.Price)
		}
	}
	slices.SortFunc(prices, func(a, b Price) int { return cmp.Compare(a.PerHour, b.PerHour) })
	return prices
}

type claimKey struct{ namespace, name string }

// claimRecord is a claim, what it gets by UUID, and its consumers.
type claimRecord struct {
	Claim
	devices   map[string]*ClaimDevice
	consumers []*consumerRecord
}

// consumerRecord is a consumer and the devices that it may use now.
type consumerRecord struct {
	Consumer
	present []string
}

// device returns the claim's use of the row's device, a new one if there is
// none.
func (c *claimRecord) device(row metric.Row) *ClaimDevice {
	uuid := row.Labels.Get("uuid")
	if c.devices[uuid] == nil {
		c.devices[uuid] = &ClaimDevice{UUID: uuid, Allocations: []Allocation{}, Accounts: []Account{}}
	}
	return c.devices[uuid]
}

func (c *claimRecord) info(row metric.Row) {
	get := row.Labels.Get
	c.UID, c.Class, c.Template, c.Sharing = get("claim_uid"), get("deviceclass"), get("template"), get("sharing")
	c.AdminAccess, c.ExtendedResource = get("admin_access") == "true", get("extended_resource") == "true"
}

func (c *claimRecord) consumer(row metric.Row) {
	get := row.Labels.Get
	at := slices.IndexFunc(c.consumers, func(of *consumerRecord) bool {
		return of.Pod == get("pod") && of.PodUID == get("pod_uid") && of.Container == get("container")
	})
	if at < 0 {
		at = len(c.consumers)
		c.consumers = append(c.consumers, &consumerRecord{Consumer: Consumer{
			Pod: get("pod"), PodUID: get("pod_uid"), Container: get("container"),
			OwnerKind: get("owner_kind"), OwnerName: get("owner_name"), Labels: labelsOf(row), Ended: true,
		}})
	}
	consumer, uuid := c.consumers[at], get("uuid")
	consumer.UUIDs = append(consumer.UUIDs, uuid)
	if !row.Past {
		consumer.present = append(consumer.present, uuid)
		consumer.Ended = false
	}
}

// labelsOf returns the pod labels of a consumer's row; nil without any. A pod
// without a label has the empty value for it.
func labelsOf(row metric.Row) map[string]string {
	var labels map[string]string
	for name, value := range row.Labels.Each {
		if of, is := strings.CutPrefix(name, "label_"); is && value != "" {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[of] = value
		}
	}
	return labels
}

func addAllocation(d *ClaimDevice, row metric.Row) {
	get := row.Labels.Get
	d.Allocations = append(d.Allocations, Allocation{
		Request: get("request"), Class: get("deviceclass"),
		Driver: get("driver"), Pool: get("pool"), Device: get("device"), ShareID: get("share_id"),
	})
}

// readUtilization and readMemory store a gauge that may be split by processes,
// with its attribution. A value that is not split has the attribution of the
// device.
func readUtilization(d *ClaimDevice, row metric.Row) {
	d.Utilization, d.UtilizationAttribution = known(row.Value), row.Labels.Get("attribution")
	if d.UtilizationAttribution != ByProcess {
		d.Attribution = d.UtilizationAttribution
	}
}

func readMemory(d *ClaimDevice, row metric.Row) {
	d.MemoryUsed, d.MemoryAttribution = known(row.Value), row.Labels.Get("attribution")
	if d.MemoryAttribution != ByProcess {
		d.Attribution = d.MemoryAttribution
	}
}

// readPower stores a gauge that is never split. Gauges only have the present
// attribution.
func readPower(d *ClaimDevice, row metric.Row) {
	d.Attribution, d.Power = row.Labels.Get("attribution"), known(row.Value)
}

package dcgmnames

import "github.com/dra-exporter/dra-exporter/collector/metric"

// identity is what the labels of a series are made of.
type identity struct {
	gpu       string   // number of the GPU; empty where it is not known
	whole     hardware // the GPU
	hardware  hardware // the device: the same, or a partition of it
	instance  string   // the partition's GPU instance
	consumer  consumer
	published publishedName
}

// labels leaves out the labels that would be empty, which means the same.
func (id identity) labels() *metric.Labels {
	var names, values []string
	for _, pair := range id.pairs() {
		if pair.value != "" {
			names, values = append(names, pair.name), append(values, pair.value)
		}
	}
	return metric.NewLabels(names, values...)
}

type pair struct{ name, value string }

// pairs are all the labels, in the catalogue's order. UUID, address and model
// are those of the GPU for its partitions, too. The uuid of a partition keeps
// two of one profile apart where nobody knows their instances.
func (id identity) pairs() []pair {
	var device, namespace, profile, partition string
	if id.gpu != "" {
		device = "nvidia" + id.gpu
	}
	if id.consumer.claim != "" {
		namespace = id.consumer.namespace
	}
	if id.hardware.parent != "" {
		profile, partition = id.hardware.profile, id.hardware.uuid
	}
	return []pair{
		{"gpu", id.gpu},
		{"UUID", id.whole.uuid},
		{"pci_bus_id", id.whole.address},
		{"device", device},
		{"modelName", id.whole.model},
		{"GPU_I_PROFILE", profile},
		{"GPU_I_ID", id.instance},
		{"Hostname", id.hardware.node},
		{"DCGM_FI_DRIVER_VERSION", id.hardware.version},
		{"namespace", id.consumer.namespace},
		{"pod", id.consumer.pod},
		{"container", id.consumer.name},
		{"dra_claim_name", id.consumer.claim},
		{"dra_claim_namespace", namespace},
		{"dra_driver_name", id.published.driver},
		{"dra_pool_name", id.published.pool},
		{"dra_device_name", id.published.device},
		{"dra_mig_profile", profile},
		{"dra_mig_device_uuid", partition},
		{"resourceclaim", id.consumer.claim},
	}
}

func labelNames() []string {
	var names []string
	for _, pair := range (identity{}).pairs() {
		names = append(names, pair.name)
	}
	return names
}

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hardware is the configuration of the simulated devices. It also says which
// published devices they are. The agent reads it only through its own sources.
type hardware struct {
	Seed    int     `json:"seed"`
	Devices []*chip `json:"devices"`
	Faults  []fault `json:"faults,omitempty"`
}

// chip is a GPU or a partition of one.
type chip struct {
	UUID          string         `json:"uuid"`
	Vendor        string         `json:"vendor,omitempty"`
	Model         string         `json:"model,omitempty"`
	PCIBusID      string         `json:"pciBusID,omitempty"`
	Minor         *int           `json:"minor,omitempty"`
	DriverVersion string         `json:"driverVersion,omitempty"`
	Profile       string         `json:"profile,omitempty"`
	Placement     *int           `json:"placement,omitempty"`
	Quantities    map[string]any `json:"quantities"`
	Partitions    []*chip        `json:"partitions,omitempty"`
	Faults        []fault        `json:"faults,omitempty"`

	published string // driver/device that must be matched to it; empty: none
}

type fault struct {
	Kind  string `json:"kind"`
	After string `json:"after,omitempty"`
	For   string `json:"for,omitempty"`
	Code  int    `json:"code,omitempty"` // of an Xid
}

// yaml is the file of --simulated.config; JSON is YAML.
func (h *hardware) yaml() string {
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		panic(err) // marshalling cannot fail
	}
	return string(text)
}

// each calls do for every GPU and every partition.
func (h *hardware) each(do func(*chip)) {
	for _, gpu := range h.Devices {
		do(gpu)
		for _, partition := range gpu.Partitions {
			do(partition)
		}
	}
}

func (h *hardware) uuids() (all []string) {
	h.each(func(c *chip) { all = append(all, c.UUID) })
	return all
}

// uuidOf returns the UUID of the hardware of a published device, empty if it
// has none.
func (h *hardware) uuidOf(device string) (uuid string) {
	h.each(func(c *chip) {
		if c.published == device {
			uuid = c.UUID
		}
	})
	return uuid
}

func (h *hardware) chip(uuid string) (found *chip) {
	h.each(func(c *chip) {
		if c.UUID == uuid {
			found = c
		}
	})
	return found
}

// migName is <GPU>-mig-<profile>-<profile id>-<placement>.
var migName = regexp.MustCompile(`^(gpu-\d+)-mig-[0-9a-z]+-\d+-(\d+)$`)

// publishedHardware creates the hardware that gpu.example.com and
// gpu.nvidia.com publish on this node. Partitions without a UUID get one that
// is not published.
func publishedHardware(ctx context.Context) (*hardware, error) {
	nodeSlices, err := shared.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list resource slices: %w", err)
	}
	gpus := map[string]*chip{} // by UUID
	var parts []resourceapi.Device
	for _, slice := range nodeSlices.Items {
		for _, device := range slice.Spec.Devices {
			switch {
			case slice.Spec.Driver != "gpu.example.com" && slice.Spec.Driver != "gpu.nvidia.com":
			case migName.MatchString(device.Name):
				parts = append(parts, device)
			default:
				gpu := gpuOf(slice.Spec.Driver, device)
				gpus[gpu.UUID] = gpu
			}
		}
	}
	for _, part := range parts {
		parent := text(part, "parentUUID")
		if gpus[parent] == nil {
			gpus[parent] = cutGPU(parent, part)
		}
		gpus[parent].Partitions = append(gpus[parent].Partitions, partitionOf(part, gpus[parent]))
	}
	return assemble(gpus)
}

// assemble sorts the GPUs and gives them slightly different values.
func assemble(gpus map[string]*chip) (*hardware, error) {
	if len(gpus) == 0 {
		return nil, errors.New("no driver publishes devices")
	}
	h := &hardware{Seed: 1}
	for _, gpu := range gpus {
		h.Devices = append(h.Devices, gpu)
		slices.SortFunc(gpu.Partitions, func(a, b *chip) int { return strings.Compare(a.published, b.published) })
	}
	slices.SortFunc(h.Devices, func(a, b *chip) int { return strings.Compare(a.UUID, b.UUID) })
	n := 0
	h.each(func(c *chip) {
		c.Quantities = quantities(n, c.Profile != "")
		n++
	})
	return h, nil
}

func gpuOf(driver string, device resourceapi.Device) *chip {
	gpu := &chip{UUID: text(device, "uuid"), published: driver + "/" + device.Name}
	if driver == "gpu.example.com" {
		gpu.Vendor, gpu.Model = "example", text(device, "model")
		return gpu
	}
	describeNVIDIA(gpu, device)
	return gpu
}

// cutGPU is a GPU of which only the partitions are published.
func cutGPU(uuid string, part resourceapi.Device) *chip {
	gpu := &chip{UUID: uuid}
	describeNVIDIA(gpu, part)
	return gpu
}

func describeNVIDIA(gpu *chip, device resourceapi.Device) {
	gpu.Vendor, gpu.Model, gpu.DriverVersion = "nvidia", text(device, "productName"), "580.65.06"
	gpu.PCIBusID = text(device, "resource.kubernetes.io/pciBusID")
	if minor, err := strconv.Atoi(strings.Split(device.Name, "-")[1]); err == nil {
		gpu.Minor = &minor
	}
}

func partitionOf(device resourceapi.Device, parent *chip) *chip {
	placement, _ := strconv.Atoi(migName.FindStringSubmatch(device.Name)[2])
	part := &chip{UUID: text(device, "uuid"), Profile: text(device, "profile"), Placement: &placement, published: "gpu.nvidia.com/" + device.Name}
	if part.UUID == "" {
		part.UUID = fmt.Sprintf("MIG-on-demand-%s-%s", strings.TrimPrefix(parent.UUID, "GPU-"), device.Name)
	}
	return part
}

func text(device resourceapi.Device, attribute resourceapi.QualifiedName) string {
	if value := device.Attributes[attribute].StringValue; value != nil {
		return *value
	}
	return ""
}

// quantities returns readings by which the n-th device can be distinguished
// from all others at any time. A partition has no power, energy or NVLink of
// its own, and all partitions of a GPU have less memory than the GPU.
func quantities(n int, isPartition bool) map[string]any {
	low := 0.1 + 0.05*float64(n)
	q := map[string]any{
		"utilization": map[string]any{"curve": "sine", "min": low, "max": low + 0.04, "period": "20s"},
		"memory_used": float64(n+1) * 1e8,
		"memory_size": 10e9 + float64(n),
	}
	if !isPartition {
		q["memory_used"] = 20e9 + float64(n+1)*1e9
		q["memory_size"] = 80e9 + float64(n)
		q["power"] = 100 + float64(n)
		q["energy"] = map[string]any{"rate": 100 + float64(n), "start": 5e6}
		q["nvlink_transmit"] = map[string]any{"rate": 1e9 * float64(n+1), "start": 1e15}
		q["nvlink_receive"] = map[string]any{"rate": 2e9 * float64(n+1), "start": 2e15}
		q["temperature"] = map[string]any{"gpu": 40 + float64(n)}
	}
	return q
}

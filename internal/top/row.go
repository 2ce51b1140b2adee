package top

import (
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// Row is a device that a claim holds. What is unknown is nil, empty or the
// zero time, never a number. The JSON names are those of docs/top.md; what
// docs/api.md names as well is the same.
type Row struct {
	Node      string   `json:"node"`
	Namespace string   `json:"namespace"`
	Claim     string   `json:"claim"`
	Class     string   `json:"deviceClass,omitempty"`
	Pods      []string `json:"pods"` // those that may use the device now

	UUID       string `json:"uuid"`
	ParentUUID string `json:"parentUuid,omitempty"` // of a partition
	Driver     string `json:"driver,omitempty"`
	Pool       string `json:"pool,omitempty"`
	Device     string `json:"device,omitempty"` // its published name
	Model      string `json:"model,omitempty"`
	Profile    string `json:"profile,omitempty"` // of a partition

	Attribution            string   `json:"attribution,omitempty"`
	Utilization            *float64 `json:"utilizationRatio,omitempty"`
	UtilizationAttribution string   `json:"utilizationAttribution,omitempty"`
	MemoryUsed             *float64 `json:"memoryUsedBytes,omitempty"`
	MemoryAttribution      string   `json:"memoryAttribution,omitempty"`
	MemoryAllocated        *float64 `json:"memoryAllocatedBytes,omitempty"`
	Power                  *float64 `json:"powerWatts,omitempty"`

	IdleSince time.Time `json:"idleSince,omitzero"`
	Idle      *float64  `json:"idleSeconds,omitempty"` // by the agent's clock
	Held      *float64  `json:"heldSeconds,omitempty"`

	Health  string   `json:"health,omitempty"`        // sick, recovering, warned or well
	Reasons []string `json:"healthReasons,omitempty"` // why it is not well, the gravest first

	Price    *float64 `json:"pricePerHour,omitempty"` // of the whole device
	Cost     *float64 `json:"costPerHour,omitempty"`  // of what the claim has of it
	Currency string   `json:"currency,omitempty"`
}

// The words that this package must know of how values relate to a claim.
const (
	byProcess = "process" // what the claim's own processes do
	notSplit  = "shared"  // the whole device's
)

// appendRows adds the devices that the claim holds now.
func appendRows(rows []Row, answer *Answer, claim *page.Claim) []Row {
	for i := range claim.Devices {
		if device := &claim.Devices[i]; device.Held {
			rows = append(rows, newRow(answer, claim, device))
		}
	}
	return rows
}

func newRow(answer *Answer, claim *page.Claim, device *page.ClaimDevice) Row {
	row := Row{
		Node: answer.Node, Namespace: claim.Namespace, Claim: claim.Name, Class: claim.Class,
		Pods: podsOf(claim, device.UUID),
		UUID: device.UUID, ParentUUID: device.ParentUUID, Model: device.Model, Profile: device.Profile,
		Attribution: device.UseAttribution(),
		Utilization: device.Utilization, UtilizationAttribution: device.UtilizationAttribution,
		MemoryUsed: device.MemoryUsed, MemoryAttribution: device.MemoryAttribution, MemoryAllocated: device.MemoryAllocated,
		Power: device.Power, IdleSince: device.IdleSince, Held: device.HeldSeconds,
	}
	if len(device.Allocations) > 0 {
		first := device.Allocations[0]
		row.Driver, row.Pool, row.Device = first.Driver, first.Pool, first.Device
	}
	if !row.IdleSince.IsZero() {
		idle := max(answer.At.Sub(row.IdleSince), 0).Seconds()
		row.Idle = &idle
	}
	row.setHealth(device.Health, answer.At)
	row.setCost(device)
	return row
}

// podsOf are the pods that may use the device through the claim now, each once.
func podsOf(claim *page.Claim, uuid string) []string {
	pods := []string{}
	for _, consumer := range claim.Consumers {
		if !consumer.Ended && slices.Contains(consumer.UUIDs, uuid) && !slices.Contains(pods, consumer.Pod) {
			pods = append(pods, consumer.Pod)
		}
	}
	slices.Sort(pods)
	return pods
}

func (r *Row) setHealth(health *page.Health, at time.Time) {
	if health == nil || health.Severity() == page.Unknown {
		return
	}
	r.Health = health.Severity().String()
	for _, reason := range health.Reasons(at) {
		if reason.Grade == page.Note {
			continue
		}
		text := reason.Text
		if of := health.Recovering; of != nil && reason.Last.Equal(of.Last) {
			text += " " + span(max(at.Sub(of.Last), 0)) + " ago" // what is over, and when it was
		}
		r.Reasons = append(r.Reasons, text)
	}
}

// setCost takes the part of the device that the claim has had on average while
// it held it: what it has now is not told.
func (r *Row) setCost(device *page.ClaimDevice) {
	if device.Price == nil {
		return
	}
	r.Price, r.Currency = &device.Price.PerHour, device.Price.Currency
	if device.HeldSeconds == nil || device.DeviceSeconds == nil || *device.HeldSeconds <= 0 {
		return
	}
	cost := device.Price.PerHour * min(max(*device.DeviceSeconds / *device.HeldSeconds, 0), 1)
	r.Cost = &cost
}

// Title is what people call the device: its model and, of a partition, its
// profile, without the vendor's name.
func (r Row) Title() string { return deviceTitle(r.Model, r.Profile) }

// wholeUtilization and wholeMemory report whether the value is the whole
// device's, which several claims share.
func (r Row) wholeUtilization() bool {
	return r.Utilization != nil && r.UtilizationAttribution == notSplit
}
func (r Row) wholeMemory() bool { return r.MemoryUsed != nil && r.MemoryAttribution == notSplit }
func (r Row) wholePower() bool {
	return r.Power != nil && (r.Attribution == notSplit || r.Attribution == byProcess)
}

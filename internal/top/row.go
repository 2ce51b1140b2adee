package top

import (
	"slices"
	"strings"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Row is a device that a claim holds. What is unknown is nil, empty or the
// zero time, never a number. The JSON names are those of docs/api.md.
type Row struct {
	Node      string   `json:"node"`
	Namespace string   `json:"namespace"`
	Claim     string   `json:"claim"`
	Class     string   `json:"deviceClass,omitempty"`
	Pods      []string `json:"pods"` // pods that may use the device now

	UUID       string `json:"uuid"`
	ParentUUID string `json:"parentUuid,omitempty"` // of a partition
	Driver     string `json:"driver,omitempty"`
	Pool       string `json:"pool,omitempty"`
	Device     string `json:"device,omitempty"` // its published name
	Model      string `json:"model,omitempty"`
	Profile    string `json:"profile,omitempty"` // of a partition

	Attribution string `json:"attribution,omitempty"`
	page.ClaimGauges
	Idle *float64 `json:"idleSeconds,omitempty"` // by the agent's clock
	Held *float64 `json:"heldSeconds,omitempty"`

	Health  string   `json:"health,omitempty"`        // unhealthy, recovering, degraded or healthy
	Reasons []string `json:"healthReasons,omitempty"` // why it is not healthy, the most severe first

	Price    *float64 `json:"pricePerHour,omitempty"` // of the whole device
	Cost     *float64 `json:"costPerHour,omitempty"`  // of what the claim has of it
	Currency string   `json:"currency,omitempty"`

	Users []User `json:"-"` // of Pods
}

// User is a pod, its workload or controller, if it has one, and how near the devices of
// all of its claims are to each other.
type User struct {
	Pod, Kind, Workload string
	Place               string // in the workload, in words
	Topology            []page.Alignment
}

// appendRows adds the devices that the claim holds now.
func appendRows(rows []Row, answer *AgentReport, claim *page.Claim) []Row {
	for i := range claim.Devices {
		if device := &claim.Devices[i]; device.Held {
			rows = append(rows, newRow(answer, claim, device))
		}
	}
	return rows
}

func newRow(answer *AgentReport, claim *page.Claim, device *page.ClaimDevice) Row {
	row := Row{
		Node: answer.Node, Namespace: claim.Namespace, Claim: claim.Name, Class: claim.Class,
		Pods: []string{}, Users: listUsers(claim, device.UUID),
		UUID: device.UUID, ParentUUID: device.ParentUUID, Model: device.Model, Profile: device.Profile,
		Attribution: device.UseAttribution(), ClaimGauges: device.ClaimGauges, Held: device.HeldSeconds,
	}
	for _, user := range row.Users {
		row.Pods = append(row.Pods, user.Pod)
	}
	if len(device.Allocations) > 0 {
		first := device.Allocations[0]
		row.Driver, row.Pool, row.Device = first.Driver, first.Pool, first.Device
	}
	if !row.IdleSince.IsZero() {
		row.Idle = new(max(answer.At.Sub(row.IdleSince), 0).Seconds())
	}
	row.Health, row.Reasons = describeHealth(device.Health, answer.At)
	row.setCost(device)
	return row
}

// listUsers returns the pods that may use the device through the claim now, each
// once, by name.
func listUsers(claim *page.Claim, uuid string) []User {
	var users []User
	for _, consumer := range claim.Consumers {
		kind, workload := consumer.Owner()
		user := User{consumer.Pod, kind, workload, consumer.Workload.Place(), consumer.Topology}
		if !consumer.Ended && slices.Contains(consumer.UUIDs, uuid) && !slices.ContainsFunc(users, func(u User) bool { return u.Pod == user.Pod }) {
			users = append(users, user)
		}
	}
	slices.SortFunc(users, func(a, b User) int { return strings.Compare(a.Pod, b.Pod) })
	return users
}

// describeHealth returns the name of the health, empty if it is unknown, and why it is
// not healthy.
func describeHealth(health *page.Health, at time.Time) (name string, reasons []string) {
	if health == nil || health.Severity() == page.Unknown {
		return "", nil
	}
	for _, reason := range health.Reasons(at) {
		if reason.Grade == page.Note {
			continue
		}
		text := reason.Text
		if recovery := health.Recovering; recovery != nil && reason.Last.Equal(recovery.Last) {
			text += " " + words.Age(max(at.Sub(recovery.Last), 0)) + " ago" // what is over, and when it was
		}
		reasons = append(reasons, text)
	}
	return health.Severity().String(), reasons
}

// setCost uses the average part of the device that the claim had while it held
// it: the present part is not in the answer.
func (r *Row) setCost(device *page.ClaimDevice) {
	if device.Price == nil {
		return
	}
	r.Price, r.Currency = &device.Price.PerHour, device.Price.Currency
	if device.HeldSeconds == nil || device.DeviceSeconds == nil || *device.HeldSeconds <= 0 {
		return
	}
	r.Cost = new(device.Price.PerHour * min(max(*device.DeviceSeconds / *device.HeldSeconds, 0), 1))
}

// Title returns the device's title: its model and, of a partition, its profile,
// without the vendor's name.
func (r Row) Title() string { return deviceTitle(r.Model, r.Profile) }

// wholePower reports whether the power is the whole device's, which several claims
// share.
func (r Row) wholePower() bool {
	return r.Power != nil && (r.Attribution == page.NotSplit || r.Attribution == page.ByProcess)
}

// marked reports whether the device is unhealthy, recovering or degraded.
func (r *Row) marked() bool {
	return r.Health == "unhealthy" || r.Health == "recovering" || r.Health == "degraded"
}

// severity is how serious a health is; nil: unknown.
func severity(health string) *float64 {
	grades := map[string]float64{"unhealthy": 3, "recovering": 2, "degraded": 1, "healthy": 0}
	if grade, ok := grades[health]; ok {
		return &grade
	}
	return nil
}

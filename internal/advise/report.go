package advise

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"

	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

const (
	apiVersion = "v1"
	kind       = "RightSizing"
)

// Report says for each requester of devices what would be enough. Its fields are a stable
// JSON document, described in docs/rightsizing.md.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Until      time.Time `json:"until"`
	Window     string    `json:"window"` // before that

	Advised    []Row    `json:"advised"`    // those with the largest savings first
	NotAdvised []Row    `json:"notAdvised"` // by reason
	Warnings   []string `json:"warnings,omitempty"`

	days string // the window in words
}

// Row is a requester, what it holds and uses, and an advice or the reason why there is
// none. Quantities that are not known are absent.
type Row struct {
	Requester
	Devices     int                `json:"devices"`     // of its largest claim
	HeldHours   float64            `json:"heldHours"`   // in which it held a device
	DeviceHours float64            `json:"deviceHours"` // weighted by the share of each device
	Cost        map[string]float64 `json:"cost,omitempty"`

	MemoryBytes       *float64           `json:"memoryBytes,omitempty"` // of its smallest device
	MemoryPeakBytes   *float64           `json:"memoryPeakBytes,omitempty"`
	MemoryP99Bytes    *float64           `json:"memoryP99Bytes,omitempty"`
	ActivityPeaks     map[string]float64 `json:"activityPeaks,omitempty"`     // by quantity: utilization, sm, tensor, dram, decoder, encoder
	ActivityP99       map[string]float64 `json:"activityP99,omitempty"`       // of the peaks of five minutes
	ActivitySustained map[string]float64 `json:"activitySustained,omitempty"` // largest mean of five minutes

	Advice  *Advice `json:"advice,omitempty"`
	Reason  Reason  `json:"reason,omitempty"`
	Meaning string  `json:"meaning,omitempty"`

	activity string // in words
}

// Options are what Run looks at.
type Options struct {
	Namespace string // empty: all
	Window    time.Duration
	Until     time.Time
}

// Run reads the histories of a namespace, or of all, and returns the report.
func Run(ctx context.Context, prometheus Querier, options Options) (*Report, error) {
	all, warnings, err := read(ctx, prometheus, options.Namespace, options.Window, options.Until)
	if err != nil {
		return nil, err
	}
	report := &Report{
		APIVersion: apiVersion, Kind: kind, Until: options.Until.UTC(), Window: model.Duration(options.Window).String(), days: duration(options.Window),
		Advised: []Row{}, NotAdvised: []Row{}, Warnings: warnings,
	}
	for _, h := range all {
		if h.held == 0 {
			continue // only what remains of a window before the range
		}
		if row := newRow(h); row.Advice != nil {
			report.Advised = append(report.Advised, row)
		} else {
			report.NotAdvised = append(report.NotAdvised, row)
		}
	}
	slices.SortFunc(report.Advised, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Advice.SavedDeviceHours, a.Advice.SavedDeviceHours), a.compare(&b))
	})
	slices.SortFunc(report.NotAdvised, func(a, b Row) int {
		return cmp.Or(cmp.Compare(order(a.Reason), order(b.Reason)), a.compare(&b))
	})
	return report, nil
}

func (r *Row) compare(other *Row) int {
	a, b := &r.Requester, &other.Requester
	return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.DeviceClass, b.DeviceClass), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Profile, b.Profile))
}

func order(reason Reason) int {
	return slices.IndexFunc(meanings(), func(m meaning) bool { return m.Reason == reason })
}

func newRow(h *history) Row {
	row := Row{
		Requester: h.requester, HeldHours: h.held.Hours(), DeviceHours: h.deviceSeconds / 3600, Cost: h.cost,
		MemoryBytes: known(h.allocated), MemoryPeakBytes: known(h.memory.peak), MemoryP99Bytes: known(h.memory.p99),
		ActivityPeaks: map[string]float64{}, ActivityP99: map[string]float64{}, ActivitySustained: map[string]float64{},
	}
	if !math.IsNaN(h.devices) {
		row.Devices = int(h.devices)
	}
	for quantity, u := range h.activity {
		for field, value := range map[*map[string]float64]float64{&row.ActivityPeaks: u.peak, &row.ActivityP99: u.p99, &row.ActivitySustained: u.sustained} {
			if !math.IsNaN(value) {
				(*field)[quantity] = value
			}
		}
	}
	if u := h.compute(); u != nil {
		row.activity = words.Percent(u.need())
		if u == h.activity[utilization] {
			row.activity = "≤" + row.activity
		}
	}
	row.Advice, row.Reason = adviceFor(h)
	if i := order(row.Reason); i >= 0 {
		row.Meaning = meanings()[i].Meaning
	}
	return row
}

func known(value float64) *float64 {
	if math.IsNaN(value) {
		return nil
	}
	return &value
}

// named is how many requesters without an advice are named for each reason.
const named = 5

// Text returns the report for a terminal.
func (r *Report) Text() string {
	var b strings.Builder
	clusters := slices.ContainsFunc(slices.Concat(r.Advised, r.NotAdvised), func(row Row) bool { return row.Cluster != "" })
	if len(r.Advised) == 0 {
		fmt.Fprintf(&b, "Nothing to advise for the last %s.\n", r.days)
	} else {
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		header := "NAMESPACE\tREQUESTED BY\tCLASS\tHOLDS\tMEMORY PEAK\tSM ACTIVITY\tENOUGH\tSAVES IN " + strings.ToUpper(r.days) + "\tCONFIDENCE\n"
		if clusters {
			header = "CLUSTER\t" + header
		}
		fmt.Fprint(table, header)
		for i := range r.Advised {
			row := &r.Advised[i]
			if clusters {
				fmt.Fprintf(table, "%s\t", printed(row.Cluster))
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printed(row.Namespace), printed(row.Kind+"/"+row.Name), printed(row.DeviceClass),
				printed(row.holds()), row.memory(), cmp.Or(row.activity, "-"), row.Advice.text(), row.Advice.saves(), row.Advice.Confidence)
		}
		_ = table.Flush()
		r.writeCautions(&b)
	}
	for i := 0; i < len(r.NotAdvised); {
		row := &r.NotAdvised[i]
		end := i
		for end < len(r.NotAdvised) && r.NotAdvised[end].Reason == row.Reason {
			end++
		}
		if i == 0 {
			b.WriteString("\nNo advice for:\n")
		}
		var names []string
		for j := i; j < min(end, i+named); j++ {
			names = append(names, r.NotAdvised[j].name())
		}
		if more := end - i - named; more > 0 {
			names = append(names, fmt.Sprintf("%d more (-o json has all)", more))
		}
		fmt.Fprintf(&b, "  %s: %s\n    %s\n", row.Reason, row.Meaning, printed(strings.Join(names, ", ")))
		i = end
	}
	return b.String()
}

// writeCautions writes what makes an advice less certain, and whose.
func (r *Report) writeCautions(b *strings.Builder) {
	for i := range r.Advised {
		row := &r.Advised[i]
		if len(row.Advice.Cautions) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s:\n", printed(row.name()))
		for _, caution := range row.Advice.Cautions {
			fmt.Fprintf(b, "  %s\n", caution)
		}
	}
}

// printed is a text of Prometheus that changes nothing of the terminal.
func printed(text string) string { return cmp.Or(terminal.Printable(text), "-") }

func (r *Row) name() string {
	name := r.Namespace + "/" + r.Name
	if r.Kind != "ResourceClaim" {
		name = r.Kind + " " + name
	}
	if r.Cluster != "" {
		name += " of cluster " + r.Cluster
	}
	return name
}

func (r *Row) holds() string {
	text := fmt.Sprintf("%d × %s", r.Devices, cmp.Or(strings.TrimPrefix(r.Model, "NVIDIA "), "device"))
	if r.Profile != "" {
		text += " " + r.Profile
	}
	return text
}

func (r *Row) memory() string {
	if r.MemoryPeakBytes == nil || r.MemoryBytes == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f of %.1f GiB", *r.MemoryPeakBytes/(1<<30), *r.MemoryBytes/(1<<30))
}

// text returns what would be enough.
func (a *Advice) text() string {
	switch a.Kind {
	case KindPartition:
		return a.Profile
	case KindShare:
		return fmt.Sprintf("1/%.0f of a device", 1/a.Share)
	case KindDevices:
		return fmt.Sprintf("%d of its devices", a.Devices)
	default:
		return "none: not used"
	}
}

func (a *Advice) saves() string {
	text := fmt.Sprintf("%.0f device-hours", a.SavedDeviceHours)
	if a.SavedDeviceHours < 10 {
		text = fmt.Sprintf("%.1f device-hours", a.SavedDeviceHours)
	}
	for _, currency := range slices.Sorted(maps.Keys(a.SavedCost)) {
		text += fmt.Sprintf(", %.2f %s", a.SavedCost[currency], printed(currency))
	}
	return text
}

package e2e

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// wantedClaim is all that the page must report of one claim. Names are
// patterns.
type wantedClaim struct {
	claim           string
	class           string
	template        string
	sharing         string // default none
	admin, extended bool
	devices         []wantedDevice
}

// wantedDevice is one device of a claim. Its hardware is looked up by the
// device's actual name.
type wantedDevice struct {
	device      string // driver/device
	request     string
	attribution string   // empty: the claim does not hold it
	consumers   []string // pod/container, sorted
}

// waitShown waits until the page reports exactly these claims of a namespace,
// compares containers' devices with those that the drivers injected, and the
// increase of counters with that of the devices' own. It returns the pages
// between which they increased.
func waitShown(t *testing.T, namespace string, claims ...wantedClaim) (before, after *scrape.Page) {
	t.Helper()
	p := eventually(t, "the claims of "+namespace, func(p *scrape.Page) error {
		infos, err := currentClaims(t, p, namespace)
		if err != nil {
			return err
		}
		if len(infos) != len(claims) {
			return fmt.Errorf("there are %d claims of %d", len(infos), len(claims))
		}
		for _, claim := range claims {
			if err := claim.check(p, infos); err != nil {
				return fmt.Errorf("%s: %w", claim.claim, err)
			}
		}
		return nil
	})
	checkInjected(t, p, namespace)
	return checkRise(t, namespace)
}

// currentClaims returns the info rows of the claims that exist. Rows of
// deleted claims remain for the grace period, under names that an earlier test
// may have used.
func currentClaims(t *testing.T, p *scrape.Page, namespace string) ([]scrape.Row, error) {
	t.Helper()
	claims, err := shared.Client().ResourceV1().ResourceClaims(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list claims: %w", err)
	}
	var infos []scrape.Row
	for _, claim := range claims.Items {
		infos = append(infos, p.Rows("dra_claim_info", scrape.Labels{"namespace": namespace, "claim_uid": string(claim.UID)})...)
	}
	return infos, nil
}

// check returns an error unless the claim is among these rows and has exactly
// these devices.
func (w wantedClaim) check(p *scrape.Page, infos []scrape.Row) error {
	info, err := w.info(infos)
	if err != nil {
		return err
	}
	claim := scrape.Labels{"namespace": info.Labels["namespace"], "resourceclaim": info.Labels["resourceclaim"]}
	held := 0
	for _, device := range w.devices {
		if device.attribution != "" {
			held++
		}
		if err := device.check(p, claim, w.class); err != nil {
			return fmt.Errorf("%s of request %s: %w", device.device, device.request, err)
		}
	}
	if n := p.Count("dra_claim_device_info", claim); n != len(w.devices) {
		return fmt.Errorf("it has %d devices", n)
	}
	if n := p.Count("dra_claim_held", claim); n != held {
		return fmt.Errorf("it holds %d devices", n)
	}
	return nil
}

// info returns the claim's row by its name's pattern.
func (w wantedClaim) info(infos []scrape.Row) (scrape.Row, error) {
	want := scrape.Labels{
		"deviceclass": w.class, "template": w.template, "sharing": "none",
		"admin_access": fmt.Sprint(w.admin), "extended_resource": fmt.Sprint(w.extended), "node": shared.NodeName(),
	}
	if w.sharing != "" {
		want["sharing"] = w.sharing
	}
	for _, row := range infos {
		if !matches(row.Labels["resourceclaim"], w.claim) {
			continue
		}
		for name, value := range want {
			if row.Labels[name] != value {
				return row, fmt.Errorf("dra_claim_info%s: %s is not %q", row.Labels, name, value)
			}
		}
		return row, nil
	}
	return scrape.Row{}, errors.New("there is no dra_claim_info")
}

func (w wantedDevice) check(p *scrape.Page, claim scrape.Labels, class string) error {
	var found []scrape.Row
	for _, row := range p.Rows("dra_claim_device_info", claim) {
		named := matches(row.Labels["driver"]+"/"+row.Labels["device"], w.device)
		if named && row.Labels["request"] == w.request && row.Labels["deviceclass"] == class {
			found = append(found, row)
		}
	}
	// Equal devices of a claim are distinguished by their order.
	if len(found) == 0 {
		return fmt.Errorf("there is no such dra_claim_device_info among %v", p.Rows("dra_claim_device_info", claim))
	}
	for _, row := range found {
		if err := w.checkHold(p, claim, row); err != nil {
			return err
		}
	}
	return nil
}

func (w wantedDevice) checkHold(p *scrape.Page, claim scrape.Labels, info scrape.Row) error {
	device := info.Labels["driver"] + "/" + info.Labels["device"]
	uuid := devices.uuidOf(device)
	if uuid == "" {
		uuid = path.Join(shared.NodeName(), info.Labels["driver"], info.Labels["pool"], info.Labels["device"])
	}
	if info.Labels["uuid"] != uuid {
		return fmt.Errorf("%s is taken for %s, not %s", device, info.Labels["uuid"], uuid)
	}
	hold := with(claim, "uuid", uuid)
	var consumers []string
	for _, row := range p.Rows("dra_claim_consumer_info", hold) {
		consumers = append(consumers, row.Labels["pod"]+"/"+row.Labels["container"])
	}
	slices.Sort(consumers)
	if !slices.Equal(consumers, w.consumers) {
		return fmt.Errorf("%s is used by %s, not %s", device, consumers, w.consumers)
	}
	return w.checkQuantities(p, hold, devices.chip(uuid))
}

// checkQuantities returns an error unless the claim has the values of the
// hardware, under the attribution, and no others. Counters may also exist
// under the previous attribution. A rule of each page checks that the values
// are the device's own.
func (w wantedDevice) checkQuantities(p *scrape.Page, hold scrape.Labels, behind *chip) error {
	isHeld, known := w.attribution != "", behind != nil
	whole := known && behind.Profile == ""
	for name, there := range map[string]bool{
		"dra_claim_held":                        isHeld,
		"dra_claim_held_seconds_total":          isHeld,
		"dra_claim_device_seconds_total":        isHeld,
		"dra_claim_memory_allocated_bytes":      isHeld,
		"dra_claim_utilization_ratio":           isHeld && known,
		"dra_claim_memory_used_bytes":           isHeld && known,
		"dra_claim_busy_seconds_total":          isHeld && known,
		"dra_claim_power_watts":                 isHeld && whole,
		"dra_claim_energy_joules_total":         isHeld && whole,
		"dra_claim_nvlink_transmit_bytes_total": isHeld && whole,
		"dra_claim_nvlink_receive_bytes_total":  isHeld && whole,
	} {
		now := 0
		for _, row := range p.Rows(name, hold) {
			attribution, has := row.Labels["attribution"]
			isNow := !has || attribution == w.attribution
			if isNow {
				now++
			} else if !there || !strings.HasSuffix(name, "_total") {
				return fmt.Errorf("%s is %s, not %s", name, attribution, w.attribution)
			}
		}
		if there != (now == 1) {
			return fmt.Errorf("%s%s has %d rows", name, hold, now)
		}
	}
	return nil
}

func with(labels scrape.Labels, more ...string) scrape.Labels {
	all := scrape.Labels{}
	for name, value := range labels {
		all[name] = value
	}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return all
}

// counterSources returns counters of a claim and the families that they are
// counted from.
func counterSources() map[string]string {
	return map[string]string{
		"dra_claim_busy_seconds_total":          "dra_device_busy_seconds_total",
		"dra_claim_energy_joules_total":         "dra_device_energy_joules_total",
		"dra_claim_nvlink_transmit_bytes_total": "dra_device_nvlink_transmit_bytes_total",
		"dra_claim_nvlink_receive_bytes_total":  "dra_device_nvlink_receive_bytes_total",
	}
}

// checkRise compares the increase of the counters of a namespace's claims over
// three seconds with that of the devices' own. It begins when all have
// increased, because the time before a claim's first whole interval is
// unattributed.
func checkRise(t *testing.T, namespace string) (before, after *scrape.Page) {
	t.Helper()
	claims := scrape.Labels{"namespace": namespace}
	first := page(t)
	before = eventually(t, "counters to rise", func(p *scrape.Page) error {
		for claimed := range counterSources() {
			for _, row := range currentRows(p, claimed, claims) {
				if old, err := first.One(claimed, row.Labels); row.Value == 0 || err == nil && row.Value == old.Value {
					return fmt.Errorf("%s%s stays at %v", claimed, row.Labels, row.Value)
				}
			}
		}
		return nil
	})
	after = eventually(t, "three seconds of counters", func(p *scrape.Page) error {
		if p.At.Sub(before.At) < 3*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	for claimed, owned := range counterSources() {
		for _, row := range currentRows(before, claimed, claims) {
			device := scrape.Labels{"uuid": row.Labels["uuid"]}
			gets, own := increase(before, after, claimed, row.Labels), increase(before, after, owned, device)
			if !(gets > 0) || math.Abs(gets-own) > 1e-6*own {
				t.Errorf("%s%s rose by %v, the device's own by %v", claimed, row.Labels, gets, own)
			}
		}
	}
	return before, after
}

// currentRows returns the rows of the claim's current attribution. Those of a
// previous one do not increase.
func currentRows(p *scrape.Page, name string, claims scrape.Labels) (rows []scrape.Row) {
	for _, row := range p.Rows(name, claims) {
		if p.Count("dra_claim_utilization_ratio", row.Labels) == 1 {
			rows = append(rows, row)
		}
	}
	return rows
}

// increase returns NaN if one of the pages does not have the row.
func increase(before, after *scrape.Page, name string, labels scrape.Labels) float64 {
	old, errBefore := before.One(name, labels)
	last, errAfter := after.One(name, labels)
	if errBefore != nil || errAfter != nil {
		return math.NaN()
	}
	return last.Value - old.Value
}

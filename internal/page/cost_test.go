package page

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

func TestNamespaces(t *testing.T) {
	status, text := get(t, handler(t, sharing(t)), "/api/v1/namespaces")
	if status != 200 {
		t.Fatal(status, text)
	}
	metrictest.CompareGolden(t, "testdata/namespaces.json", text)
	if status, text := get(t, handler(t, nil), "/api/v1/namespaces"); status != 503 {
		t.Errorf("without a snapshot it answers %d %s", status, text)
	}
}

func TestSelectedNamespaces(t *testing.T) {
	for query, want := range map[string]int{"": 5, "?namespace=research": 2, "?namespace=research&namespace=ranking": 3, "?namespace=unused": 0} {
		_, text := get(t, handler(t, sharing(t)), "/api/v1/namespaces"+query)
		var got totalsAnswer
		if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Namespaces) != want || got.Namespaces == nil {
			t.Errorf("%q gives %d totals, want %d: %v", query, len(got.Namespaces), want, err)
		}
	}
}

// Devices without a price are reported, and do not count as free.
func TestTotalsByNamespace(t *testing.T) {
	view := newView(parseNode(sharing(t)), noon)
	got := map[string]NamespaceUse{}
	for _, use := range view.ByNamespace() {
		got[use.Namespace] = use
	}
	if len(got) != 3 {
		t.Fatalf("namespaces %v", got)
	}
	if of := got["inference"]; *of.Device != 5400 || *of.Shared != 3600 || *of.Busy != 2040 || math.Abs(*of.Cost-3.7) > 1e-9 || of.Unpriced != nil {
		t.Errorf("inference has had %+v", of)
	}
	if of := got["research"]; *of.Cost != 0.0208 || of.Unpriced == nil || *of.Unpriced != 900 || of.Energy != nil {
		t.Errorf("research has had %+v", of)
	}
	if total := view.Total(); *total.Device != 7050 || math.Abs(*total.Cost-4.0333) > 1e-9 || total.Currency != "USD" || *total.Unpriced != 900 {
		t.Errorf("all have had %+v", total)
	}
}

func TestCountedSince(t *testing.T) {
	rows := sharing(t)
	if _, known := newView(parseNode(rows), noon).Counted(); known {
		t.Error("since when is counted is made up")
	}
	for i, r := range rows {
		if r.Family.Name == "dra_namespace_busy_seconds_total" {
			rows[i].Start = noon.Add(-time.Duration(i) * time.Minute)
		}
	}
	last := 0
	for i, r := range rows {
		if !r.Start.IsZero() {
			last = i
		}
	}
	if age, known := newView(parseNode(rows), noon).Counted(); !known || age != time.Duration(last)*time.Minute {
		t.Errorf("counted for %v, want %d min", age, last)
	}
}

func TestPricesOfADevice(t *testing.T) {
	view := newView(parseNode(sharing(t)), noon)
	for uuid, want := range map[string]string{
		"GPU-6f1b2a90-0b2d-4a57-9d3e-000000000004": "2.40 USD/h", "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000006": "2.40–2.50 USD/h",
		"GPU-6f1b2a90-0b2d-4a57-9d3e-000000000002": "",
	} {
		if got := prices(findDevice(t, view.Devices, uuid).Prices); got != want {
			t.Errorf("%s costs %q, want %q", uuid, got, want)
		}
	}
	rows := sharing(t)
	for i, r := range rows { // no longer held through this class
		rows[i].Past = r.Family.Name == "dra_device_price_per_hour" && r.Value == 2.5
	}
	if got := prices(findDevice(t, newView(parseNode(rows), noon).Devices, "GPU-6f1b2a90-0b2d-4a57-9d3e-000000000006").Prices); got != "2.40 USD/h" {
		t.Errorf("what it cost before is still its price: %q", got)
	}
	if price := claimOn(t, view, "rerank").Price; price == nil || *price != (Price{2.5, "USD"}) {
		t.Errorf("who holds it through a class pays %v", price)
	}
	if price := claimOn(t, view, "slice").Price; price != nil {
		t.Errorf("an unknown price is %v", price)
	}
}

// Two requests of different classes can allocate one device to a claim: the
// price for holders of one class is not the claim's price.
func TestPriceOfDeviceOfSeveralClasses(t *testing.T) {
	claim := []string{"namespace", "n", "resourceclaim", "two", "uuid", "a"}
	rows := []metric.Row{row("dra_claim_held", 1, claim...)}
	for _, class := range []string{"gold", "slow"} {
		rows = append(rows, row("dra_claim_device_info", 1, append(claim, "request", class, "deviceclass", class)...))
	}
	rows = append(rows, row("dra_device_price_per_hour", 72, "uuid", "a", "deviceclass", "gold", "currency", "EUR"))
	if price := newView(parseNode(rows), noon).Claims[0].Devices[0].Price; price != nil {
		t.Errorf("the price of another claim is shown: %v", price)
	}
	rows = append(rows, row("dra_device_price_per_hour", 7, "uuid", "a", "deviceclass", "multiple", "currency", "EUR"))
	if price := newView(parseNode(rows), noon).Claims[0].Devices[0].Price; price == nil || *price != (Price{7, "EUR"}) {
		t.Errorf("it pays %v", price)
	}
}

func TestMoney(t *testing.T) {
	for want, amount := range map[string]float64{
		"0.00 EUR": 0, "0.050 EUR": 0.05, "0.50 EUR": 0.5, "0.0083 EUR": 0.00834, "12.35 EUR": 12.3456, "0.00000 EUR": 1e-9, "1234.50 EUR": 1234.5,
	} {
		if got := money(&amount, "EUR"); got != want {
			t.Errorf("%g is %q, want %q", amount, got, want)
		}
	}
	if got := money(nil, "EUR"); got != absent {
		t.Errorf("an unknown amount is %q", got)
	}
}

package top

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// The document is the one that docs/api.md describes, made of real answers.
func TestDocument(t *testing.T) {
	text, err := encode(testReading(t), Order{Key: ByName})
	if err != nil {
		t.Fatal(err)
	}
	metrictest.CompareGolden(t, "testdata/document.json", string(text))
}

// Only devices that are held now are in the table.
func TestRowsOfHeldDevices(t *testing.T) {
	var document page.ClaimsAnswer
	if err := json.Unmarshal(withReplies(t, "claims.json"), &document); err != nil {
		t.Fatal(err)
	}
	held, gone := 0, 0
	for _, claim := range document.Claims {
		for _, device := range claim.Devices {
			if device.Held {
				held++
			} else {
				gone++
			}
		}
	}
	if got := len(claims(t, "claims.json").Rows); got != held || gone == 0 {
		t.Errorf("%d rows of %d held devices and %d others", got, held, gone)
	}
}

// Idle time is by the agent's clock, not by ours.
func TestIdleByAgentClock(t *testing.T) {
	body := []byte(`{"apiVersion": "v1", "claims": [{"name": "c", "devices": [{"uuid": "u", "held": true, "idleSince": "2026-11-20T09:00:00Z"}]}]}`)
	answer, err := decodeClaims(body, time.Date(2026, 11, 20, 9, 0, 30, 0, time.UTC))
	if err != nil || len(answer.Rows) != 1 || answer.Rows[0].Idle == nil || *answer.Rows[0].Idle != 30 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// The cost of a claim is that of its part of a device; without a price it is
// unknown.
func TestCost(t *testing.T) {
	for _, test := range []struct {
		device string
		want   string
	}{
		{`"price": {"perHour": 4, "currency": "EUR"}, "heldSeconds": 100, "deviceSeconds": 50`, "2"},
		{`"price": {"perHour": 4, "currency": "EUR"}, "heldSeconds": 100, "deviceSeconds": 100`, "4"},
		{`"price": {"perHour": 4, "currency": "EUR"}, "heldSeconds": 0, "deviceSeconds": 0`, "unknown"},
		{`"price": {"perHour": 4, "currency": "EUR"}`, "unknown"},
		{`"heldSeconds": 100, "deviceSeconds": 100`, "unknown"},
	} {
		body := `{"apiVersion": "v1", "claims": [{"name": "c", "devices": [{"uuid": "u", "held": true, ` + test.device + `}]}]}`
		answer, err := decodeClaims([]byte(body), noon)
		if err != nil {
			t.Fatal(err)
		}
		got := "unknown"
		if cost := answer.Rows[0].Cost; cost != nil {
			got = fmt.Sprint(*cost)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.device, got, test.want)
		}
	}
}

// Invalid documents are refused with a message, before they use memory.
func TestInvalidDocuments(t *testing.T) {
	for body, want := range map[string]string{
		``:                          "not a document",
		`<html>`:                    "not a document",
		`{}`:                        "no apiVersion",
		`{"apiVersion": "v2"}`:      `API "v2"`,
		`{"apiVersion": "\u001b["}`: `API "?["`,
		`[` + strings.Repeat(`null,`, maxValues+1) + `null]`:                   "200000 values",
		`{"apiVersion": "v1", "node": "` + strings.Repeat("x", MaxBody) + `"}`: "larger than 4 MiB",
	} {
		_, err := decodeClaims([]byte(body), noon)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %s", body, err, want)
		}
		if _, err = decodePending([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("pending, %.40s: %v, want %s", body, err, want)
		}
	}
}

// Any answer of an agent is refused, or can be drawn and encoded.
func FuzzAnswer(f *testing.F) {
	for _, name := range []string{"claims.json", "devices.json", "sharing.json", "pending.json"} {
		f.Add(withReplies(f, name))
	}
	f.Add([]byte(`{"apiVersion":"v1","claims":[{"devices":[{"held":true,"utilizationRatio":1e308,"heldSeconds":1e308,"idleSince":"0001-01-02T00:00:00Z"}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		fleet, agent := NewFleet(), Agent{Name: "a"}
		fleet.Expect([]Agent{agent})
		answer, err := decodeClaims(body, noon)
		fleet.Set(Reply{Agent: agent, Answer: answer, Err: err})
		if waiting, err := decodePending(body); err == nil {
			fleet.SetPending(&waiting, nil)
		}
		reading := fleet.Reading(noon, Wanted{})
		lines := Draw(reading, Order{Key: ByUtilization}, Look{Width: 100, Bars: true, Glyphs: unicodeGlyphs()})
		s := testScreen(reading, 100, 30)
		for range s.views {
			lines = append(append(lines, linesOf(s)...), linesOf(s.pressed("enter"))...)
			s.pressed("tab")
		}
		for _, line := range lines {
			if at := strings.IndexFunc(line, isControl); at >= 0 || len([]rune(line)) > 100 {
				t.Fatalf("%q", line)
			}
		}
		text, err := encode(reading, Order{Key: ByUtilization})
		if err != nil || !json.Valid(text) {
			t.Fatalf("%v: %s", err, text)
		}
	})
}

// fleetBodies are answers of so many agents with eight devices each.
func fleetBodies(t testing.TB, nodes int) [][]byte {
	t.Helper()
	var document page.ClaimsAnswer
	if err := json.Unmarshal(withReplies(t, "claims.json"), &document); err != nil {
		t.Fatal(err)
	}
	example := page.Claim{}
	for _, claim := range document.Claims {
		if claim.Name == "debug-session" {
			example = claim
		}
	}
	bodies := make([][]byte, nodes)
	for n := range bodies {
		node := page.ClaimsAnswer{APIVersion: page.APIVersion, Node: fmt.Sprintf("gpu-node-%04d", n), SampledAt: noon}
		for d := range 8 {
			claim := example
			claim.Name = fmt.Sprintf("train-%d-%d", n, d)
			claim.Devices = []page.ClaimDevice{example.Devices[0]}
			busy := float64((n*8+d)%100) / 100
			claim.Devices[0].UUID, claim.Devices[0].Utilization = fmt.Sprintf("GPU-%08x-%d", n, d), &busy
			node.Claims = append(node.Claims, claim)
		}
		text, err := json.MarshalIndent(node, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		bodies[n] = bytes.Clone(text)
	}
	return bodies
}

// The reason of a recovering device, and its age, are shown beside it.
func TestRecoveringDevice(t *testing.T) {
	answer, err := decodeClaims([]byte(`{"apiVersion": "v1", "claims": [{"name": "c", "devices": [{"uuid": "u", "held": true, "health": {
		"hardware": true, "xids": [{"code": "79", "count": 1, "last": "2026-11-20T09:58:00Z"}],
		"recovering": {"xid": "79", "meaning": "GPU fell off the bus", "last": "2026-11-20T09:58:00Z"}}}]}]}`), noon)
	if err != nil {
		t.Fatal(err)
	}
	row := &answer.Rows[0]
	if got, want := healthCell(row.Health, row.Reasons), "recovering: Xid 79 (GPU fell off the bus) 2 min ago"; got != want || deviceCell(row) != "!u" || styleOfHealth(row.Health) != styleWarning {
		t.Errorf("top says %q, want %q", got, want)
	}
	if *severity(row.Health) <= *severity("degraded") {
		t.Error("it does not stand before what is warned of")
	}
}

// encode returns the document of a reading, as the command writes it.
func encode(reading FleetState, order Order) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(terminal.JSONWriter(&text))
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(NewDocument(reading, order))
	return text.Bytes(), err
}

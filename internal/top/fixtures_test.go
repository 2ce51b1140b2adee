package top

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time of the documents of internal/page.
var noon = time.Unix(1795168800, 0).UTC()

// withReplies returns an agent's answer: a golden document of internal/page.
func withReplies(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../page/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// claims returns an agent's answer at noon.
func claims(t testing.TB, name string) Answer {
	t.Helper()
	answer, err := decodeClaims(withReplies(t, name), noon)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// testReading returns the reading of three agents and the cluster role; a
// fourth agent does not answer.
func testReading(t testing.TB) Reading {
	t.Helper()
	fleet := NewFleet()
	a, b, c, d := Agent{Name: "monitoring/dra-exporter-node-a"}, Agent{Name: "monitoring/dra-exporter-node-b"},
		Agent{Name: "monitoring/dra-exporter-node-c", Node: "node-c"}, Agent{Name: "monitoring/dra-exporter-node-d", Node: "node-d"}
	fleet.Expect([]Agent{a, b, c, d})
	fleet.Set(Reply{Agent: a, Answer: claims(t, "claims.json")})
	sharing := claims(t, "sharing.json")
	sharing.Node = "node-b"
	for i := range sharing.Rows {
		sharing.Rows[i].Node = "node-b"
	}
	sharing.SampledAt = noon.Add(-5 * time.Minute)
	fleet.Set(Reply{Agent: b, Answer: sharing})
	fleet.Set(Reply{Agent: c, Err: errTimeout})
	waiting, err := decodePending(withReplies(t, "pending.json"))
	fleet.SetPending(&waiting, err)
	return fleet.Reading(noon, Wanted{})
}

package top

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is when the documents of internal/page were made.
var noon = time.Unix(1795168800, 0).UTC()

// document is an answer as agents give it: the golden ones of internal/page.
func withReplies(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("../page/testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// claims is what an agent says at noon.
func claims(t testing.TB, name string) Answer {
	t.Helper()
	answer, err := decodeClaims(withReplies(t, name), noon)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// scene is what three agents and the cluster role say; a fourth is silent.
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

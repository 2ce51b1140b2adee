package cluster

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The page shows since when references have had no diagnosis, and what
// diagnoses have cost.
func TestDiagnosisRows(t *testing.T) {
	h := newHarness(t)
	a, b, c := pod("a/p", 10, "gpu=c"), pod("a/q", 20, "gpu=c"), pod("b/r", 30, "gpu=c")
	h.update(claim("a/c", 11), claim("b/c", 11), a, b)
	h.step(time.Second)
	h.update(c)
	h.facts.Work = &dra.DiagnosisWork{
		Costs: []dra.DiagnosisCost{{Namespace: "", Took: 250 * time.Millisecond}, {Namespace: "a", Took: 90 * time.Second}},
		First: 1, Again: 4,
	}
	h.facts.Diagnoses = []dra.Diagnosis{diagnosisFor(a, "gpu", dra.ReasonUndetermined, "the diagnosis needs more than 4s"), diagnosisFor(b, "gpu", dra.ReasonInsufficient, "m")}
	h.step(time.Second)
	h.expectRows(`dra_exporter_diagnosis_seconds_total{namespace=""} 0.25
		dra_exporter_diagnosis_seconds_total{namespace="a"} 90
		dra_exporter_queued_diagnoses{kind="again"} 4
		dra_exporter_queued_diagnoses{kind="first"} 1
		dra_exporter_undiagnosed_since_timestamp_seconds{cause="over_limit"} 1.795172402e+09
		dra_exporter_undiagnosed_since_timestamp_seconds{cause="queued"} 1.795172402e+09`, "dra_exporter_diagnosis", "dra_exporter_queued", "dra_exporter_undiagnosed")
	h.facts.Diagnoses = append(h.facts.Diagnoses, diagnosisFor(c, "gpu", dra.ReasonTainted, "m"))
	h.step(time.Minute)
	h.expectRows(`dra_exporter_undiagnosed_since_timestamp_seconds{cause="over_limit"} 1.795172402e+09`, "dra_exporter_undiagnosed")
}

// Without diagnoses, nothing is queued: it is not 0.
func TestNoDiagnosisRowsWithoutDiagnoses(t *testing.T) {
	h := newHarness(t)
	h.update(claim("a/c", 11), pod("a/p", 10, "gpu=c"))
	h.step(time.Second)
	h.expectRows("", "dra_exporter_diagnosis", "dra_exporter_queued")
}

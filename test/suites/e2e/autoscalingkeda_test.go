package e2e

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const scaledObjectFile = "../../../deploy/autoscaling/scaledobject.yaml"

// testKEDA: the shipped ScaledObject is valid by KEDA's own definition, its
// trigger has only keys that this test knows, and its query returns the number
// that KEDA is to use.
func (s *autoscalingEnv) testKEDA(t *testing.T) {
	trigger := checkScaledObject(t)
	for key := range trigger.Metadata {
		if !strings.Contains(readKEDA(t, "prometheus_scaler.go"), fmt.Sprintf("keda:\"name=%s,", key)) {
			t.Errorf("KEDA's trigger has no %s", key)
		}
	}
	if trigger.MetricType != "Value" || trigger.Metadata["ignoreNullValues"] != "false" {
		t.Errorf("the trigger is %+v", trigger)
	}
	query := trigger.Metadata["query"]
	s.waitRows(t, query, func(rows []scrape.Row) error {
		if err := oneRow(rows); err != nil {
			return err
		}
		if !(math.Abs(rows[0].Value-0.05) <= 1e-6) {
			return fmt.Errorf("it is %v: not what the Deployment's pod does", rows[0].Value)
		}
		return nil
	})
	noPods := strings.Replace(query, `"inference-`, `"absent-`, 1)
	if rows, err := s.query(t.Context(), noPods); err != nil || len(rows) > 0 || noPods == query {
		t.Errorf("for pods that do not exist it returns %v (%v)", rows, err)
	}
}

type kedaTrigger struct {
	Type       string            `json:"type"`
	MetricType string            `json:"metricType"`
	Metadata   map[string]string `json:"metadata"`
}

// checkScaledObject validates the shipped file, and one with an error in it,
// by a dry run with KEDA's definition. It returns the shipped file's only
// trigger.
func checkScaledObject(t *testing.T) kedaTrigger {
	t.Helper()
	definition := readKEDA(t, "keda.sh_scaledobjects.yaml")
	applyFor(t, definition)
	if _, err := shared.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=60s", "customresourcedefinition/scaledobjects.keda.sh"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(scaledObjectFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := dryRunCreate(t.Context(), scaledObjectFile); err != nil {
		t.Error(err)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	misspelt := regexp.MustCompile(`maxReplicaCount`).ReplaceAllString(string(text), "maxReplicas")
	if err := os.WriteFile(wrong, []byte(misspelt), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dryRunCreate(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "maxReplicas") {
		t.Errorf("what KEDA does not know was not refused: %v", err)
	}
	var object struct {
		Spec struct {
			Triggers []kedaTrigger `json:"triggers"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &object); err != nil || len(object.Spec.Triggers) != 1 {
		t.Fatalf("there are the triggers %v (%v)", object.Spec.Triggers, err)
	}
	return object.Spec.Triggers[0]
}

func dryRunCreate(ctx context.Context, file string) error {
	_, err := shared.Kubectl(ctx, "apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename", file)
	return err
}

// readKEDA reads a file of KEDA's module.
func readKEDA(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("DRA_E2E_BIN"), "autoscaling", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

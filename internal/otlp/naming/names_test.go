package naming

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dra-exporter/dra-exporter/test/fakes/otlptest"
)

// conventionNames are the names of testdata/semconv-1.44.0.txt.
type conventionNames struct {
	namespaces, attributes map[string]bool
	metrics                map[string][]string // instrument and unit
}

func readConventionNames(t *testing.T) conventionNames {
	t.Helper()
	file, err := os.Open("testdata/semconv-1.44.0.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	names := conventionNames{map[string]bool{}, map[string]bool{}, map[string][]string{}}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		switch fields := strings.Fields(lines.Text()); {
		case len(fields) == 0 || fields[0] == "#":
		case fields[0] == "namespace":
			names.namespaces[fields[1]] = true
		case fields[0] == "attribute":
			names.attributes[fields[1]] = true
		case fields[0] == "metric":
			names.metrics[fields[1]] = fields[2:]
		default:
			t.Fatalf("unknown line %q", lines.Text())
		}
	}
	if len(names.namespaces) < 80 || !names.namespaces["k8s"] || len(names.attributes) < 100 || len(names.metrics) < 40 {
		t.Fatalf("the list has %d namespaces, %d attributes, %d metrics", len(names.namespaces), len(names.attributes), len(names.metrics))
	}
	return names
}

// isReserved reports whether a name that the conventions do not define lies under a
// namespace of theirs.
func (n conventionNames) isReserved(name string) bool {
	first, _, _ := strings.Cut(name, ".")
	return n.namespaces[first]
}

// ownAttributes are the attributes of names.go.
func ownAttributes() []attribute.Key {
	return []attribute.Key{
		ResourceClaimName, ResourceClaimUID, DeviceClassName, attribution, errorKind, link, port, throttleReason,
		Devices, LostAttempts, Phase, PhaseAttempt, BeginEvidence, BeginError, EndEvidence, EndError, EventReason, EventMessage,
	}
}

// targetAttributes are the attributes of all points.
func targetAttributes() []attribute.Key {
	var keys []attribute.Key
	for _, target := range targets() {
		keys = append(keys, target.facts...)
		for _, c := range target.families {
			for _, rule := range append(c.subject.rules(), c.rules...) {
				if rule.key != "" {
					keys = append(keys, rule.key)
				}
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// TestOwnNamesAreApart: the conventions define a name, or it begins with this project's.
func TestOwnNamesAreApart(t *testing.T) {
	names := readConventionNames(t)
	for _, name := range []string{"k8s.resourceclaim.name", "hw.gpu.xid", "service.kind"} {
		if !names.isReserved(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	check := func(name string) {
		if !strings.HasPrefix(name, ownNamespace) || names.isReserved(name) {
			t.Errorf("%s is not under %q, or under a namespace of the conventions", name, ownNamespace)
		}
	}
	own := ownAttributes()
	for _, key := range own {
		check(string(key))
	}
	for _, key := range targetAttributes() {
		if !names.attributes[string(key)] && !slices.Contains(own, key) {
			t.Errorf("%s is neither of the conventions nor of names.go", key)
		}
	}
	for _, target := range targets() {
		if _, ok := names.metrics[target.name]; !ok {
			check(target.name)
		}
	}
}

// TestOwnNamesNest: no attribute, and no metric, is the namespace of another.
func TestOwnNamesNest(t *testing.T) {
	var attributes, metrics []string
	for _, key := range append(ownAttributes(), targetAttributes()...) {
		attributes = append(attributes, string(key))
	}
	for _, target := range targets() {
		metrics = append(metrics, target.name)
	}
	for _, names := range [][]string{attributes, metrics} {
		for _, name := range names {
			for _, other := range names {
				if strings.HasPrefix(other, name+".") {
					t.Errorf("%s is the namespace of %s", name, other)
				}
			}
		}
	}
}

// TestOwnMetricsAreNoFamilies: a backend that writes names with underscores never adds
// points to the series of a scrape, which have other labels.
func TestOwnMetricsAreNoFamilies(t *testing.T) {
	families := rolesFamilies()
	series := func(name, unit string, kind instrument) string {
		return otlptest.SeriesName(metricdata.Metrics{Name: strings.ReplaceAll(name, ".", "_"), Unit: unit, Data: kind.data(nil)})
	}
	if name := series("dra.claim.power", "W", gaugeInstrument); families[name] == nil {
		t.Errorf("%s is no family", name)
	}
	for _, target := range targets() {
		if name := series(target.name, target.unit, target.kind); families[name] != nil {
			t.Errorf("%s becomes the family %s", target.name, name)
		}
	}
}

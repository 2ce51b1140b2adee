//go:build linux

package prometheus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// seriesCounts is the file with which `dra-exporter series` computes.
const seriesCounts = root + "/internal/series/counts.json"

// plainFleet is a size of test/fakes/fleet.
type plainFleet struct{ nodes, devices, claims int }

// countedFleet is what is counted of a plain fleet: series of targets by level, with
// those that Prometheus adds, and recorded series by set and interval.
type countedFleet struct {
	agent, cluster map[string]float64
	recorded       map[string]map[string]float64
}

// ofPrometheus is how many series Prometheus adds to a target.
const ofPrometheus = 5

// seriesLine is a line of the file.
type seriesLine struct {
	Base   float64 `json:"base"`
	Node   float64 `json:"node,omitempty"`
	Device float64 `json:"device,omitempty"`
	Claim  float64 `json:"claim,omitempty"`
}

type seriesFile struct {
	Agent    map[string]seriesLine            `json:"agent"`
	Cluster  map[string]seriesLine            `json:"cluster"`
	Recorded map[string]map[string]seriesLine `json:"recorded"`
}

// TestSeries counts the series of plain fleets on the pages of both real roles, and
// those that all rules record of them. `dra-exporter series` says the same of another
// fleet, within 5 percent. With -update, the file with which it computes is written.
func TestSeries(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs both roles for four fleets")
	}
	binary, fleet := demoBinary(t), fleetBinary(t)
	count := func(f plainFleet) countedFleet { return countFleet(t, binary, fleet, f) }
	if *update {
		file := fitted(count(plainFleet{2, 8, 6}), count(plainFleet{4, 8, 6}), count(plainFleet{2, 8, 3}), count(plainFleet{2, 6, 3}))
		text, err := json.MarshalIndent(file, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(seriesCounts, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		binary = demoBinary(t)
	}
	other := plainFleet{3, 6, 5}
	counted := count(other)
	output, err := exec.CommandContext(t.Context(), binary, "series", "--output=json", fmt.Sprintf("--nodes=%d", other.nodes),
		fmt.Sprintf("--devices=%d", other.devices), fmt.Sprintf("--claims=%d", other.claims)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Agent, Cluster, Recorded map[string]float64
		Unknown                  []string
	}
	if err := json.Unmarshal(output, &said); err != nil {
		t.Fatal(err)
	}
	check := func(what string, said, counted float64) {
		t.Logf("%s: %g said, %g counted", what, said, counted)
		if math.Abs(said-counted) > max(0.05*counted, 2) {
			t.Errorf("%s: it says %g, and there are %g", what, said, counted)
		}
	}
	for _, level := range []string{"lean", "default", "full"} {
		check("agent, "+level, said.Agent[level], counted.agent[level])
		check("cluster role, "+level, said.Cluster[level], counted.cluster[level])
	}
	for _, set := range sets.All() {
		sum := 0.0
		for _, series := range counted.recorded[set.Name] {
			sum += series
		}
		if number, ok := said.Recorded[set.Name]; ok != (sum > 0) || ok == slices.Contains(said.Unknown, set.Name) {
			t.Errorf("set %s: it says %g (%t), unknown are %v, and there are %g", set.Name, number, ok, said.Unknown, sum)
		} else if ok {
			check("set "+set.Name, number, sum)
		}
	}
}

// fitted returns the lines through the counts of fleets that differ in one number each:
// twice the nodes of the first, half of its claims, and, with as many claims, two devices
// fewer. Each has free devices: where none is free, some rows are missing.
func fitted(first, twice, fewerClaims, fewerDevices countedFleet) seriesFile {
	const nodes, devices, claims, fewer = 2, 8, 6, 2
	file := seriesFile{Agent: map[string]seriesLine{}, Cluster: map[string]seriesLine{}, Recorded: map[string]map[string]seriesLine{}}
	for level := range first.agent {
		line := seriesLine{
			Claim:  (first.agent[level] - fewerClaims.agent[level]) / (claims - claims/2),
			Device: (fewerClaims.agent[level] - fewerDevices.agent[level]) / fewer,
		}
		line.Base = first.agent[level] - devices*line.Device - claims*line.Claim
		file.Agent[level] = line
	}
	fit := func(first, twice, fewerClaims, fewerDevices float64) seriesLine {
		line := seriesLine{Claim: (first - fewerClaims) / (nodes * (claims - claims/2)), Device: (fewerClaims - fewerDevices) / (nodes * fewer)}
		line.Node = (twice-first)/nodes - devices*line.Device - claims*line.Claim
		line.Base = first - nodes*(line.Node+devices*line.Device+claims*line.Claim)
		return line
	}
	for level := range first.cluster {
		file.Cluster[level] = fit(first.cluster[level], twice.cluster[level], fewerClaims.cluster[level], fewerDevices.cluster[level])
	}
	for set, intervals := range first.recorded {
		file.Recorded[set] = map[string]seriesLine{}
		for every := range intervals {
			line := fit(first.recorded[set][every], twice.recorded[set][every], fewerClaims.recorded[set][every], fewerDevices.recorded[set][every])
			if line != (seriesLine{}) { // else the fleets lack what is recorded, and the number is unknown
				file.Recorded[set][every] = line
			}
		}
	}
	return file
}

func fleetBinary(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "fleet")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./test/fakes/fleet")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the fleet: %v\n%s", err, output)
	}
	return binary
}

// countFleet starts a fleet and both roles at each level, and counts.
func countFleet(t *testing.T, binary, program string, f plainFleet) countedFleet {
	t.Helper()
	files := startFleet(t, program, f)
	counted := countedFleet{agent: map[string]float64{}, cluster: map[string]float64{}, recorded: map[string]map[string]float64{}}
	addresses := map[string]string{}
	for _, level := range []string{"lean", "default", "full"} {
		addresses["node "+level], addresses["cluster "+level] = freeAddress(t), freeAddress(t)
		run(t, exec.CommandContext(t.Context(), binary, "node", "--node.name="+files.Node, "--device.source=simulated", "--simulated.config="+files.Hardware,
			"--kubelet.pod-resources-socket="+files.Socket, "--kubeconfig="+files.Kubeconfig, "--metrics.level="+level, "--web.listen-address="+addresses["node "+level]))
		run(t, exec.CommandContext(t.Context(), binary, "cluster", "--kubeconfig="+files.Kubeconfig, "--metrics.level="+level, "--web.listen-address="+addresses["cluster "+level]))
	}
	pages := finalPages(t, addresses)
	for _, level := range []string{"lean", "default", "full"} {
		counted.agent[level], counted.cluster[level] = float64(len(pages["node "+level])+ofPrometheus), float64(len(pages["cluster "+level])+ofPrometheus)
	}
	counted.recorded = recordedBySet(t, pages["node default"], pages["cluster default"], f.nodes)
	return counted
}

type fleetFiles struct{ Kubeconfig, Socket, Hardware, Node string }

func startFleet(t *testing.T, program string, f plainFleet) fleetFiles {
	t.Helper()
	folder, err := os.MkdirTemp("", "fleet") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	command := exec.CommandContext(t.Context(), program, fmt.Sprintf("-nodes=%d", f.nodes), fmt.Sprintf("-devices=%d", f.devices), fmt.Sprintf("-claims=%d", f.claims),
		"-folder="+folder, "-hardware="+root+"/internal/demo/templates.yaml")
	var errors bytes.Buffer
	command.Stderr = &errors
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait()
	})
	var files fleetFiles
	if err := json.NewDecoder(output).Decode(&files); err != nil {
		t.Fatalf("%v\n%s", err, &errors)
	}
	return files
}

// finalPages returns the rows of the pages when no page has got more rows for ten
// seconds: durations of reads begin with the first slow read.
func finalPages(t *testing.T, addresses map[string]string) map[string][]pageRow {
	t.Helper()
	pages, quiet := map[string][]pageRow{}, 0
	for try := 0; quiet < 10; try++ {
		if try > 120 {
			t.Fatal("the pages never stop growing")
		}
		quiet++
		for name, address := range addresses {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				quiet = 0
				continue
			}
			connection.Close()
			rows := parsed(t, scraped(t, "http://"+address+"/metrics"))
			if len(rows) != len(pages[name]) {
				quiet = 0
			}
			pages[name] = rows
		}
		time.Sleep(time.Second)
	}
	return pages
}

// recordedBySet counts what the rules record of so many nodes like the first, after
// twenty minutes in which counters grow.
func recordedBySet(t *testing.T, node, cluster []pageRow, nodes int) map[string]map[string]float64 {
	t.Helper()
	belongs, err := sets.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	type fleetRow struct {
		labels  labels.Labels
		counter bool
		value   float64
	}
	var rows []fleetRow
	add := func(row pageRow, instance string, replace *strings.Replacer) {
		builder := labels.NewBuilder(labels.EmptyLabels())
		row.labels.Range(func(label labels.Label) { builder.Set(label.Name, replace.Replace(label.Value)) })
		rows = append(rows, fleetRow{builder.Set("job", "dra-exporter").Set("instance", instance).Labels(), row.counter, row.after})
	}
	up := pageRow{labels: labels.FromStrings("__name__", "up"), after: 1}
	for n := range nodes {
		own := fmt.Sprintf("%05d", n)
		replace := strings.NewReplacer("node-00000", "node-"+own, "team-00000", "team-"+own, "GPU-00000000-", "GPU-000"+own+"-")
		for _, row := range append(slices.Clone(node), up) {
			add(row, "node-"+own, replace)
		}
	}
	for _, row := range append(slices.Clone(cluster), up) {
		add(row, "cluster", strings.NewReplacer())
	}
	db := emptyStore(t)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e8, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	recorded := map[string]map[string]labels.Labels{}
	const minutes = 20
	begins := time.Now().Add(-minutes * time.Minute).Truncate(time.Minute)
	for minute := range minutes + 1 {
		at := begins.Add(time.Duration(minute) * time.Minute)
		appender := db.Appender(t.Context())
		for _, row := range rows {
			value := row.value
			if row.counter {
				value += float64(minute * 60)
			}
			if _, err := appender.Append(0, row.labels, at.UnixMilli(), value); err != nil {
				t.Fatal(err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
		for _, group := range groups(t) {
			if time.Duration(group.Interval) == 5*time.Minute && minute%5 != 0 {
				continue
			}
			for i, rule := range group.Rules {
				key := fmt.Sprint(group.Name, " ", i)
				recorded[key] = evaluateRule(t, engine, db, rule, at, recorded[key])
			}
		}
	}
	counted := map[string]map[string]float64{}
	for _, set := range sets.All() {
		counted[set.Name] = map[string]float64{}
	}
	for _, group := range groups(t) {
		every := fmt.Sprint(int(time.Duration(group.Interval).Seconds()))
		for i, rule := range group.Rules {
			counted[belongs.Records[rule.Record]][every] += float64(len(recorded[fmt.Sprint(group.Name, " ", i)]))
		}
	}
	for _, set := range slices.Sorted(maps.Keys(counted)) {
		t.Logf("%d nodes: %s %v", nodes, set, counted[set])
	}
	return counted
}

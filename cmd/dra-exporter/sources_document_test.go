//go:build cgo && linux

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
	"github.com/dra-exporter/dra-exporter/test/fakes/stubs"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// column is one of docs/sources.md: a source, and whether its whole devices
// or its partitions are meant.
type column struct {
	title, source string
	partitions    bool
}

// columns returns the columns of the first table in the order of precedence, and
// those of the second, which are of the source exporter's presets.
func columns() (hardware, presets []column) {
	return []column{
			{"nvml", "nvml", false}, {"nvml, MIG", "nvml", true},
			{"dcgm", "dcgm", false}, {"dcgm, MIG", "dcgm", true},
			{"amdgpu", "amdgpu", false},
			{"intel", "intel", false},
			{"rdma", "rdma", false},
		}, []column{
			{"nvidia-dcgm-exporter", "exporter=nvidia-dcgm-exporter", false},
			{"nvidia-dcgm-exporter, MIG", "exporter=nvidia-dcgm-exporter", true},
			{"intel-xpumd", "exporter=intel-xpumd", false},
			{"furiosa", "exporter=furiosa", false},
			{"google-tpu-device-plugin", "exporter=google-tpu-device-plugin", false},
			{"all-smi", "exporter=all-smi", false},
			{"all-smi, MIG", "exporter=all-smi", true},
		}
}

// optIns returns the flags that make a source read more, in the order in which
// a cell names them.
func optIns() []string { return []string{"", "--device.profiling", "--device.nvlink-links"} }

// Each cell of docs/sources.md is the program's output for the scripted
// hardware with that source alone, or for the page of a preset: yes, yes with a
// flag, or nothing. The document therefore agrees with the code; -update writes the
// tables again.
func TestSourcesDocument(t *testing.T) {
	const path = "../../docs/sources.md"
	shown := shownCells(t)
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	hardware, presets := columns()
	text := string(document)
	for _, table := range []struct {
		mark    string
		columns []column
	}{{"table", hardware}, {"table of presets", presets}} {
		begin, end := "<!-- "+table.mark+" -->\n", "<!-- end of "+table.mark+" -->\n"
		before, rest, _ := strings.Cut(text, begin)
		_, after, found := strings.Cut(rest, end)
		if !found {
			t.Fatalf("docs/sources.md has lost the marks around its %s", table.mark)
		}
		text = before + begin + sourcesTable(shown, table.columns) + end + after
	}
	metrictest.CompareGolden(t, path, text)
}

// cell is a source and a family that it reported.
type cell struct {
	source     string
	partitions bool
	family     string
}

// shownCells runs the program once for each source and flag, in parallel, and
// returns by which flag each family is reported first.
func shownCells(t *testing.T) map[cell]string {
	t.Helper()
	libraries := stubs.Build(t)
	var lock sync.Mutex
	seen := make(map[string][]cell) // by flag
	hardware, presets := columns()
	t.Run("run", func(t *testing.T) {
		ran := make(map[string]bool)
		for _, c := range slices.Concat(hardware, presets) {
			source, flags := c.source, optIns()
			if ran[source] {
				continue
			}
			if ran[source] = true; strings.HasPrefix(source, "exporter=") {
				flags = flags[:1]
			}
			for _, flag := range flags {
				t.Run(source+flag, func(t *testing.T) {
					t.Parallel()
					cells := cellsShown(t, libraries, source, flag)
					lock.Lock()
					defer lock.Unlock()
					seen[flag] = append(seen[flag], cells...)
				})
			}
		}
	})
	shown := make(map[cell]string)
	for _, flag := range optIns() {
		for _, c := range seen[flag] {
			if _, known := shown[c]; !known {
				shown[c] = flag
			}
		}
	}
	return shown
}

// sourcesTable writes a row for each family that some column shows.
func sourcesTable(shown map[cell]string, columns []column) string {
	var table strings.Builder
	table.WriteString("| metric |")
	for _, c := range columns {
		table.WriteString(" " + c.title + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	for _, family := range deviceFamilies() {
		row, any := "| `"+family.Name+"` |", false
		for _, c := range columns {
			flag, yes := shown[cell{c.source, c.partitions, family.Name}]
			text := "|"
			switch {
			case yes && flag != "":
				text = "`" + flag + "` |"
			case yes:
				text = "yes |"
			}
			row, any = row+" "+text, any || yes
		}
		if any {
			table.WriteString(row + "\n")
		}
	}
	return table.String()
}

// deviceFamilies returns the families of hardware, in the order of
// docs/metrics.md.
func deviceFamilies() []*metric.Family {
	return slices.DeleteFunc(node.Families(), func(f *metric.Family) bool {
		return !strings.HasPrefix(f.Name, "dra_device_") || strings.HasSuffix(f.Name, "_info") ||
			slices.Contains([]string{"dra_device_holders", "dra_device_busy_seconds_total", "dra_device_healthy"}, f.Name)
	})
}

// cellsShown runs the program with one source over the scripted hardware and
// returns the families of whole devices and of partitions.
func cellsShown(t *testing.T, libraries stubs.Libraries, source, flag string) []cell {
	t.Helper()
	args := []string{"node", "--metrics.level=full", "--node.name=n", "--kubernetes.disable", "--kubelet.pod-resources-socket=/does/not/exist",
		"--web.listen-address=127.0.0.1:0"}
	preset, isExporter := strings.CutPrefix(source, "exporter=")
	if isExporter {
		page, err := os.ReadFile(filepath.Join("../../collector/device/exporter/testdata", preset+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page) }))
		t.Cleanup(server.Close)
		return cellsOn(t, source, readPage(t, append(args, "--device.source=exporter", "--exporter.preset="+preset+"="+server.URL+"/metrics"), nil))
	}
	args = append(args, "--device.source="+source)
	if flag != "" {
		args = append(args, flag)
	}
	var environment []string
	switch source {
	case "nvml", "dcgm":
		hardware := stubs.NewNode(t, 2)
		hardware.CreateMIG(1, "1g.10gb", 0)
		hardware.CreateMIG(1, "3g.40gb", 4)
		environment = hardware.Env()
		args = append(args, "--nvml.library="+libraries.NVML, "--dcgm.library="+libraries.DCGM)
	default:
		args = append(args, "--path.sysfs="+sysfstest.Plant(t, source).Root)
	}
	return cellsOn(t, source, readPage(t, args, environment))
}

// readPage runs the program until two seconds after its source was first
// read, so that values derived from two reads exist.
func readPage(t *testing.T, args, environment []string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	command := program(ctx, args...)
	command.Env = append(command.Env, environment...)
	log, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { endProgram(t, command) }()
	address := waitForAddress(t, log)
	page := eventually(t, address+"/metrics", "dra_device_info{")
	for range 4 { // a round a second: rates and integrals need two
		time.Sleep(time.Second)
		_, page = get(t, address+"/metrics")
	}
	return page
}

// waitForAddress waits until the log has the address, and reads on while the program
// runs.
func waitForAddress(t *testing.T, log io.Reader) string {
	t.Helper()
	names := regexp.MustCompile(`address=(?:\[::\]|127\.0\.0\.1):(\d+)`)
	var text strings.Builder
	for buffer := make([]byte, 4096); ; {
		n, err := log.Read(buffer)
		text.Write(buffer[:n])
		if found := names.FindStringSubmatch(text.String()); found != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return "http://127.0.0.1:" + found[1]
		}
		if err != nil {
			t.Fatalf("the program ended before it listened: %v\n%s", err, text.String())
		}
	}
}

func endProgram(t *testing.T, command *exec.Cmd) {
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("the program did not end well: %v", err)
	}
}

// cellsOn separates the families of a page by whether their rows are of
// partitions.
func cellsOn(t *testing.T, source, page string) []cell {
	t.Helper()
	row := regexp.MustCompile(`^(dra_device_\w+)\{.*parent_uuid="([^"]*)"`)
	var cells []cell
	for line := range strings.Lines(page) {
		if parts := row.FindStringSubmatch(line); parts != nil {
			cells = append(cells, cell{source, parts[2] != "", parts[1]})
		}
	}
	if len(cells) == 0 {
		t.Fatalf("no device on the page:\n%s", page)
	}
	return cells
}

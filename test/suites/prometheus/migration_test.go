package prometheus

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/prometheus/promlabels"
)

// TestMigrationTable: docs/migration.md agrees with docs/dcgm-names.md, which
// is generated from the code, about each field of dcgm-exporter, and each
// replacing family exists.
func TestMigrationTable(t *testing.T) {
	families := documented(t)
	theirs := fields(t, "dcgm-names.md", 3)
	rows := fields(t, "migration.md", 3)
	for field, row := range rows {
		for _, family := range row.families {
			if families[family] == nil {
				t.Errorf("%s: there is no %s", field, family)
			}
		}
		shown, there := theirs[field]
		if yes := row.cells[len(row.cells)-1] == "yes"; yes != there {
			t.Errorf("--metrics.dcgm has %s: %t, and the page says %t", field, there, yes)
		}
		if there && !slices.Equal(row.families, shown.families) {
			t.Errorf("%s is made of %v, and the page says %v", field, shown.families, row.families)
		}
		for _, label := range regexp.MustCompile("`([a-z]+)=\"([a-z0-9]+)\"`").FindAllStringSubmatch(row.cells[4], -1) {
			if there && !strings.Contains(shown.cells[3], label[1]+`="`+label[2]+`"`) {
				t.Errorf("%s is not of %s=%q: %s", field, label[1], label[2], shown.cells[3])
			}
			if !slices.Contains(families[row.families[0]], label[1]) {
				t.Errorf("%s has no label %s", row.families[0], label[1])
			}
		}
	}
	// Of dcgm-exporter's default file, as of release 4.x.
	for _, field := range strings.Fields(`SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION PCIE_TX_THROUGHPUT
		PCIE_RX_THROUGHPUT PCIE_REPLAY_COUNTER GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL XID_ERRORS FB_FREE FB_USED
		NVLINK_BANDWIDTH_TOTAL VGPU_LICENSE_STATUS UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE`) {
		if _, there := rows["DCGM_FI_DEV_"+field]; !there {
			t.Errorf("the page says nothing of %s", field)
		}
	}
}

// field is a row of a table of fields.
type field struct {
	cells    []string
	families []string // of ours
}

// fields reads the table of fields of a document, by the fields' names.
// families are in the cell of this number.
func fields(t *testing.T, document string, cell int) map[string]field {
	t.Helper()
	_, table, _ := strings.Cut(read(t, root+"/docs/"+document), "<!-- table of fields")
	table, _, _ = strings.Cut(table, "<!-- end of fields -->")
	found := map[string]field{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		for _, name := range regexp.MustCompile("`(DCGM_[A-Z0-9_]+)`").FindAllStringSubmatch(cells[0], -1) {
			var families []string
			for _, family := range regexp.MustCompile("`(dra_[a-z_]+)").FindAllStringSubmatch(cells[cell], -1) {
				families = append(families, family[1])
			}
			found[name[1]] = field{cells: cells, families: families}
		}
	}
	if len(found) < 30 {
		t.Fatalf("%s has %d fields", document, len(found))
	}
	return found
}

// TestDocumentedNamesExist: each name in a document that looks like a family,
// a rule or a label of ours is one.
func TestDocumentedNamesExist(t *testing.T) {
	known := documented(t)
	known.Record(groups(t))
	name := regexp.MustCompile("`((?:[a-z_]+:)?dra_[a-z0-9_]+(?::[a-z0-9_]+)?)[`{\\[]")
	count := 0
	for _, file := range documents(t) {
		for _, match := range name.FindAllStringSubmatch(read(t, file), -1) {
			if strings.HasPrefix(match[1], "dra_device_ext_") {
				continue // names that drivers choose
			}
			count++
			if !isName(known, match[1]) {
				t.Errorf("%s: there is no %s", strings.TrimPrefix(file, root+"/"), match[1])
			}
		}
	}
	if count < 300 {
		t.Errorf("found %d names", count)
	}
}

// isName reports whether a name is that of a family or a rule, a label, the
// common prefix of several families with an underscore, or another name of
// this project.
func isName(known promlabels.Families, name string) bool {
	for family, labels := range known {
		if family == name || strings.HasSuffix(name, "_") && strings.HasPrefix(family, name) || slices.Contains(labels, name) {
			return true
		}
	}
	return slices.Contains([]string{
		// labels of dcgm-exporter
		"dra_claim_name", "dra_claim_namespace", "dra_driver_name", "dra_pool_name", "dra_device_name", "dra_mig_profile", "dra_mig_device_uuid", "dra_mig_",
		// deploy/autoscaling: a metric of the Prometheus adapter
		"dra_pod_utilization_upper_bound_ratio",
		// docs/plugins.md: what drivers serve and the agent does not
		"dra_device_processes", "dra_device_process_memory_bytes", "dra_device_process_utilization_ratio",
	}, name)
}

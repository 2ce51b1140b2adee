package e2e

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// devicesFile returns the path of a file of testdata for this release. Before
// 1.35 it is a copy with one slice, because devices can only consume counters
// of their own slice there.
func devicesFile(c *cluster.Cluster, name string) (string, error) {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil || c.Has(releases.CountersOfOtherSlices) {
		return path, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	type slice struct {
		Devices        []map[string]any `json:"devices,omitempty"`
		SharedCounters []map[string]any `json:"sharedCounters,omitempty"`
	}
	var file struct {
		Slices []slice `json:"slices"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return "", fmt.Errorf("parse %s: %w", path, err)
	}
	var only slice
	for _, s := range file.Slices {
		only.Devices = append(only.Devices, s.Devices...)
		only.SharedCounters = append(only.SharedCounters, s.SharedCounters...)
	}
	file.Slices = []slice{only}
	copied, err := yaml.Marshal(file)
	if err != nil {
		return "", err
	}
	path = filepath.Join(c.Dir(), name)
	return path, os.WriteFile(path, copied, 0o600)
}

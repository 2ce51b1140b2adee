package e2e

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

// firstSharedSlices is the first minor release in which a device may consume
// counters of another slice, as our drivers and dra-example-driver publish
// them.
const firstSharedSlices = 35

// devicesFile returns the path of a file of testdata for this release: before
// 1.35, a copy without the devices that are parts of others.
func devicesFile(name string) (string, error) {
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil || shared.Minor() >= firstSharedSlices {
		return path, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var file struct {
		Slices []struct {
			Devices []map[string]any `json:"devices,omitempty"`
		} `json:"slices"`
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		return "", fmt.Errorf("parse %s: %w", path, err)
	}
	var whole []map[string]any
	for _, slice := range file.Slices {
		for _, device := range slice.Devices {
			if device["consumesCounters"] == nil {
				whole = append(whole, device)
			}
		}
	}
	copied, err := yaml.Marshal(map[string]any{"slices": []any{map[string]any{"devices": whole}}})
	if err != nil {
		return "", err
	}
	path = filepath.Join(shared.Dir(), name)
	return path, os.WriteFile(path, copied, 0o600)
}

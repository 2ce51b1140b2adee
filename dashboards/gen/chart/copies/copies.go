// Package copies writes what the Helm chart copies. A chart cannot read files
// outside of its folder, and git has each dashboard and each rule once.
package copies

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/thresholds"
)

// Files returns the text of each file by its path in the chart. Dashboards and
// recording rules are as they are in the repository. Alerts have places for the
// values of their thresholds.
func Files(repository string) (map[string]string, error) {
	files := map[string]string{}
	for folder, pattern := range sources() {
		paths, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", pattern, err)
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no %s in %s", pattern, repository)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files[filepath.Join(folder, filepath.Base(path))] = string(text)
		}
	}
	alerts := filepath.Join("files", "rules", "alerts.yaml")
	rules, err := thresholds.Read(files[alerts])
	if err != nil {
		return nil, fmt.Errorf("read alerts.yaml: %w", err)
	}
	if files[alerts], err = thresholds.WithPlaces(rules); err != nil {
		return nil, fmt.Errorf("put places into alerts.yaml: %w", err)
	}
	return files, nil
}

// sources returns the patterns of what is copied, by the folder of the copies.
func sources() map[string]string {
	return map[string]string{
		filepath.Join("files", "dashboards"): "dashboards/*.json",
		filepath.Join("files", "rules"):      "alerts/*.yaml",
	}
}

// Write writes the files into a chart, and removes others from their folders. It
// leaves alone what is there already. A reader sees the old or the new text of a
// file, and others may write the same at the same time.
func Write(repository, chart string) error {
	files, err := Files(repository)
	if err != nil {
		return err
	}
	for folder := range sources() {
		if err := os.MkdirAll(filepath.Join(chart, folder), 0o755); err != nil {
			return err
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := replace(chart, path, files[path]); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	for folder := range sources() {
		if err := removeOthers(chart, folder, files); err != nil {
			return fmt.Errorf("remove a copy of nothing: %w", err)
		}
	}
	return nil
}

// replace writes a file of the chart, under another name first: beside the chart,
// so that no package has it.
func replace(chart, path, text string) error {
	target := filepath.Join(chart, path)
	if old, err := os.ReadFile(target); err == nil && string(old) == text {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(chart), ".copy-*.tmp")
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// removeOthers removes the files of a folder of the chart that are not among these.
func removeOthers(chart, folder string, files map[string]string) error {
	entries, err := os.ReadDir(filepath.Join(chart, folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(folder, entry.Name())
		if _, ok := files[path]; ok || entry.IsDir() {
			continue
		}
		if err := os.Remove(filepath.Join(chart, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

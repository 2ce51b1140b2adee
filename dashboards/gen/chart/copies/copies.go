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

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/chart/thresholds"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// setsFile says to which set each alert and recorded name belongs. A dashboard is in
// the folder of its set.
const setsFile = "files/rules/sets.yaml"

// Files returns the text of each file by its path in the chart. Dashboards and
// recording rules are as they are in the repository. Alerts have places for the
// values of their thresholds.
func Files(repository string, belongs sets.Belongs) (map[string]string, error) {
	files := map[string]string{}
	add := func(path string, source ...string) error {
		text, err := os.ReadFile(filepath.Join(append([]string{repository}, source...)...))
		files[path] = string(text)
		return err
	}
	for name, set := range belongs.Dashboards {
		if err := add("files/dashboards/"+set+"/"+name+".json", "dashboards", set, name+".json"); err != nil {
			return nil, err
		}
	}
	const alerts, recording = "files/rules/alerts.yaml", "files/rules/recording.yaml"
	if err := errors.Join(add(alerts, "alerts", "alerts.yaml"), add(recording, "alerts", "recording.yaml")); err != nil {
		return nil, err
	}
	rules, err := thresholds.Read(files[alerts])
	if err != nil {
		return nil, fmt.Errorf("read alerts.yaml: %w", err)
	}
	if files[alerts], err = thresholds.WithPlaces(rules); err != nil {
		return nil, fmt.Errorf("put places into alerts.yaml: %w", err)
	}
	text, err := yaml.Marshal(map[string]map[string]string{"alerts": belongs.Alerts, "records": belongs.Records})
	if err != nil {
		return nil, fmt.Errorf("encode sets: %w", err)
	}
	files[setsFile] = string(text)
	return files, nil
}

// Write writes the files into a chart, and removes others from their folders. It
// leaves alone what is there already. A reader sees the old or the new text of a
// file, and others may write the same at the same time.
func Write(repository, chart string, belongs sets.Belongs) error {
	files, err := Files(repository, belongs)
	if err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := replace(filepath.Join(chart, filepath.FromSlash(path)), filepath.Dir(chart), files[path]); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
	}
	if err := removeOthers(chart, files); err != nil {
		return fmt.Errorf("remove a copy of nothing: %w", err)
	}
	return nil
}

// replace writes a file of the chart, under another name first: in a folder beside the
// chart, so that no package has it.
func replace(target, beside, text string) error {
	if old, err := os.ReadFile(target); err == nil && string(old) == text {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(beside, ".copy-*.tmp")
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

// removeOthers removes the files of the chart's folder files that are not among these.
func removeOthers(chart string, files map[string]string) error {
	return fs.WalkDir(os.DirFS(chart), "files", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // others write the same at the same time
			return nil
		}
		if err != nil || entry.IsDir() {
			return err
		}
		if _, ok := files[path]; ok {
			return nil
		}
		if err := os.Remove(filepath.Join(chart, path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

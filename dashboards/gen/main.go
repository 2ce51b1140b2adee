// Command gen writes the dashboards and, with -exported, dashboards and rules for
// a Prometheus that scrapes without honorLabels. With -shared, it writes dashboards
// as grafana.com takes them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/boards"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/exported"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/sharing"
)

func main() {
	out := flag.String("out", "", "folder to write to")
	rules := flag.String("exported", "", "folder of rule files: write them and the dashboards for exported_namespace, exported_pod and exported_container")
	shared := flag.Bool("shared", false, "write dashboards in the form for sharing, and nothing else")
	flag.Parse()
	if err := run(*out, *rules, *shared); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1) //nolint:forbidigo // this is a command
	}
}

func run(out, rules string, shared bool) error {
	if out == "" {
		return errors.New("-out names no folder to write to")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	switch {
	case shared:
		return writeBoards(out, sharing.Board)
	case rules == "":
		return errors.Join(writeBoards(out, func(text []byte) ([]byte, error) { return text, nil }), writeKustomizations(out))
	default:
		return errors.Join(writeBoards(out, exported.Board), writeKustomizations(out), writeRules(out, rules))
	}
}

// writeBoards writes each dashboard to a file that is named after it, in the folder of
// its set.
func writeBoards(folder string, rewrite func([]byte) ([]byte, error)) error {
	texts := map[string][]byte{}
	for _, board := range boards.All() {
		text, err := board.JSON()
		if err != nil {
			return err
		}
		if texts[board.Name()], err = rewrite(text); err != nil {
			return fmt.Errorf("rewrite %s: %w", board.Name(), err)
		}
	}
	for _, set := range sets.All() {
		within := filepath.Join(folder, set.Name)
		if err := os.MkdirAll(within, 0o755); err != nil {
			return err
		}
		for _, name := range set.Dashboards {
			if texts[name] == nil {
				return fmt.Errorf("no code makes the dashboard %s of the set %s", name, set.Name)
			}
			if err := os.WriteFile(filepath.Join(within, name+".json"), texts[name], 0o644); err != nil {
				return err
			}
			delete(texts, name)
		}
	}
	if len(texts) > 0 {
		return fmt.Errorf("no set has the dashboards %v", slices.Sorted(maps.Keys(texts)))
	}
	return nil
}

// writeKustomizations writes for each set what makes ConfigMaps of its dashboards.
func writeKustomizations(folder string) error {
	for _, set := range sets.All() {
		if err := os.WriteFile(filepath.Join(folder, set.Name, "kustomization.yaml"), set.Kustomization(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func writeRules(folder, from string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.yaml"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there are no rule files in %s", from)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if text, err = exported.Rules(text); err != nil {
			return fmt.Errorf("rewrite %s: %w", file, err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

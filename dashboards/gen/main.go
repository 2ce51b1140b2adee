// Command gen writes the dashboards and, with -exported, dashboards and rules for
// a Prometheus that scrapes without honorLabels.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/boards"
	"github.com/dra-exporter/dra-exporter/dashboards/gen/exported"
)

func main() {
	out := flag.String("out", "", "folder to write to")
	rules := flag.String("exported", "", "folder of rule files: write them and the dashboards for exported_namespace, exported_pod and exported_container")
	flag.Parse()
	if err := run(*out, *rules); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1) //nolint:forbidigo // this is a command
	}
}

func run(out, rules string) error {
	if out == "" {
		return errors.New("-out names no folder to write to")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if rules == "" {
		return writeBoards(out, func(text []byte) ([]byte, error) { return text, nil })
	}
	if err := writeBoards(out, exported.Board); err != nil {
		return err
	}
	return writeRules(out, rules)
}

// writeBoards writes each dashboard to a file that is named after it.
func writeBoards(folder string, rewrite func([]byte) ([]byte, error)) error {
	for _, board := range boards.All() {
		text, err := board.JSON()
		if err != nil {
			return err
		}
		if text, err = rewrite(text); err != nil {
			return fmt.Errorf("rewrite %s: %w", board.File(), err)
		}
		if err := os.WriteFile(filepath.Join(folder, board.File()), text, 0o644); err != nil {
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

package main

import (
	"context"
	_ "embed" // for the scripts
	"fmt"
	"io"
	"maps"
	"slices"
)

// The scripts get completions from the program itself, so they fit each version
// of it.
var (
	//go:embed completion/bash
	completionBash string
	//go:embed completion/zsh
	completionZsh string
	//go:embed completion/fish
	completionFish string
)

// addCompletion adds the subcommand that makes shells complete the others.
func addCompletion(c *commands, stdout io.Writer) {
	command := c.app.Command("completion", "Print a shell completion script.").HelpLong(`  source <(dra-exporter completion bash)
  dra-exporter completion fish | source`)
	scripts := map[string]string{"bash": completionBash, "zsh": completionZsh, "fish": completionFish}
	shells := slices.Sorted(maps.Keys(scripts))
	shell := command.Arg("SHELL", "bash, zsh or fish.").Required().HintOptions(shells...).Enum(shells...)
	c.byName[command.FullCommand()] = func(context.Context) error {
		if _, err := io.WriteString(stdout, scripts[*shell]); err != nil {
			return fmt.Errorf("write the script: %w", err)
		}
		return nil
	}
}

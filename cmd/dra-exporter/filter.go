package main

import (
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/words"

	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/self"
	"github.com/dra-exporter/dra-exporter/internal/dcgmnames"
	"github.com/dra-exporter/dra-exporter/internal/role"
)

// filterFlags select the exported families. The zero value selects everything.
type filterFlags struct {
	level            string
	include, exclude []string
}

func (f *filterFlags) add(command flagSet) {
	families := " families whose whole name matches this regular expression, or all of one of these groups: " + strings.Join(metric.Groups(), ", ") + ". "
	command.Flag("metrics.level", "How much is exported: lean is what the rules, alerts and dashboards of the set core use, full is everything; see docs/metrics.md.").
		Default(metric.LevelDefault.String()).HintOptions(metric.Levels()...).EnumVar(&f.level, metric.Levels()...)
	command.Flag("metrics.include", "Export, in addition to the level,"+families+"Repeatable.").PlaceHolder("REGEX").StringsVar(&f.include)
	command.Flag("metrics.exclude", "Do not export, even if included,"+families+"Repeatable.").PlaceHolder("REGEX").StringsVar(&f.exclude)
}

// isFull reports whether the level is the one with everything.
func (f *filterFlags) isFull() bool { return f.level == "" || f.level == metric.LevelFull.String() }

// filter returns the filter of a role that has the families. The error names the
// flag.
func (f *filterFlags) filter(families []string) (*metric.Filter, error) {
	if f.level == "" {
		return nil, nil
	}
	level, err := metric.ParseLevel(f.level)
	if err != nil {
		return nil, usagef("--metrics.level: %w", err)
	}
	include, err := patterns("--metrics.include", f.include, families)
	if err != nil {
		return nil, err
	}
	exclude, err := patterns("--metrics.exclude", f.exclude, families)
	if err != nil {
		return nil, err
	}
	return metric.NewFilter(level, include, exclude), nil
}

func patterns(flag string, texts, families []string) ([]metric.Pattern, error) {
	var all []metric.Pattern
	for _, text := range texts {
		pattern, err := metric.NewPattern(text, families)
		if err != nil {
			return nil, usagef("%s=%s: %w", flag, text, err)
		}
		all = append(all, pattern)
	}
	return all, nil
}

// nodeFamilies returns the names of the families that the node role can export.
func nodeFamilies() []string {
	return append(familyNames(node.Families(), self.NewReload().All(), dcgmnames.Families()), liveFamilies()...)
}

// clusterFamilies returns the names of the families that the cluster role can
// export.
func clusterFamilies() []string {
	return append(familyNames(cluster.Families()), liveFamilies()...)
}

// liveFamilies returns those of both roles that are in no snapshot.
func liveFamilies() []string {
	names := familyNames([]*metric.Family{self.ReadDuration(), self.AccessReviews()}, self.NewSteps().All(), self.NewPushFamilies().All())
	return append(names, role.ProcessFamilies()...)
}

func familyNames(families ...[]*metric.Family) []string {
	names := words.Names(slices.Concat(families...), func(family *metric.Family) string { return family.Name })
	return names
}

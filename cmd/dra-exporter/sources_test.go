package main

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// A missing source is silent only if no flag names it, its library or its host
// engine.
func TestOptionalSources(t *testing.T) {
	for name, c := range map[string]struct {
		selected       []string
		flags          sourceFlags
		opened, silent string
	}{
		"nothing is named":            {[]string{"auto"}, sourceFlags{}, "nvml amdgpu intel rdma plugin", "amdgpu intel nvml plugin rdma"},
		"a source":                    {[]string{"auto", "nvml"}, sourceFlags{}, "nvml amdgpu intel rdma plugin", "amdgpu intel plugin rdma"},
		"a source alone":              {[]string{"dcgm"}, sourceFlags{}, "dcgm", ""},
		"a library":                   {[]string{"auto"}, sourceFlags{nvmlLibrary: "/l.so"}, "nvml amdgpu intel rdma plugin", "amdgpu intel plugin rdma"},
		"a host engine":               {[]string{"auto"}, sourceFlags{hostEngine: "engine:5555"}, "nvml dcgm amdgpu intel rdma plugin", "amdgpu intel nvml plugin rdma"},
		"a library of what is not in": {[]string{"auto"}, sourceFlags{dcgmLibrary: "/l.so"}, "nvml amdgpu intel rdma plugin", "amdgpu intel nvml plugin rdma"},
	} {
		c.flags.sysfs, c.flags.clock, c.flags.log = t.TempDir(), clock.System(), slog.New(slog.DiscardHandler)
		c.flags.interval, c.flags.slow = time.Second, 30*time.Second
		sources, optional, err := openSources(c.selected, c.flags)
		if err != nil {
			t.Fatal(err)
		}
		var opened []string
		for _, s := range sources {
			opened = append(opened, s.Name())
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		maps.DeleteFunc(optional, func(_ string, silent bool) bool { return !silent })
		silent := strings.Join(slices.Sorted(maps.Keys(optional)), " ")
		if got := strings.Join(opened, " "); got != c.opened || silent != c.silent {
			t.Errorf("%s: opened %q, of which %q may be missing; want %q and %q", name, got, silent, c.opened, c.silent)
		}
	}
}

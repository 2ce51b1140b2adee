package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/common/version"

	"github.com/dra-exporter/dra-exporter/collector/self"
)

// buildVersion is what was linked in, else what the Go command noted.
func buildVersion() self.Version {
	v := self.Version{Version: version.Version, Revision: version.Revision, GoVersion: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		v.Version = cmp.Or(v.Version, info.Main.Version)
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Revision = cmp.Or(v.Revision, setting.Value)
			}
		}
	}
	v.Version, v.Revision = cmp.Or(v.Version, "unknown"), cmp.Or(v.Revision, "unknown")
	return v
}

func versionText() string {
	v := buildVersion()
	return fmt.Sprintf("dra-exporter %s (revision %s, %s)", v.Version, v.Revision, v.GoVersion)
}

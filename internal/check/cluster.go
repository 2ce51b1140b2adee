package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/upstream"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// ClusterFacts is the facts that were read of a cluster.
type ClusterFacts struct {
	Minor      int // of the API server's version 1.x; 0: unknown
	Supply     *dra.Supply
	SliceRead  bool // slices were listed, so that Supply.Pools are all
	ClassRead  bool
	RuleServed bool // DeviceTaintRules are served
	Instances  int  // pods of the cluster role that run; -1: unknown

	Bugs       []upstream.Finding
	BugsUnread []string // what could not be read for them, by resource
}

const (
	clusterPage = "docs/check.md#cluster"
	// promptMinor is the first minor version of Kubernetes in which schedulers
	// write the time of an allocation, and kubelets report at once that a sandbox
	// is ready.
	promptMinor = 36
)

// ClusterFindings reports on what is published and what the API server serves.
func ClusterFindings(c ClusterFacts) []Finding {
	section := area{"cluster", clusterPage}
	findings := c.drivers(section)
	findings = append(findings, c.classes(section)...)
	if c.RuleServed {
		findings = append(findings, section.ok("taint rules", "DeviceTaintRule is served"))
	} else {
		findings = append(findings, section.skipped("taint rules", "DeviceTaintRule is not served or cannot be read: only taints of slices are known"))
	}
	switch {
	case c.Minor >= promptMinor:
		findings = append(findings, section.ok("times", "the scheduler writes the time of the allocation, the kubelet the time when the sandbox is ready"))
	case c.Minor > 0:
		findings = append(findings, section.skipped("times", "before Kubernetes 1.%d some phases of claims cannot be distinguished (docs/pending.md)", promptMinor))
	}
	switch {
	case c.Instances > 1:
		findings = append(findings, section.failure("Run only one: `kubectl get pods -A -l app.kubernetes.io/name=dra-exporter,app.kubernetes.io/component=cluster` shows them. A second Helm release needs cluster.enabled=false.",
			"instances", "%d pods of the cluster role run: each counts every pending claim", c.Instances))
	case c.Instances == 0:
		findings = append(findings, section.skipped("instances", "no pod with the labels of the cluster role runs"))
	case c.Instances == 1:
		findings = append(findings, section.ok("instances", "one pod of the cluster role runs"))
	}
	return append(findings, c.bugs()...)
}

// published is one driver's supply.
type published struct {
	pools, devices int
	nodes          map[string]bool
	incomplete     []string
}

func (c ClusterFacts) drivers(section area) []Finding {
	if !c.SliceRead {
		return []Finding{section.skipped("drivers", "are unknown: ResourceSlices cannot be read")}
	}
	drivers := map[string]*published{}
	for _, pool := range c.Supply.Pools {
		d := drivers[pool.Driver]
		if d == nil {
			d = &published{nodes: map[string]bool{}}
			drivers[pool.Driver] = d
		}
		d.pools++
		for _, n := range pool.Devices {
			d.devices += n
		}
		if pool.Node != "" {
			d.nodes[pool.Node] = true
		}
		if !pool.Complete {
			d.incomplete = append(d.incomplete, pool.Pool)
		}
	}
	if len(drivers) == 0 {
		return []Finding{section.warning("Install a DRA driver: see the driver's documentation, and check `kubectl get resourceslices`.", "drivers", "no driver publishes a device: every claim stays pending")}
	}
	var findings []Finding
	for _, name := range slices.Sorted(maps.Keys(drivers)) {
		d := drivers[name]
		text := fmt.Sprintf("%s in %s", words.Count(d.devices, "device", "devices"), words.Count(d.pools, "pool", "pools"))
		if len(d.nodes) > 0 {
			text += " on " + words.Count(len(d.nodes), "node", "nodes")
		}
		if len(d.incomplete) == 0 {
			findings = append(findings, section.ok(name, "%s", text))
			continue
		}
		slices.Sort(d.incomplete)
		findings = append(findings, byRunbook("DRAPoolIncomplete", section.warning("Check the driver's log on these nodes: it has not published all slices, and no device of the pool is allocated until then.",
			name, "%s, of which incomplete: %s", text, named(d.incomplete))))
	}
	return findings
}

func (c ClusterFacts) classes(section area) []Finding {
	if !c.ClassRead {
		return []Finding{section.skipped("device classes", "are unknown: DeviceClasses cannot be read")}
	}
	if len(c.Supply.Classes) == 0 {
		return []Finding{section.warning("A driver's installation usually creates them: check `kubectl get deviceclasses`.", "device classes", "there is none, so no claim can request a device")}
	}
	var findings []Finding
	var empty []string
	for _, class := range c.Supply.Classes {
		devices := 0
		for _, n := range class.Devices {
			devices += n
		}
		switch {
		case class.Error != "":
			findings = append(findings, section.warning("Correct the class's CEL selector: every claim of the class stays pending.", class.Class, "its selector fails: %s", strings.TrimSpace(class.Error)))
		case class.Counted && devices == 0:
			empty = append(empty, class.Class)
		}
	}
	findings = append([]Finding{section.ok("device classes", "%d", len(c.Supply.Classes))}, findings...)
	if len(empty) > 0 && c.SliceRead {
		findings = append(findings, section.skipped("device classes", "without any device: %s", named(empty)))
	}
	return findings
}

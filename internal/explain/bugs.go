package explain

import (
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/upstream"
	"github.com/dra-exporter/dra-exporter/internal/clusterread"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// knownBugs returns the known bugs of which the report's claims or pods have a sign. A
// report about a claim leaves out those of its pods.
func knownBugs(f *clusterread.Facts, report *Report) []KnownBug {
	var claims []dra.ClaimRef
	for i := range report.Claims {
		claims = append(claims, dra.ClaimRef{Namespace: report.Namespace, Name: report.Claims[i].Name})
	}
	var pods []dra.PodRef
	for i := range report.Pods {
		if report.Kind != clusterread.KindClaim {
			pods = append(pods, dra.PodRef{Namespace: report.Namespace, Name: report.Pods[i].Name})
		}
	}
	var bugs []KnownBug
	for _, finding := range upstream.Find(clusterObjects(f, report.Namespace)) {
		if finding.Concerns(claims, pods) {
			bugs = append(bugs, KnownBug{
				Bug: finding.Bug.Name(), Link: finding.Bug.Link(), Certain: finding.Certain,
				Text: words.Capital(finding.Text) + ". " + finding.Explanation() + ".", Remedy: finding.Bug.Remedy,
			})
		}
	}
	return bugs
}

// clusterObjects returns what has been read, for signs that concern objects of the namespace.
func clusterObjects(f *clusterread.Facts, namespace string) *upstream.ClusterObjects {
	return &upstream.ClusterObjects{
		Now: f.Now, Server: f.Server, Supply: f.Supply,
		Claims: f.Objects.Claims, Pods: f.Objects.Pods, Nodes: f.Objects.Nodes, Warnings: f.Objects.Warnings,
		PodsKnown: f.Gaps.See(clusterread.SourcePods, namespace),
	}
}

// bugsText describes the known bugs.
func bugsText(p *printer, r *Report) {
	if len(r.Bugs) == 0 {
		return
	}
	p.heading("Known bugs:")
	for _, bug := range r.Bugs {
		p.item(2, "-", bug.Text+" "+bug.Remedy)
		p.paragraph(4, bug.Link)
	}
}

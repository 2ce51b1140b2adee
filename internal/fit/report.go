package fit

import (
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/headroom"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

const apiVersion = "v1"

// Report is how many pods could run, and what keeps more from running. Its fields are a
// stable JSON document, described in docs/capacity.md.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`

	Claims    []string `json:"claims"`    // what each pod requests, in words
	Requested int      `json:"requested"` // pods
	Fits      bool     `json:"fits"`      // all of them could run

	Pods  int    `json:"pods"`  // that could run, whether requested or not
	More  bool   `json:"more"`  // there may be more
	Exact bool   `json:"exact"` // false: something is not known or not considered, and there may be fewer
	Nodes []Node `json:"nodes"` // where, those with most pods first

	Obstacles []Obstacle            `json:"obstacles"`      // that keep pods from nodes with devices for them
	Next      *clusterread.Shortage `json:"next,omitempty"` // why one pod more would be pending; absent if only obstacles keep it

	NotConsidered []string         `json:"notConsidered,omitempty"`
	NotRead       clusterread.Gaps `json:"notRead"`
}

// Node is a node on which so many pods could run.
type Node struct {
	Node string `json:"node"`
	Pods int    `json:"pods"`
}

// Obstacle keeps pods from nodes that have devices for them.
type Obstacle struct {
	Kind   string   `json:"kind"`
	Detail string   `json:"detail,omitempty"`
	Nodes  []string `json:"nodes"`
	Pods   int      `json:"pods"` // that could run besides, without it
}

// The kinds of obstacles.
const (
	ObstacleCordoned  = "cordoned"
	ObstacleNotReady  = "not_ready"
	ObstacleTaint     = "taint"
	ObstacleAffinity  = "affinity"
	ObstacleAllocated = "allocated" // a claim of the pod is allocated elsewhere
	ObstaclePods      = "pods"
	ObstacleCPU       = "cpu"
	ObstacleMemory    = "memory"

	ObstacleResource   = "resource"    // too little is left of another resource
	ObstacleNoResource = "no_resource" // the node does not offer it
	ObstacleAbsent     = "absent"      // slices name a node that does not exist
	ObstacleNoNodes    = "no_nodes"    // the cluster has none
	ObstacleReserved   = "reserved"    // a claim of the pod is reserved for as many pods as it can be

	ObstacleSeveral = "several"
)

// nodesBlock reports whether obstacles alone keep the next pod: there are devices for
// it.
func (r *Report) nodesBlock() bool { return len(r.Obstacles) > 0 }

// IsKnown reports whether Fits is certain.
func (r *Report) IsKnown() bool {
	if r.Fits {
		return r.Exact
	}
	return !r.More
}

// listClaims describes what each pod requests.
func listClaims(p *pod) []string {
	all := []string{}
	for _, claim := range p.ownOn(nil) {
		all = append(all, claim.PodClaim+": "+headroom.Describe(claim.Spec))
	}
	for _, claim := range p.shared {
		all = append(all, claim.PodClaim+": "+headroom.Describe(claim.Spec)+", shared by all pods")
	}
	if n := len(p.allocated); n > 0 {
		all = append(all, words.Count(n, "claim that is allocated", "claims that are allocated"))
	}
	return all
}

// mostNodes is how many nodes a text lists.
const mostNodes = 10

// maxLine bounds a line, in characters: names in a manifest have any length.
const maxLine = 4000

// Text renders the report for a person.
func (r *Report) Text() string {
	var text strings.Builder
	line := func(format string, values ...any) {
		line := terminal.Printable(fmt.Sprintf(format, values...))
		if letters := []rune(line); len(letters) > maxLine {
			line = string(letters[:maxLine]) + "…"
		}
		text.WriteString(line + "\n")
	}
	fits, most := "does not fit", fmt.Sprint(r.Pods)
	switch {
	case !r.IsKnown():
		fits = "may fit"
	case r.Fits:
		fits = "fits"
	}
	switch {
	case r.More && !r.Exact:
		most = fmt.Sprintf("about %d", r.Pods)
	case r.More:
		most = fmt.Sprintf("at least %d", r.Pods)
	case !r.Exact:
		most = fmt.Sprintf("at most %d", r.Pods)
	}
	line("%s %s/%s %s: %s of %s could run now, %s in all", r.Kind, r.Namespace, r.Name, fits,
		fmt.Sprint(min(r.Pods, r.Requested)), words.Count(r.Requested, "pod", "pods"), most)
	if len(r.Claims)+len(r.Nodes)+len(r.NotConsidered)+len(r.NotRead) > 0 {
		line("")
	}
	for i, claim := range r.Claims {
		line("%s%s", label("claims", i), claim)
	}
	var nodes []string
	for _, n := range r.Nodes[:min(len(r.Nodes), mostNodes)] {
		nodes = append(nodes, fmt.Sprintf("%s: %d", n.Node, n.Pods))
	}
	if more := len(r.Nodes) - mostNodes; more > 0 {
		nodes = append(nodes, fmt.Sprintf("and %d more", more))
	}
	if len(nodes) > 0 {
		line("%s%s", label("pods", 0), strings.Join(nodes, ", "))
	}
	for i, text := range r.NotConsidered {
		line("%s%s", label("not considered", i), text)
	}
	for i, gap := range r.NotRead {
		line("%s%s: %s", label("not read", i), gap.Source, gap.Consequence)
	}
	r.writeNext(line)
	return text.String()
}

func label(name string, at int) string {
	if at > 0 {
		name = ""
	}
	return fmt.Sprintf("  %-15s", name)
}

// writeNext writes what keeps more pods from running, and what would help.
func (r *Report) writeNext(line func(format string, values ...any)) {
	if len(r.Obstacles) == 0 && r.Next == nil {
		return
	}
	line("")
	line("One pod more would be pending:")
	for _, o := range r.Obstacles {
		line("  - %s", o.text(len(r.Claims) > 0))
	}
	if r.Next != nil {
		line("%s%s: %s", label("reason", 0), r.Next.Reason, r.Next.Meaning)
		for _, fact := range r.Next.Evidence {
			line("%s%s", label(fact.Label, 0), fact.Text)
		}
	}
	help := r.Help()
	if len(help) == 0 {
		return
	}
	line("")
	line("Would help:")
	for _, advice := range help {
		line("  - %s", advice)
	}
}

// text says what an obstacle is, to pods with claims or without.
func (o *Obstacle) text(claims bool) string {
	nodes := words.List(o.Nodes, mostNodes)
	devices := fmt.Sprintf("devices for %s", words.Count(o.Pods, "pod", "pods"))
	if !claims {
		devices = fmt.Sprintf("room for %s", words.Count(o.Pods, "pod", "pods"))
	}
	switch o.Kind {
	case ObstacleCordoned:
		return fmt.Sprintf("%s cordoned, with %s: %s", are(o.Nodes), devices, nodes)
	case ObstacleNotReady:
		return fmt.Sprintf("%s not ready, with %s: %s", are(o.Nodes), devices, nodes)
	case ObstacleTaint:
		return fmt.Sprintf("%s with %s have the taint %s, which the pod does not tolerate: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, o.Detail, nodes)
	case ObstacleAffinity:
		return fmt.Sprintf("%s with %s do not match the pod's node selector or affinity: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, nodes)
	case ObstacleAllocated:
		return fmt.Sprintf("%s with %s cannot use another claim of the pod, which is allocated elsewhere: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, nodes)
	case ObstaclePods:
		return fmt.Sprintf("as many pods as allowed run on %s with %s: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, nodes)
	case ObstacleCPU:
		return fmt.Sprintf("too little CPU is left on %s with %s: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, nodes)
	case ObstacleMemory:
		return fmt.Sprintf("too little memory is left on %s with %s: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, nodes)
	case ObstacleResource:
		return fmt.Sprintf("too little %s is left on %s: %s", o.Detail, words.Count(len(o.Nodes), "node", "nodes"), nodes)
	case ObstacleNoResource:
		return fmt.Sprintf("%s without any %s: %s", words.Count(len(o.Nodes), "node", "nodes"), o.Detail, nodes)
	case ObstacleAbsent:
		return fmt.Sprintf("ResourceSlices name %s that do not exist: %s", words.Count(len(o.Nodes), "node", "nodes"), nodes)
	case ObstacleNoNodes:
		return "the cluster has no nodes"
	case ObstacleReserved:
		return fmt.Sprintf("a claim that all pods share is reserved for %d pods, and for no more than %d in all", maxReserved-o.Pods, maxReserved)
	default:
		return fmt.Sprintf("%s with %s: %s: %s", words.Count(len(o.Nodes), "node", "nodes"), devices, o.Detail, nodes)
	}
}

// Help returns what would let more pods run, the most useful first.
func (r *Report) Help() []string {
	var help []string
	for _, o := range r.Obstacles {
		more := words.Count(o.Pods, "pod more", "pods more")
		switch o.Kind {
		case ObstacleCordoned:
			help = append(help, fmt.Sprintf("`kubectl uncordon %s`: %s", strings.Join(o.Nodes[:min(len(o.Nodes), mostNodes)], " "), more))
		case ObstacleNotReady:
			help = append(help, fmt.Sprintf("repair %s: %s", words.List(o.Nodes, mostNodes), more))
		case ObstacleTaint:
			help = append(help, fmt.Sprintf("remove or tolerate the taint %s: %s", o.Detail, more))
		case ObstacleAffinity:
			help = append(help, fmt.Sprintf("widen the node selector or affinity: %s", more))
		case ObstaclePods:
			help = append(help, fmt.Sprintf("move pods away from %s, or allow more there: %s", words.List(o.Nodes, mostNodes), more))
		case ObstacleCPU:
			help = append(help, fmt.Sprintf("request less CPU, or free CPU on %s: up to %s", words.List(o.Nodes, mostNodes), more))
		case ObstacleMemory:
			help = append(help, fmt.Sprintf("request less memory, or free memory on %s: up to %s", words.List(o.Nodes, mostNodes), more))
		case ObstacleResource:
			help = append(help, fmt.Sprintf("request less %s, or free some on %s", o.Detail, words.List(o.Nodes, mostNodes)))
		case ObstacleNoResource:
			help = append(help, fmt.Sprintf("let the device plugin or the driver of %s run on %s", o.Detail, words.List(o.Nodes, mostNodes)))
		case ObstacleAbsent:
			help = append(help, fmt.Sprintf("delete the ResourceSlices of %s", words.List(o.Nodes, mostNodes)))
		case ObstacleNoNodes:
			help = append(help, "add nodes")
		case ObstacleReserved:
			help = append(help, "use a second claim")
		case ObstacleSeveral:
			help = append(help, fmt.Sprintf("change all of this on %s: %s: %s", words.List(o.Nodes, mostNodes), o.Detail, more))
		case ObstacleAllocated:
			help = append(help, "delete the claim that is allocated elsewhere, if nothing else uses it")
		}
	}
	if r.Next != nil {
		help = append(help, r.Next.Remedies...)
	}
	return help
}

// are begins a sentence about nodes.
func are(nodes []string) string {
	if len(nodes) == 1 {
		return "1 node is"
	}
	return fmt.Sprintf("%d nodes are", len(nodes))
}

package fit

import (
	"fmt"
	"strconv"
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

// IsKnown reports whether Fits is certain.
func (r *Report) IsKnown() bool {
	if r.Fits {
		return r.Exact
	}
	return !r.More
}

// listClaims describes what each pod requests.
func listClaims(p *pod) []string {
	all := words.Names(p.claimsOn(nil), func(claim clusterread.SupposedClaim) string {
		return claim.PodClaim + ": " + headroom.Describe(claim.Spec)
	})
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
	nodes := words.Names(r.Nodes[:min(len(r.Nodes), mostNodes)], func(n Node) string { return fmt.Sprintf("%s: %d", n.Node, n.Pods) })
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
		line("  - %s", o.fill(obstacleKinds()[o.Kind].text, len(r.Claims) > 0))
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

// obstacleWords describes a kind of obstacle. The words in braces stand for parts of the
// obstacle: detail; many, how many nodes; are, the same as a subject; nodes, their names;
// devices, what the nodes have for pods; more, how many pods more could run.
type obstacleWords struct{ text, help string }

func obstacleKinds() map[string]obstacleWords {
	return map[string]obstacleWords{
		ObstacleCordoned:   {"{are} cordoned, with {devices}: {nodes}", "`kubectl uncordon {names}`: {more}"},
		ObstacleNotReady:   {"{are} not ready, with {devices}: {nodes}", "repair {nodes}: {more}"},
		ObstacleTaint:      {"{many} with {devices} have the taint {detail}, which the pod does not tolerate: {nodes}", "remove or tolerate the taint {detail}: {more}"},
		ObstacleAffinity:   {"{many} with {devices} do not match the pod's node selector or affinity: {nodes}", "widen the node selector or affinity: {more}"},
		ObstacleAllocated:  {"{many} with {devices} cannot use another claim of the pod, which is allocated elsewhere: {nodes}", "delete the claim that is allocated elsewhere, if nothing else uses it"},
		ObstaclePods:       {"as many pods as allowed run on {many} with {devices}: {nodes}", "move pods away from {nodes}, or allow more there: {more}"},
		ObstacleCPU:        {"too little CPU is left on {many} with {devices}: {nodes}", "request less CPU, or free CPU on {nodes}: up to {more}"},
		ObstacleMemory:     {"too little memory is left on {many} with {devices}: {nodes}", "request less memory, or free memory on {nodes}: up to {more}"},
		ObstacleResource:   {"too little {detail} is left on {many}: {nodes}", "request less {detail}, or free some on {nodes}"},
		ObstacleNoResource: {"{many} without any {detail}: {nodes}", "let the device plugin or the driver of {detail} run on {nodes}"},
		ObstacleAbsent:     {"ResourceSlices name {many} that do not exist: {nodes}", "delete the ResourceSlices of {nodes}"},
		ObstacleNoNodes:    {"the cluster has no nodes", "add nodes"},
		ObstacleReserved:   {"a claim that all pods share is reserved for {reserved} pods, and for no more than {most} in all", "use a second claim"},
		ObstacleSeveral:    {"{many} with {devices}: {detail}: {nodes}", "change all of this on {nodes}: {detail}: {more}"},
	}
}

// fill fills in a text of obstacleKinds, for pods with claims or without.
func (o *Obstacle) fill(text string, claims bool) string {
	devices := "devices for "
	if !claims {
		devices = "room for "
	}
	many := words.Count(len(o.Nodes), "node", "nodes")
	return strings.NewReplacer(
		"{detail}", o.Detail, "{many}", many, "{are}", many+" "+words.Plural(len(o.Nodes), "is", "are"),
		"{nodes}", words.List(o.Nodes, mostNodes), "{names}", strings.Join(o.Nodes[:min(len(o.Nodes), mostNodes)], " "),
		"{devices}", devices+words.Count(o.Pods, "pod", "pods"), "{more}", words.Count(o.Pods, "pod more", "pods more"),
		"{reserved}", strconv.Itoa(maxReserved-o.Pods), "{most}", strconv.Itoa(maxReserved),
	).Replace(text)
}

// Help returns what would let more pods run, the most useful first.
func (r *Report) Help() []string {
	help := words.Names(r.Obstacles, func(o Obstacle) string { return o.fill(obstacleKinds()[o.Kind].help, true) })
	if r.Next != nil {
		help = append(help, r.Next.Remedies...)
	}
	return help
}

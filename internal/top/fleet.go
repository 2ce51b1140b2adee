package top

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Agent is an exporter and the way to it: its own address, or a path of an API
// server that leads to it.
type Agent struct {
	Name string   // for people
	Node string   // that it runs on, where that is known beforehand
	Base *url.URL // what the paths of its API are under

	Err error // why it is not read; nil if it is
}

// AgentList is the exporters.
type AgentList struct {
	Agents  []Agent
	Cluster *Agent // the cluster role; nil: there is none
	Err     error  // why it is unknown whether there is one
}

// Reply is an agent's answer.
type Reply struct {
	Agent  Agent
	Answer AgentReport
	Err    error
}

// FleetChange is a change to a fleet. Changes are applied one at a time.
type FleetChange func(*Fleet)

// change applies the reply.
func (r Reply) change() FleetChange { return func(f *Fleet) { f.Set(r) } }

// Fleet is the last answer of each agent. It is not safe for concurrent use.
type Fleet struct {
	agents  map[string]*agentState // by the agent's name
	pending *PendingSummary
	cluster error // why the cluster role did not answer
	lost    error // why the present agents are unknown
}

// agentState is the last answer of an agent.
type agentState struct {
	node   string
	answer *AgentReport // nil before the first, and after a failure
	err    error
}

// NewFleet returns a fleet without agents.
func NewFleet() *Fleet { return &Fleet{agents: map[string]*agentState{}} }

// ErrNoAgents means that no pod is a node agent's.
var ErrNoAgents = errors.New("no node agent found")

// Expect sets the agents; answers of others are removed.
func (f *Fleet) Expect(agents []Agent) {
	expected := make(map[string]*agentState, len(agents))
	for _, agent := range agents {
		expected[agent.Name] = &agentState{node: agent.Node}
		if known, ok := f.agents[agent.Name]; ok {
			expected[agent.Name] = known
		}
	}
	f.agents, f.lost = expected, nil
}

// Set applies an agent's answer. Agents that are not expected are ignored: they
// were removed during the request.
func (f *Fleet) Set(reply Reply) {
	agent, ok := f.agents[reply.Agent.Name]
	if !ok {
		return
	}
	agent.err, agent.answer = reply.Err, nil
	if reply.Err == nil {
		agent.answer = &reply.Answer
		agent.node = cmp.Or(reply.Answer.Node, agent.node)
	}
}

// SetPending applies what the cluster role answered.
func (f *Fleet) SetPending(pending *PendingSummary, err error) { f.pending, f.cluster = pending, err }

// SetListError applies that the agents could not be listed; known ones are kept.
func (f *Fleet) SetListError(err error) { f.lost = err }

// Asked returns how many agents have answered or failed, and how many there
// are.
func (f *Fleet) Asked() (asked, all int) {
	for _, agent := range f.agents {
		if agent.err != nil || agent.answer != nil {
			asked++
		}
	}
	return asked, len(f.agents)
}

// Failure returns why no agent has answered: the reason of the first.
func (f *Fleet) Failure() error {
	first := ""
	for name, agent := range f.agents {
		if agent.err != nil && (first == "" || name < first) {
			first = name
		}
	}
	if first == "" {
		return ErrNoAgents
	}
	return fmt.Errorf("no agent has answered: %s: %w", first, f.agents[first].err)
}

// Reading collects the answers about the wanted nodes.
func (f *Fleet) Reading(at time.Time, wanted Wanted) FleetState {
	reading := FleetState{At: at, Agents: len(f.agents), Pending: f.pending, Devices: &page.DeviceCount{}, Wanted: wanted, Silent: slices.Clone(wanted.Nodes)}
	if f.cluster != nil {
		reading.PendingError = shortened(f.cluster.Error())
	}
	if f.lost != nil {
		reading.ListError = shortened(f.lost.Error())
	}
	for name, agent := range f.agents {
		reading.addNode(name, agent)
		switch {
		case agent.err != nil:
			reading.Failures = append(reading.Failures, AgentFailure{name, agent.node, shortened(agent.err.Error())})
		case agent.answer != nil:
			reading.Answered++
			reading.take(name, agent.answer, wanted)
			reading.Silent = slices.DeleteFunc(reading.Silent, func(node string) bool { return node == agent.node })
		}
	}
	byName := func(a, b AgentFailure) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Agent, b.Agent)) }
	if reading.Answered == 0 {
		reading.Devices = nil
	}
	slices.SortFunc(reading.Failures, byName)
	slices.SortFunc(reading.Stale, byName)
	return reading
}

// FleetState is the state of the fleet at one time.
type FleetState struct {
	At           time.Time
	Agents       int // that there are
	Answered     int // of them
	Failures     []AgentFailure
	Stale        []AgentFailure  // agents whose readings are old: they are shown
	Pending      *PendingSummary // nil if no cluster role was read or has answered
	PendingError string          // why the cluster role has not
	ListError    string          // why the present agents are unknown
	Rows         []*Row          // immutable
	All          []*Device       // each device of the agents that list them; immutable
	Unlisted     int             // agents that do not
	Nodes        []NodeState

	// Devices are those of the nodes that are wanted; nil where an agent does
	// not say how many it has.
	Devices *page.DeviceCount

	Wanted Wanted   // what the rows were chosen by
	Silent []string // selected nodes without an answer
}

// staleAfter is when readings are too old to pass over it: agents take them
// every second.
const staleAfter = time.Minute

// NodeState is a node by its agent.
type NodeState struct {
	Node, Agent string // the node is empty until the agent has answered, unless it is known beforehand
	State       string // ok, or why its devices are unknown or old
	Failed      bool   // its devices are unknown
	Devices     *page.DeviceCount
}

func (r *FleetState) addNode(name string, agent *agentState) {
	state := NodeState{Node: agent.node, Agent: name, State: "ok"}
	switch {
	case agent.err != nil:
		state.State, state.Failed = shortened(agent.err.Error()), true
	case agent.answer == nil:
		state.State, state.Failed = "no answer yet", true
	default:
		state.Devices = agent.answer.Devices
		if age := agent.answer.age(); age > staleAfter {
			state.State = staleText(age)
		}
	}
	if agent.answer == nil || r.Wanted.Node(agent.node) {
		r.Nodes = append(r.Nodes, state)
	}
}

// age is how old the readings are; 0 if that is unknown.
func (a *AgentReport) age() time.Duration {
	if a.SampledAt.IsZero() {
		return 0
	}
	return a.At.Sub(a.SampledAt)
}

func staleText(age time.Duration) string { return "its readings are " + words.Age(age) + " old" }

func (r *FleetState) take(name string, answer *AgentReport, wanted Wanted) {
	if wanted.Node(answer.Node) {
		r.addDevices(answer.Devices)
	}
	for i := range answer.Rows {
		if wanted.row(&answer.Rows[i]) {
			r.Rows = append(r.Rows, &answer.Rows[i])
		}
	}
	if wanted.Node(answer.Node) {
		for i := range answer.All {
			r.All = append(r.All, &answer.All[i])
		}
		if answer.All == nil {
			r.Unlisted++
		}
	}
	if age := answer.age(); age > staleAfter {
		r.Stale = append(r.Stale, AgentFailure{name, answer.Node, staleText(age)})
	}
}

// addDevices adds a node's devices. A sum without some nodes would be taken for
// that of all.
func (r *FleetState) addDevices(counts *page.DeviceCount) {
	if counts == nil || r.Devices == nil {
		r.Devices = nil
		return
	}
	r.Devices.Devices += counts.Devices
	r.Devices.Whole += counts.Whole
	r.Devices.Partitions += counts.Partitions
	r.Devices.Held += counts.Held
}

// AgentFailure is an agent that gave no answer.
type AgentFailure struct {
	Agent string `json:"agent"`
	Node  string `json:"node,omitempty"`
	Error string `json:"error"`
}

// Wanted selects the rows to show; empty fields select all.
type Wanted struct {
	Namespaces []string
	Nodes      []string
}

func (w Wanted) row(row *Row) bool { return w.Node(row.Node) && isWanted(w.Namespaces, row.Namespace) }

// Node reports whether what is on a node is wanted.
func (w Wanted) Node(name string) bool { return isWanted(w.Nodes, name) }

func isWanted(wanted []string, name string) bool {
	return len(wanted) == 0 || slices.Contains(wanted, name)
}

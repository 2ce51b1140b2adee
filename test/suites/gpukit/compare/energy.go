package compare

import (
	"fmt"
	"math"
	"time"
)

// energyTolerance is by how much the growth of the energy counter may differ from
// the integral of power: the power of one sample stands for a second.
const energyTolerance = 0.05

// readInterval is the time between two reads of the agent.
const readInterval = time.Second

// EnergyIntegral compares, for each GPU, the growth of the agent's energy counter
// with the integral of the power that the library has reported.
func EnergyIntegral(o Observations, w Window) []Result {
	var results []Result
	for _, d := range o.subjects(w) {
		if d.parent != "" {
			continue
		}
		agent := agentSeries(o.pages(w), deviceEnergyJoules, "", deviceLabels(d.uuid, nil)).known(w)
		power := o.librarySeries(d.uuid, func(l LibraryDevice) Value { return number(l.Power.Usage) }).known(w)
		energy := o.librarySeries(d.uuid, func(l LibraryDevice) Value { return number(l.Energy) })
		r := Result{Row: "energy, integral of power", Device: d.uuid, Against: Library, Agent: "none", Other: "none", Status: NotReported}
		switch {
		case len(agent) == 0 && energy.reported(w):
			r.Status, r.Detail = Failed, "the agent has no energy counter, the library has one"
		case len(agent) == 0 || len(power) == 0:
			r.Detail = "there is no energy counter or no power"
		default:
			integrate(agent, power, &r)
		}
		results = append(results, r)
	}
	return results
}

func integrate(agent, power series, r *Result) {
	agent = agent.known(Window{power[0].at, power[len(power)-1].at})
	if len(agent) < leastSamples {
		r.Status, r.Detail = Failed, fmt.Sprintf("only %d samples can be compared, %d are needed", len(agent), leastSamples)
		return
	}
	from, to := agent[0], agent[len(agent)-1]
	grown, integral := to.value.Number-from.value.Number, 0.0
	inner := power.known(Window{from.at, to.at})
	line := append(append(series{{from.at, Value{Known: true, Number: power.value(from.at)}}}, inner...),
		point{to.at, Value{Known: true, Number: power.value(to.at)}})
	for i := 1; i < len(line); i++ {
		integral += line[i].at.Sub(line[i-1].at).Seconds() * (line[i].value.Number + line[i-1].value.Number) / 2
	}
	// The agent's readings are up to fastAge old, at both ends, and not equally
	// old: their ages differ by about an interval between reads.
	first, last := line[0].value.Number, line[len(line)-1].value.Number
	edge := fastAge.Seconds()*math.Abs(last-first) + readInterval.Seconds()*max(first, last)
	allowed := energyTolerance*integral + edge
	r.Agent, r.Other = with(grown, unitJoules), with(integral, unitJoules)
	r.Detail = fmt.Sprintf("in %.0f s; a difference of %s is allowed", to.at.Sub(from.at).Seconds(), with(allowed, unitJoules))
	r.Status = Passed
	if math.Abs(grown-integral) > allowed {
		r.Status = Failed
	}
}

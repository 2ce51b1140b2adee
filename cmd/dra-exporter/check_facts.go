package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/internal/check"
)

// usingClaims are pods whose containers exist and whose claims they hold.
func usingClaims(known apiserver.Facts) []dra.PodRef {
	var using []dra.PodRef
	for _, pod := range known.Pods {
		created := slices.ContainsFunc(pod.Containers, func(c dra.Container) bool { return c.ID != "" && len(c.Uses) > 0 })
		holds := slices.ContainsFunc(known.Claims, func(c dra.Claim) bool { return c.Allocated && c.ReservedForPod(pod.UID) })
		if created && holds && !pod.Terminal {
			using = append(using, pod.Ref)
		}
	}
	return using
}

// matchingOf is what drivers named beside the hardware, and what the node
// role's rules make of it.
func matchingOf(facts node.Facts) check.Matching {
	found := check.Matching{Published: facts.Cluster.Published, Samples: facts.Samples, SlicesKnown: facts.Cluster.SlicesFresh}
	allocated := map[dra.DeviceID]bool{}
	for _, claim := range facts.Cluster.Claims {
		for _, result := range claim.Results {
			allocated[result.Device] = true
		}
	}
	for _, assignment := range facts.Listing.Assignments {
		allocated[assignment.Device] = true
	}
	for id := range allocated {
		found.Allocated = append(found.Allocated, id)
	}
	for _, match := range node.Matches(facts) {
		found.Matches = append(found.Matches, check.Match{Device: match.Device, Rule: match.Rule, UUID: match.Hardware.UUID, PCI: match.Hardware.PCIBusID, Part: match.Hardware.IsPartition()})
	}
	return found
}

// sharingState reads off the snapshot why shared devices are not split, as
// the metrics tell it; empty: nobody knows.
func sharingState(a *agent) string {
	for _, row := range a.rows() {
		if row.Family.Name == "dra_exporter_process_attribution" && row.Value == 1 {
			return row.Labels.Get("reason")
		}
	}
	return ""
}

// wait returns when what it waits for is there, and whether it came before the
// end of ctx. A person is told once a second what it waits for; what is no
// terminal gets one line.
func wait(ctx context.Context, stderr io.Writer, missing func() []string, done func() bool) bool {
	const pause, every = 20 * time.Millisecond, time.Second
	terminal := isTerminal(stderr)
	began, told := time.Now(), 0
	defer func() {
		if terminal && told > 0 {
			fmt.Fprint(stderr, "\r\x1b[K")
		}
	}()
	for !done() {
		seconds := int(time.Since(began) / every)
		if seconds > told && (terminal || told == 0) {
			told = seconds
			line := "still reading"
			if names := missing(); len(names) > 0 {
				line += ": " + strings.Join(names, ", ")
			}
			if terminal {
				fmt.Fprintf(stderr, "\r\x1b[K%s (%ds)", line, seconds)
			} else {
				fmt.Fprintln(stderr, line)
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
	return true
}

// meanwhile does something that ends with ctx at the latest, and tells a person
// who waits for longer than a second what for.
func meanwhile(ctx context.Context, stderr io.Writer, missing func() []string, do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	wait(ctx, stderr, missing, func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
	<-done
}

// awaiting names what is waited for where it is one thing from beginning to end.
func awaiting(what string) func() []string { return func() []string { return []string{what} } }

func isTerminal(to io.Writer) bool {
	file, isFile := to.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}

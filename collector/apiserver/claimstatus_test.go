package apiserver

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	simulated "github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
)

func TestUnreadableClaimImpairsSource(t *testing.T) {
	objects := []simulated.Object{podWithClaim("bad", "pod-bad", "bad"), claim("bad", "claim-bad", "node-a", "gpu-0", "pod-bad")}
	for i := range 20 {
		name, pod := fmt.Sprint("claim-", i), fmt.Sprint("pod-", i)
		objects = append(objects, podWithClaim(pod, pod, name), claim(name, name, "node-a", "gpu-1", pod))
	}
	c := startNodeTest(t, map[string]int{"resourceclaims bad": http.StatusInternalServerError}, objects...)
	facts := c.until("the others are read, and the one is tried again", func(f NodeFacts) bool {
		return len(f.Claims) == 20 && c.requestCount("get resourceclaims bad") > 3
	})
	if len(facts.Unread) != 1 || facts.Unread[0] != (dra.ClaimRef{Namespace: "lab", Name: "bad"}) {
		t.Errorf("unread are %v", facts.Unread)
	}
	if status := c.status("resourceclaims"); !status.Up || status.Reason != source.ReasonUnavailable || !strings.Contains(status.Message, "lab/bad") {
		t.Errorf("the source is %+v", status)
	}
	failures, reads := c.status("resourceclaims").Errors, c.requestCount("get resourceclaims bad")
	if failures > uint64(reads)+1 { // the turn from down to impaired counts
		t.Errorf("%d failures are counted in %d reads", failures, reads)
	}
	if n := c.logged("=resourceclaims"); n > 2 { // down, if it was the first, and impaired
		t.Errorf("logged %d times: %s", n, c.log.String())
	}
	c.refuse("resourceclaims bad", 0)
	c.until("the claim is read", func(f NodeFacts) bool { return len(f.Claims) == 21 && len(f.Unread) == 0 })
	if status := c.status("resourceclaims"); !status.Up || status.Reason != source.ReasonNone || c.logged("is up again", "=resourceclaims") != 1 {
		t.Errorf("the source is %+v, logged %s", status, c.log.String())
	}
}

// TestStatusOfClaims applies results of reads, one a minute, to a node that
// does not run.
func TestStatusOfClaims(t *testing.T) {
	var log strings.Builder
	now := clock.System()()
	node, err := New(Options{Config: &rest.Config{}, Node: "node-a", Clock: func() clock.Instant { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	broken := apierrors.NewInternalError(fmt.Errorf("odd"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	wanted := map[dra.ClaimRef][]string{}
	for _, name := range []string{"a", "b"} {
		wanted[dra.ClaimRef{Namespace: "lab", Name: name}] = []string{"pod"}
	}
	wantAll(node.claims, node.now(), wanted, 0)
	read := func(name string, err error) func() {
		return func() {
			ref := dra.ClaimRef{Namespace: "lab", Name: name}
			node.claims.apply(node.now(), ref, claim(name, name, "", ""), err)
			node.reportClaims(node.claims.records[ref].failure != nil)
		}
	}
	forget := func(name string) func() {
		return func() {
			delete(wanted, dra.ClaimRef{Namespace: "lab", Name: name})
			wantAll(node.claims, node.now(), wanted, 0)
			node.reportClaims(false)
		}
	}
	for i, step := range []struct {
		do     func()
		up     bool
		reason source.Reason
		errors uint64
		lines  int
	}{
		{func() { node.reportClaims(false) }, false, source.ReasonNone, 0, 0},
		{read("a", nil), true, source.ReasonNone, 0, 0},
		{read("b", broken), true, source.ReasonUnavailable, 1, 1},
		{read("a", nil), true, source.ReasonUnavailable, 1, 1},
		{read("b", broken), true, source.ReasonUnavailable, 2, 1},
		{read("a", broken), false, source.ReasonUnavailable, 3, 2},
		{read("b", broken), false, source.ReasonUnavailable, 4, 2},
		{read("a", forbidden), false, source.ReasonPermission, 5, 3},
		{read("a", nil), true, source.ReasonUnavailable, 6, 4},
		{forget("b"), true, source.ReasonNone, 6, 5},
		{read("a", broken), false, source.ReasonUnavailable, 7, 6},
		{forget("a"), false, source.ReasonUnavailable, 7, 6},
		{func() { node.setPodsFresh(true) }, true, source.ReasonNone, 7, 7},
	} {
		now = now.Add(time.Minute)
		step.do()
		status, lines := node.claimTracker.Status(), strings.Count(log.String(), "\n")
		if status.Up != step.up || status.Reason != step.reason || status.Errors != step.errors || lines != step.lines {
			t.Errorf("step %d: %+v with %d lines, want %+v; log %s", i, status, lines, step, log.String())
		}
	}
}

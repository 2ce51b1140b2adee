package otelcol

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/otelcol/compare"
)

// demo is the program with both roles on a simulated cluster. It pushes.
type demo struct {
	*process
	roles []role
}

// role is one of the two roles, and the attribute that distinguishes its
// pushes.
type role struct {
	name     string
	page     string // URL
	instance string // service.instance.id
}

// startDemo runs the program, which pushes every second unless the arguments
// override it.
func startDemo(t *testing.T, arguments ...string) *demo {
	t.Helper()
	path, err := exporter()
	if err != nil {
		t.Fatal(err)
	}
	addresses := porttest.Addresses(t, 2)
	arguments = append([]string{"demo", "--web.listen-address=" + addresses[0], "--cluster.listen-address=" + addresses[1], "--training.listen-address="}, arguments...)
	if !slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--otlp.interval=") }) {
		arguments = append(arguments, "--otlp.interval=1s")
	}
	d := &demo{process: start(t, path, "http://"+addresses[0]+"/-/ready", nil, arguments...), roles: []role{
		{name: "node", page: "http://" + addresses[0] + "/metrics", instance: "gpu-node-1"},
		{name: "cluster", page: "http://" + addresses[1] + "/metrics", instance: "cluster"},
	}}
	eventually(t, "the cluster role to be ready", func() error { return answers("http://" + addresses[1] + "/-/ready") })
	return d
}

// pages scrapes a role ten times a second until stop is called, which returns
// the pages.
func (r role) pages(t *testing.T) (stop func() []*compare.Page) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []*compare.Page, 1)
	go func() {
		var all []*compare.Page
		for ctx.Err() == nil {
			if page, err := compare.Scrape(ctx, r.page); err == nil {
				all = append(all, page)
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
		done <- all
	}()
	t.Cleanup(cancel)
	return func() []*compare.Page { cancel(); return <-done }
}

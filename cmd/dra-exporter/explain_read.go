package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/cluster"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// inquiry is one question put to a cluster.
type inquiry struct {
	config  *rest.Config
	clock   clock.Clock
	log     *slog.Logger
	stderr  io.Writer
	timeout time.Duration
}

// reading is what one look at the cluster brought.
type reading struct {
	changes   []cluster.Change
	synced    cluster.Synced
	statuses  []source.Status
	inventory *inventory.Inventory
	asked     *askedKeeper
}

// progressAfter is how long a person waits without a word.
const progressAfter = 2 * time.Second

// read takes a look at the cluster, or at one namespace of it. It does not
// fail: what could not be read is in the statuses.
func (q inquiry) read(ctx context.Context, subject explain.Subject, namespace string) (*reading, error) {
	kept := inventory.New()
	asked := newAskedKeeper(kept, subject.Namespace)
	reader, err := apiserver.NewCluster(apiserver.ClusterOptions{
		Config: q.config, Namespace: namespace, Keeper: asked, Log: q.log, Clock: q.clock,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare to read the API server: %w", err)
	}
	running, stop := context.WithCancel(ctx)
	var run sync.WaitGroup
	run.Go(func() { reader.Run(running) })
	q.settle(ctx, reader)
	found := &reading{statuses: reader.Statuses(), inventory: kept, asked: asked}
	stop()
	run.Wait()
	found.changes = reader.Take()
	found.synced = reader.Synced() // of what has been taken
	return found, ctx.Err()
}

// settle waits until each collection has been listed or has failed, but not
// longer than a person would, and says what it is waiting for.
func (q inquiry) settle(ctx context.Context, reader *apiserver.Cluster) {
	const pause = 10 * time.Millisecond
	began, told := q.clock(), false
	for !reader.Settled() {
		waited := q.clock().Since(began)
		if waited > q.timeout {
			return
		}
		if waited > progressAfter && !told {
			told = true
			fmt.Fprintf(q.stderr, "still reading: %s\n", strings.Join(unread(reader.Statuses()), ", "))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// unread names the collections of which nothing is known yet.
func unread(statuses []source.Status) []string {
	var names []string
	for _, status := range statuses {
		if status.LastSuccess.IsZero() && status.Errors == 0 {
			names = append(names, status.Name)
		}
	}
	slices.Sort(names)
	return names
}

// reachable fails where there is nothing to judge by: no API server, one that
// is too old, or nobody who may read.
func reachable(host string, statuses []source.Status) error {
	up := false
	for _, status := range statuses {
		up = up || status.Up || !status.LastSuccess.IsZero()
		if status.Reason == source.ReasonUnsupported && status.Name == "resourceclaims" {
			return errors.New(status.Message)
		}
	}
	if up || len(statuses) == 0 {
		return nil
	}
	for _, status := range statuses {
		if status.Message != "" {
			return fmt.Errorf("nothing can be read from the API server %s: %s", host, status.Message)
		}
	}
	return fmt.Errorf("the API server %s does not answer", host)
}

// confined reports whether something of a namespace may not be read in all
// namespaces, so that it is worth asking for one alone.
func confined(statuses []source.Status) bool {
	return slices.ContainsFunc(statuses, func(status source.Status) bool {
		return status.Reason == source.ReasonPermission && status.LastSuccess.IsZero() && explain.Namespaced(status.Name)
	})
}

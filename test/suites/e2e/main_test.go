// Package e2e tests the agent on a real Kubernetes node. All tests share one
// cluster, its drivers and the agent, and use separate namespaces. A test that
// kills a component restarts it before it ends, and tests do not run in
// parallel.
//
// Run them with `make e2e` in test/, which builds what they need.
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
)

// shared is the cluster of all tests, because a cluster takes longer to start
// than any test.
var shared *cluster.Cluster

func TestMain(m *testing.M) {
	if err := selectTests(os.Getenv("DRA_E2E_SET")); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		os.Exit(1)
	}
	code, err := runWithCluster(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = 1
	}
	os.Exit(code)
}

// runWithCluster starts the cluster and its agent, runs the tests, and closes
// the cluster. If a test failed it prints the end of every component's log. It
// reports violations of the rules of all pages at the end.
func runWithCluster(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if shared, err = startCluster(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	defer closeOnInterrupt(ctx)()

	if err := startDrivers(ctx, shared); err != nil {
		fmt.Fprintln(os.Stderr, shared.Logs(40))
		return 1, err
	}
	if err := startAgent(ctx); err != nil {
		fmt.Fprintln(os.Stderr, shared.Logs(40), describeAgent(ctx))
		return 1, err
	}
	if err := startClusterRole(ctx); err != nil {
		fmt.Fprintln(os.Stderr, shared.Logs(40))
		return 1, fmt.Errorf("start the cluster role: %w", err)
	}
	if code = m.Run(); code != 0 {
		fmt.Fprintln(os.Stderr, shared.Logs(40), describeAgent(ctx))
	}
	passed, err := reportRequirements()
	if !passed {
		code = 1
	}
	return code, errors.Join(err, brokenRules())
}

// brokenRules returns the violations by pages of both roles.
func brokenRules() error {
	fmt.Printf("the agent's page was read %d times, the cluster role's %d times\n", watcher.Pages(), clusterWatcher.Pages())
	if err := errors.Join(watcher.Broken(), clusterWatcher.Broken()); err != nil {
		return fmt.Errorf("pages broke their rules:\n%w", err)
	}
	return nil
}

func startCluster(ctx context.Context) (*cluster.Cluster, error) {
	bin := os.Getenv("DRA_E2E_BIN")
	if bin == "" {
		return nil, errors.New("DRA_E2E_BIN is not set: run `make e2e` in test/")
	}
	began := time.Now()
	return cluster.Start(ctx, cluster.Options{
		KubernetesVersion: os.Getenv("DRA_E2E_KUBERNETES_VERSION"),
		BinDir:            bin,
		LogDir:            os.Getenv("DRA_E2E_LOGS"),
		Logf: func(format string, args ...any) {
			fmt.Printf("%5.1fs  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
		},
	})
}

// closeOnInterrupt closes the cluster and ends the process on an interrupt,
// because tests do not watch ctx, until the returned function is called.
func closeOnInterrupt(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() {
		if err := shared.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e:", err)
		}
		os.Exit(1)
	})
}

// startDrivers starts the drivers that all tests share, and their classes.
func startDrivers(ctx context.Context, c *cluster.Cluster) error {
	classes, err := os.ReadFile("testdata/classes.yaml")
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, string(classes)); err != nil {
		return err
	}
	for _, driver := range []struct {
		name string
		env  map[string]string
	}{
		{"gpu.example.com", map[string]string{"NUM_DEVICES": "4"}},
		{"share.example.com", map[string]string{"NUM_DEVICES": "2", "GPU_ALLOW_MULTIPLE_ALLOCATIONS": "true"}},
		{"part.example.com", map[string]string{"NUM_DEVICES": "2", "GPU_PARTITIONS": "4"}},
	} {
		if driver.env["GPU_PARTITIONS"] != "" && !c.Has(releases.CountersOfOtherSlices) {
			if err := startShapes(ctx, c, driver.name); err != nil {
				return err
			}
			continue
		}
		if _, err := c.StartExampleDriver(ctx, driver.name, driver.env); err != nil {
			return err
		}
	}
	return startShapes(ctx, c, "gpu.nvidia.com")
}

// startShapes starts a driver that publishes the file of its name.
func startShapes(ctx context.Context, c *cluster.Cluster, name string) error {
	devices, err := devicesFile(c, name+".yaml")
	if err != nil {
		return err
	}
	_, err = c.StartShapesDriver(ctx, name, devices)
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/alecthomas/kingpin/v2"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/apiserver"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/internal/otlp"
)

// addCheckCluster adds the check of a cluster, with the cluster role's flags.
func (c *commands) addCheckCluster(parent *kingpin.CmdClause, common *checkFlags, stdout, stderr io.Writer) {
	command := parent.Command("cluster", "Check what the cluster role needs: takes its flags, and reads what it reads. Outside a pod and without --kubeconfig, by your own kubeconfig.")
	d := &clusterDoctor{common: common, flags: &clusterFlags{}, stderr: stderr}
	d.flags.add(command)
	d.push = addPushFlags(command)
	d.web = addWebFlags(command, clusterAddress, stderr)
	d.web.access.add(command)
	c.byName[command.FullCommand()] = func(ctx context.Context) error { return common.run(ctx, stdout, d.examine) }
}

// clusterDoctor reads what the cluster role reads, once.
type clusterDoctor struct {
	common *checkFlags
	flags  *clusterFlags
	push   *otlp.Flags
	web    *webFlags
	stderr io.Writer
}

// clusterRole is the ClusterRole of the shipped manifests.
const clusterRole = "dra-exporter-cluster"

func (d *clusterDoctor) examine(ctx context.Context) (*check.Report, error) {
	ctx, stop := context.WithTimeout(ctx, d.common.timeout)
	defer stop()
	log := slog.New(slog.DiscardHandler) // what fails is in the report
	klog.SetSlogLogger(log)
	report := &check.Report{}
	report.Add(check.InheritedFindings(d.common.inherited, d.common.inheritError)...)
	var settings check.Settings
	meanwhile(ctx, d.stderr, awaiting("addresses that flags name"), func() { settings = readSettings(ctx, d.flags.check(), "", d.push, true, d.web) })
	report.Add(check.SettingsFindings(settings)...)
	config, err := d.connection()
	if err != nil {
		report.Add(check.APIFindings(check.API{ConfigError: err}, clusterRole)...)
		return report, nil
	}
	probe, err := newProbe(config)
	if err != nil {
		report.Add(check.APIFindings(check.API{ConfigError: err}, clusterRole)...)
		return report, nil
	}
	defer probe.close()
	var api check.API
	meanwhile(ctx, d.stderr, awaiting("the API server"), func() { api = probe.look(ctx, append(clusterAccess(), reviewAccess(d.web)...)) })
	if api.VersionError != nil {
		report.Add(check.APIFindings(api, clusterRole)...)
		return report, nil
	}
	found := check.Cluster{Minor: api.Minor, Instances: probe.instances(ctx)}
	if api.Statuses, err = d.read(ctx, config, log, &found); err != nil {
		return nil, err
	}
	report.Add(check.APIFindings(api, clusterRole)...)
	report.Add(check.ClusterFindings(found)...)
	return report, nil
}

// connection is the pod's own, or what --kubeconfig says, as the cluster role
// has it; a person's where there is neither.
func (d *clusterDoctor) connection() (*rest.Config, error) {
	config, err := clusterConfig(d.flags.kubeconfig)
	if !errors.Is(err, errNotInPod) {
		return config, err
	}
	person := personFlags{}
	config, _, err = person.connection()
	return config, err
}

// read lists everything once.
func (d *clusterDoctor) read(ctx context.Context, config *rest.Config, log *slog.Logger, found *check.Cluster) ([]source.Status, error) {
	kept := inventory.New()
	reader, err := apiserver.NewCluster(apiserver.ClusterOptions{Config: config, Keeper: kept, Log: log, Clock: clock.System()})
	if err != nil {
		return nil, fmt.Errorf("prepare to read the API server: %w", err)
	}
	reading, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { reader.Run(reading) })
	wait(ctx, d.stderr, func() []string { return unread(reader.Statuses()) }, reader.Settled)
	reader.Take() // what is synced is said of those who have taken it
	statuses, synced := reader.Statuses(), reader.Synced()
	stop()
	running.Wait()
	_ = kept.Settle(ctx, nil) // it ends early with the context alone; classes are then not counted
	found.Supply, found.SliceRead, found.ClassRead = kept.Supply(), synced.Slices, synced.Classes
	found.RuleServed = slices.ContainsFunc(statuses, func(s source.Status) bool { return s.Name == "devicetaintrules" && s.Up })
	return statuses, nil
}

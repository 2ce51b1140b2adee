package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/releases"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const halfPod = `
apiVersion: v1
kind: Namespace
metadata: {name: poolstatus}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: half, namespace: poolstatus}
spec: {spec: {devices: {requests: [{name: main, exactly: {deviceClassName: half.alpha}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: half, namespace: poolstatus}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: localhost/pause:1, imagePullPolicy: Never, resources: {claims: [{name: device}]}}]
  resourceClaims: [{name: device, resourceClaimTemplateName: half}]
`

// TestResourcePoolStatus compares what the exporter counts in each pool with
// what Kubernetes does for a ResourcePoolStatusRequest, while a partition and
// devices of several kinds are allocated.
func TestResourcePoolStatus(t *testing.T) {
	covers(t)
	if lacks(t, releases.PoolStatus) { // TestFeatures asserts that it is not served
		if rows := clusterPage(t).Rows("dra_partition_devices", nil); len(rows) > 0 {
			t.Errorf("partitions are counted by a type that no slice can name: %v", rows)
		}
		return
	}
	startAlphaDriver(t)
	manifests, _ := supplyManifests(t)
	deployText(t, "supply", manifests)
	for _, pod := range []string{"half", "share-16", "share-8", "extended", "choice", "monitor"} {
		running(t, "supply", pod)
	}
	deployText(t, "poolstatus", halfPod)
	running(t, "poolstatus", "half")
	waitClusterPage(t, "the allocated partition", func(p *scrape.Page) error {
		return hasGauge(p, "dra_partition_devices", scrape.Labels{"driver": alphaDriver, "partition_type": "half", "state": "allocated"}, 1)
	})
	for _, driver := range []string{alphaDriver, lifeDriver, "share.example.com"} {
		t.Run(driver, func(t *testing.T) { comparePools(t, driver) })
	}
}

// poolStatuses has Kubernetes calculate the status of a driver's pools.
func poolStatuses(t *testing.T, driver string) []resourcev1alpha3.PoolStatus {
	t.Helper()
	requests := shared.Client().ResourceV1alpha3().ResourcePoolStatusRequests()
	request := &resourcev1alpha3.ResourcePoolStatusRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Spec: resourcev1alpha3.ResourcePoolStatusRequestSpec{Driver: driver},
	}
	request, err := requests.Create(t.Context(), request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := requests.Delete(context.WithoutCancel(t.Context()), request.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	err = cluster.Eventually(t.Context(), "the status of the pools of "+driver, func(ctx context.Context) error {
		got, err := requests.Get(ctx, request.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if request = got; got.Status == nil {
			return errors.New("there is none")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Pools
}

// comparePools compares each pool of the driver. The two count differently:
//
//   - Kubernetes counts a device as allocated that is not published any more.
//   - A device that is both allocated and tainted is allocated for the exporter,
//     and both for Kubernetes, which subtracts it twice from the available ones.
//   - A device is available for Kubernetes if nothing of its counters is left;
//     its partition summary alone considers counters.
//
// What the difference has to be is calculated from the API objects.
func comparePools(t *testing.T, driver string) {
	statuses := poolStatuses(t, driver)
	if len(statuses) == 0 {
		t.Fatal("there is no pool")
	}
	for _, status := range statuses {
		objects := poolObjects(t, driver, status.PoolName, status.Generation)
		waitClusterPage(t, "pool "+status.PoolName, func(p *scrape.Page) error {
			labels := scrape.Labels{"driver": driver, "pool": status.PoolName}
			if status.TotalDevices == nil {
				return hasGauge(p, "dra_pool_complete", labels, 0)
			}
			ours := func(state string) int { return int(total(p, "dra_devices", with(labels, "state", state))) }
			allocated, free, unavailable := ours("allocated"), ours("free"), ours("unavailable")
			return errors.Join(
				hasNoRow(p, "dra_pool_complete", labels),
				same("devices", allocated+free+unavailable, int(*status.TotalDevices)),
				same("allocated devices", allocated+objects.unpublished, int(*status.AllocatedDevices)),
				same("tainted devices", objects.tainted, int(*status.UnavailableDevices)),
				same("free devices", free, int(*status.AvailableDevices)+objects.both-objects.spent),
				samePartitions(p, labels, status.PartitionSummary),
			)
		})
	}
}

func same(what string, ours, theirs int) error {
	if ours != theirs {
		return fmt.Errorf("%d %s, and Kubernetes has %d", ours, what, theirs)
	}
	return nil
}

// samePartitions compares the number of partitions of each type, and that as
// many are free as fit together, or more: each is counted by itself.
func samePartitions(p *scrape.Page, pool scrape.Labels, theirs []resourcev1alpha3.PartitionTypeStatus) error {
	errs := []error{same("types of partitions", p.Count("dra_partition_devices", with(pool, "state", "free")), len(theirs))}
	for _, kind := range theirs {
		labels := with(pool, "partition_type", kind.Type)
		free := int(total(p, "dra_partition_devices", with(labels, "state", "free")))
		errs = append(errs, same("partitions of type "+kind.Type, int(total(p, "dra_partition_devices", labels)), int(*kind.Total)))
		if fit := int(*kind.Allocatable); free < fit || (free > 0 && fit == 0) {
			errs = append(errs, fmt.Errorf("%d partitions of type %s are free, and %d fit together", free, kind.Type, fit))
		}
	}
	return errors.Join(errs...)
}

// poolCounts are numbers of devices of a pool.
type poolCounts struct {
	tainted     int
	both        int // tainted and allocated
	unpublished int // allocated
	spent       int // neither tainted nor allocated, and the counters do not suffice
}

// poolObjects counts devices of a pool by the API objects.
func poolObjects(t *testing.T, driver, pool string, generation int64) (counts poolCounts) {
	t.Helper()
	dra := shared.Client().ResourceV1()
	published, err := dra.ResourceSlices().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.driver=" + driver})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := dra.ResourceClaims("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	allocated := map[string]bool{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if admin := result.AdminAccess != nil && *result.AdminAccess; result.Driver == driver && result.Pool == pool && !admin {
				allocated[result.Device] = true
			}
		}
	}
	devices := map[string]resourcev1.Device{}
	left := map[string]*resource.Quantity{}
	for _, slice := range published.Items {
		if slice.Spec.Pool.Name != pool || slice.Spec.Pool.Generation != generation {
			continue
		}
		for _, device := range slice.Spec.Devices {
			devices[device.Name] = device
		}
		for _, set := range slice.Spec.SharedCounters {
			for name, counter := range set.Counters {
				left[set.Name+"/"+name] = new(counter.Value.DeepCopy())
			}
		}
	}
	for name := range allocated {
		device, known := devices[name]
		if !known {
			counts.unpublished++
		}
		for _, consumed := range device.ConsumesCounters {
			for counter, amount := range consumed.Counters {
				left[consumed.CounterSet+"/"+counter].Sub(amount.Value)
			}
		}
	}
	for name, device := range devices {
		tainted := slices.ContainsFunc(device.Taints, func(taint resourcev1.DeviceTaint) bool {
			return taint.Effect == resourcev1.DeviceTaintEffectNoSchedule || taint.Effect == resourcev1.DeviceTaintEffectNoExecute
		})
		lacks := false
		for _, consumed := range device.ConsumesCounters {
			for counter, amount := range consumed.Counters {
				lacks = lacks || left[consumed.CounterSet+"/"+counter].Cmp(amount.Value) < 0
			}
		}
		switch {
		case tainted && allocated[name]:
			counts.tainted, counts.both = counts.tainted+1, counts.both+1
		case tainted:
			counts.tainted++
		case !allocated[name] && lacks:
			counts.spent++
		}
	}
	return counts
}

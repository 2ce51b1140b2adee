package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
)

// binder makes the binding conditions of allocated devices true, or their
// failure conditions, as long after the allocation as the behaviour says. That
// is counted from when it saw the allocation, which is at most bindingPeriod late.
type binder struct {
	driverName string
	client     kubernetes.Interface
	behaviour  behaviourFile
	seen       map[attachment]time.Time
}

// attachment is one allocation of a claim: one that failed may come again.
type attachment struct {
	claim   types.UID
	version string // of the claim when the allocation was first seen
}

const bindingPeriod = 50 * time.Millisecond

// run looks at all claims every bindingPeriod until ctx is done.
func (b *binder) run(ctx context.Context) {
	ticker := time.NewTicker(bindingPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := b.look(ctx); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(ctx, err, "Set binding conditions")
		}
	}
}

func (b *binder) look(ctx context.Context) error {
	how, err := b.behaviour.read()
	if err != nil || how.BindingDelay == nil {
		return err
	}
	claims, err := b.client.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list claims: %w", err)
	}
	waiting := map[attachment]time.Time{}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if len(b.unattached(claim)) == 0 {
			continue
		}
		since, key := b.since(claim)
		waiting[key] = since
		if time.Since(since) < how.BindingDelay.Duration {
			continue
		}
		if err := b.attach(ctx, claim, how.BindingFailure); err != nil {
			return fmt.Errorf("set conditions of claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
	}
	b.seen = waiting
	return nil
}

// since is when the claim was first seen as it is allocated now.
func (b *binder) since(claim *resourceapi.ResourceClaim) (time.Time, attachment) {
	for key, at := range b.seen {
		if key.claim == claim.UID {
			return at, key
		}
	}
	return time.Now(), attachment{claim.UID, claim.ResourceVersion}
}

// unattached are the devices of this driver that the claim is allocated and
// whose conditions are not set.
func (b *binder) unattached(claim *resourceapi.ResourceClaim) (results []resourceapi.DeviceRequestAllocationResult) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != b.driverName || len(result.BindingConditions) == 0 {
			continue
		}
		if place := statusOf(claim, result); place < 0 || len(claim.Status.Devices[place].Conditions) == 0 {
			results = append(results, result)
		}
	}
	return results
}

// statusOf is where the claim's status of a device stands, -1 if it has none.
func statusOf(claim *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) int {
	return slices.IndexFunc(claim.Status.Devices, func(status resourceapi.AllocatedDeviceStatus) bool {
		return status.Driver == result.Driver && status.Pool == result.Pool && status.Device == result.Device
	})
}

func (b *binder) attach(ctx context.Context, claim *resourceapi.ResourceClaim, failure string) error {
	for _, result := range b.unattached(claim) {
		place := statusOf(claim, result)
		if place < 0 {
			place = len(claim.Status.Devices)
			claim.Status.Devices = append(claim.Status.Devices, resourceapi.AllocatedDeviceStatus{
				Driver: result.Driver, Pool: result.Pool, Device: result.Device,
			})
		}
		conditions, reason := result.BindingConditions, "Attached"
		if failure != "" {
			conditions, reason = result.BindingFailureConditions, "Broken"
		}
		for _, condition := range conditions {
			meta.SetStatusCondition(&claim.Status.Devices[place].Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: reason, Message: failure,
			})
		}
	}
	_, err := b.client.ResourceV1().ResourceClaims(claim.Namespace).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

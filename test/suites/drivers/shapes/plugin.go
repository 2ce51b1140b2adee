package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
)

// plugin prepares claims by writing a CDI spec for each: preparing again writes the
// same file again. What it keeps beside those files is which devices it has passed to
// virtual machines.
type plugin struct {
	driverName string
	specs      specFolder
	devices    devicesSource
	behaviour  behaviourFile
	failed     chan error // holds the first error that ends the driver
	passed     sync.Map   // of the UIDs of claims: their passthrough, at most one each
}

// PrepareResourceClaims implements kubeletplugin.DRAPlugin.
func (p *plugin) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	how, err := p.behaviour.read()
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(how.PrepareDelay.Duration):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if how.PrepareError != "" {
		return nil, errors.New(how.PrepareError)
	}
	results := make(map[types.UID]kubeletplugin.PrepareResult, len(claims))
	for _, claim := range claims {
		devices, err := p.prepare(ctx, claim, how)
		results[claim.UID] = kubeletplugin.PrepareResult{Devices: devices, Err: err}
	}
	return results, nil
}

func (p *plugin) prepare(ctx context.Context, claim *resourceapi.ResourceClaim, how behaviour) ([]kubeletplugin.Device, error) {
	if claim.Status.Allocation == nil {
		return nil, errors.New("claim is not allocated")
	}
	var own []resourceapi.DeviceRequestAllocationResult
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver == p.driverName {
			own = append(own, result)
		}
	}
	if err := p.configure(ctx, claim.UID, own, how.Passthrough); err != nil {
		return nil, err
	}
	if err := p.specs.write(claim.UID, own); err != nil {
		return nil, fmt.Errorf("write CDI spec: %w", err)
	}
	var devices []kubeletplugin.Device
	for _, result := range own {
		devices = append(devices, kubeletplugin.Device{
			Requests:     []string{result.Request},
			PoolName:     result.Pool,
			DeviceName:   result.Device,
			ShareID:      result.ShareID,
			CDIDeviceIDs: []string{p.specs.kind() + "=" + deviceName(claim.UID, result)},
		})
	}
	return devices, nil
}

// UnprepareResourceClaims implements kubeletplugin.DRAPlugin.
func (p *plugin) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	for _, claim := range claims {
		results[claim.UID] = errors.Join(p.unconfigure(claim.UID), p.specs.remove(claim.UID))
	}
	return results, nil
}

// configure hands a claim's devices to virtual machines, those of which the test
// says so. It notes them first, since a claim may be unprepared that was prepared in
// part.
func (p *plugin) configure(ctx context.Context, claim types.UID, results []resourceapi.DeviceRequestAllocationResult, all []passthrough) error {
	for _, result := range results {
		for _, device := range all {
			if device.Device != result.Device {
				continue
			}
			p.passed.Store(claim, device)
			if err := device.configure(ctx); err != nil {
				return fmt.Errorf("configure %s: %w", result.Device, err)
			}
		}
	}
	return nil
}

// unconfigure gives a claim's device back to the host.
func (p *plugin) unconfigure(claim types.UID) error {
	device, ok := p.passed.LoadAndDelete(claim)
	if !ok {
		return nil
	}
	return device.(passthrough).bind(guestDriver, hostDriver)
}

// HandleError implements kubeletplugin.DRAPlugin. A shape that the API server
// refuses ends the driver, so that a wrong devices file is noticed at once.
func (p *plugin) HandleError(ctx context.Context, err error, msg string) {
	utilruntime.HandleErrorWithContext(ctx, err, msg)
	if errors.Is(err, kubeletplugin.ErrRecoverable) {
		return
	}
	p.fail(fmt.Errorf("%s: %w", msg, err))
}

// fail ends the driver with an error; nil is none. The first one counts.
func (p *plugin) fail(err error) {
	if err == nil {
		return
	}
	select {
	case p.failed <- err:
	default:
	}
}

package main

import (
	"context"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

// healthPeriod is how often every device is reported to the kubelet.
const healthPeriod = time.Second

// WatchHealthStatus implements kubeletplugin.DRAPlugin: a device is healthy
// unless the behaviour names it.
func (p *plugin) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	ticker := time.NewTicker(healthPeriod)
	defer ticker.Stop()
	for {
		how, err := p.behaviour.read()
		if err != nil {
			return err
		}
		resources, err := p.devices.read()
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case reports <- healthOf(resources, how):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func healthOf(resources resourceslice.DriverResources, how behaviour) (report kubeletplugin.DeviceHealthReport) {
	for poolName, pool := range resources.Pools {
		for _, slice := range pool.Slices {
			for _, device := range slice.Devices {
				health := kubeletplugin.DeviceHealth{
					PoolName: poolName, DeviceName: device.Name, Health: kubeletplugin.HealthStatusHealthy, LastUpdated: time.Now(),
				}
				if how.isUnhealthy(device.Name) {
					health.Health, health.Message = kubeletplugin.HealthStatusUnhealthy, how.HealthMessage
				}
				report.Devices = append(report.Devices, health)
			}
		}
	}
	return report
}

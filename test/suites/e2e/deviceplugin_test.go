package e2e

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// devicePlugin is a device plugin with one healthy device. The kubelet finds
// its socket in the folder of plugins, also after a restart of the kubelet.
type devicePlugin struct {
	deviceplugin.UnimplementedDevicePluginServer
	registration.UnimplementedRegistrationServer

	resource, device, socket string

	ended <-chan struct{}
}

// startDevicePlugin serves a device as an extended resource until the test
// ends, and waits until the node has it.
func startDevicePlugin(t *testing.T, resource, device string) {
	t.Helper()
	p := &devicePlugin{resource: resource, device: device, ended: t.Context().Done()}
	p.socket = filepath.Join(shared.PluginRegistry(), "e2e-device-plugin.sock")
	listener, err := net.Listen("unix", p.socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, p)
	registration.RegisterRegistrationServer(server, p)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	err = cluster.Eventually(t.Context(), "the node to have "+resource, func(ctx context.Context) error {
		return allocatable(ctx, resource, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// GetInfo implements registration.RegistrationServer.
func (p *devicePlugin) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.DevicePlugin, Name: p.resource, Endpoint: p.socket,
		SupportedVersions: []string{deviceplugin.Version},
	}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (p *devicePlugin) NotifyRegistrationStatus(context.Context, *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	return &registration.RegistrationStatusResponse{}, nil
}

// GetDevicePluginOptions implements deviceplugin.DevicePluginServer.
func (p *devicePlugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

// ListAndWatch implements deviceplugin.DevicePluginServer. The list never changes.
func (p *devicePlugin) ListAndWatch(_ *deviceplugin.Empty, stream grpc.ServerStreamingServer[deviceplugin.ListAndWatchResponse]) error {
	err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: []*deviceplugin.Device{{ID: p.device, Health: deviceplugin.Healthy}}})
	if err != nil {
		return err
	}
	select {
	case <-stream.Context().Done():
	case <-p.ended:
	}
	return nil
}

// Allocate implements deviceplugin.DevicePluginServer. Containers get nothing.
func (p *devicePlugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	response := &deviceplugin.AllocateResponse{}
	for range request.GetContainerRequests() {
		response.ContainerResponses = append(response.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return response, nil
}

//go:build cgo

package stubs

import (
	"math"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Of the total and its links, what is not scripted follows from the other.
func TestNVLinkBytes(t *testing.T) {
	n := NewNode(t, 1)
	device := gpu(t, open(t, n), 0)
	n.Set(0, "nvlink.tx_bytes", "18874368") // 18 MiB
	if total, link := field(t, device, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, math.MaxUint32), field(t, device, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 17); total != 18*1024 || link != 1024 {
		t.Errorf("%d KiB, %d of them by one link", total, link)
	}
	n.Set(0, "nvlink.3.rx_bytes", "4096")
	n.Set(0, "nvlink.4.rx_bytes", "1024")
	if total, link := field(t, device, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, math.MaxUint32), field(t, device, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 3); total != 5 || link != 4 {
		t.Errorf("%d KiB, %d of them by link 3", total, link)
	}
	expect(t, "a link too many", nvml.Return(ask(t, device, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, 18).NvmlReturn), nvml.ERROR_INVALID_ARGUMENT)
	expect(t, "a counter of later links", nvml.Return(ask(t, device, nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 0).NvmlReturn), nvml.ERROR_NOT_SUPPORTED)
}

func TestNVLink5Bytes(t *testing.T) {
	n := NewNode(t, 1)
	n.SetNode("model", "B200")
	n.Set(0, "nvlink.5.tx_bytes", "123456789")
	n.Set(0, "nvlink.5.errors.symbol", "7")
	n.Set(0, "nvlink.rx_bytes", "1800")
	device := gpu(t, open(t, n), 0)
	if bytes, errors := field(t, device, nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, 5), field(t, device, nvml.FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, 5); bytes != 123456789 || errors != 7 {
		t.Errorf("link 5 has sent %d bytes, with %d errors", bytes, errors)
	}
	if share := field(t, device, nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, 17); share != 100 {
		t.Errorf("a link has received %d of 1800 bytes", share)
	}
	expect(t, "a counter of earlier links", nvml.Return(ask(t, device, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, 0).NvmlReturn), nvml.ERROR_NOT_SUPPORTED)
}

func TestNVLinkEnds(t *testing.T) {
	n := NewNode(t, 2)
	n.Set(0, "nvlink.1.remote.gpu", "1")
	n.Set(0, "nvlink.2.state", "0")
	n.Set(0, "nvlink.2.errors.crc_flit", "9")
	library := open(t, n)
	device := gpu(t, library, 0)
	kind, ret := device.GetNvLinkRemoteDeviceType(0)
	must(t, ret)
	if kind != nvml.NVLINK_DEVICE_TYPE_SWITCH {
		t.Errorf("link 0 ends on a device of type %d", kind)
	}
	if kind, ret = device.GetNvLinkRemoteDeviceType(1); ret != nvml.SUCCESS || kind != nvml.NVLINK_DEVICE_TYPE_GPU {
		t.Errorf("link 1 ends on a device of type %d (%v)", kind, ret)
	}
	remote, ret := device.GetNvLinkRemotePciInfo(1)
	must(t, ret)
	own, ret := gpu(t, library, 1).GetPciInfo()
	must(t, ret)
	if remote.BusId != own.BusId {
		t.Errorf("link 1 ends on %v, and the GPU is %v", remote.BusId, own.BusId)
	}
	for link, want := range map[int]nvml.EnableState{1: nvml.FEATURE_ENABLED, 2: nvml.FEATURE_DISABLED} {
		state, ret := device.GetNvLinkState(link)
		must(t, ret)
		if state != want {
			t.Errorf("link %d is in state %d", link, state)
		}
	}
	_, ret = device.GetNvLinkState(18)
	expect(t, "a link too many", ret, nvml.ERROR_INVALID_ARGUMENT)
	if total, link := field(t, device, nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, 0), field(t, device, nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L2, 0); total != 9 || link != 9 {
		t.Errorf("%d errors, %d of them on link 2", total, link)
	}
}

//go:build cgo

package nvml

import (
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// The functions that tell of single links.
const (
	linkState  = "nvmlDeviceGetNvLinkState"
	remotePCI  = "nvmlDeviceGetNvLinkRemotePciInfo_v2"
	remoteType = "nvmlDeviceGetNvLinkRemoteDeviceType"
)

// linkStates counts the links that are up and those that are not. A link that
// sleeps because nothing goes over it is up.
func linkStates() row {
	f := field{id: nvml.FI_DEV_NVLINK_GET_STATE, perLink: true}
	r := valued(device.NVLinks, "", device.Fast, f)
	r.tell = func(p *probe, told []device.Reading) ([]device.Reading, nvml.Return) {
		if _, ret := p.countLinks(); ret != nvml.SUCCESS {
			return told, ret
		}
		p.fetchLinks(f)
		return p.countStates(told, func(link int) (bool, nvml.Return) {
			state, ret := p.value(f.id, uint32(link))
			return state != nvml.NVLINK_STATE_INACTIVE, ret
		})
	}
	return r
}

// linkStatesOneByOne is for libraries that do not know the field.
func linkStatesOneByOne(p *probe, told []device.Reading) ([]device.Reading, nvml.Return) {
	if _, ret := p.countLinks(); ret != nvml.SUCCESS {
		return told, ret
	}
	return p.countStates(told, func(link int) (bool, nvml.Return) {
		state, ret := p.device.GetNvLinkState(link)
		return state == nvml.FEATURE_ENABLED, ret
	})
}

// countStates tells how many of the links that answer are up. Of a GPU in MIG
// mode it tells nothing: the driver reports all of its links as inactive then,
// though nothing is wrong with them.
func (p *probe) countStates(told []device.Reading, up func(link int) (bool, nvml.Return)) ([]device.Reading, nvml.Return) {
	active, inactive := 0, 0
	for link := range p.past.links.count {
		switch is, ret := up(link); {
		case ret == nvml.SUCCESS && is:
			active++
		case ret == nvml.SUCCESS:
			inactive++
		case !unsupported(ret) && !unknown(ret):
			return told, ret
		}
	}
	if active+inactive == 0 {
		return told, nvml.ERROR_NOT_SUPPORTED
	}
	if !p.outsideMIG() {
		return told, nvml.ERROR_NO_DATA
	}
	return append(told,
		device.Reading{Quantity: device.NVLinks, Details: [2]string{"active"}, Value: float64(active)},
		device.Reading{Quantity: device.NVLinks, Details: [2]string{"inactive"}, Value: float64(inactive)},
	), nvml.SUCCESS
}

// outsideMIG reports whether the GPU is known not to be in MIG mode. It is
// asked after the states of the links, which the mode may have changed since
// the last read. That the call fails is told by who looks for MIG devices.
func (p *probe) outsideMIG() bool {
	if !p.has.has(migMode) {
		return true
	}
	mode, _, ret := p.device.GetMigMode()
	return unsupported(ret) || ret == nvml.SUCCESS && mode != nvml.DEVICE_MIG_ENABLE
}

// peer is where a link ends: on the GPU with the UUID, or on a switch, as
// which everything counts that is no GPU seen here. It is not known while
// asking fails.
func (p *probe) peer(link int) (string, bool) {
	l := p.past.links
	if peer, known := l.peers[link]; known {
		return peer, true
	}
	peer := "switch"
	if !p.endsOnSwitch(link) && p.has.has(remotePCI) {
		info, ret := p.device.GetNvLinkRemotePciInfo(link)
		if ret != nvml.SUCCESS && !unsupported(ret) {
			return "", false
		}
		if gpu, seen := p.peers[device.PCIAddress(characters(info.BusId[:]))]; ret == nvml.SUCCESS && seen {
			peer = gpu
		}
	}
	l.peers[link] = peer
	return peer, true
}

// endsOnSwitch reports whether the library says so.
func (p *probe) endsOnSwitch(link int) bool {
	if !p.has.has(remoteType) {
		return false
	}
	kind, ret := p.device.GetNvLinkRemoteDeviceType(link)
	return ret == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
}

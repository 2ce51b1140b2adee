//go:build cgo

package nvml

import (
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// nvlinkRows are the GPU's links together: what went over them, how many of
// them are up (read fast, so that one that goes down shows within seconds) and
// their errors.
//
// The kinds of errors are closed. Up to NVLink 4: crc_flit and crc_data (of
// flow control and of data), or crc where the two are not distinguished, replay,
// recovery. From NVLink 5 on: recovery, recovery_failed (the link is down),
// receive, malformed_packet, buffer_overrun, link_integrity and
// transmit_discard. Those that are corrected on the fly are not among them.
func nvlinkRows() []row {
	transmit, receive := linkBytes(true)
	rows := []row{
		fieldRow(device.NVLinkTransmit, "", device.Fast, field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scale: kibibyte, allOf: true}),
		fieldRow(device.NVLinkTransmit, "", device.Fast, transmit),
		fieldRow(device.NVLinkReceive, "", device.Fast, field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scale: kibibyte, allOf: true}),
		fieldRow(device.NVLinkReceive, "", device.Fast, receive),
		linkStates(),
		{quantity: device.NVLinks, tier: device.Fast, symbol: linkState, readAll: linkStatesOneByOne},
	}
	for _, e := range []struct {
		kind    string
		id      uint32
		perLink bool
	}{
		{"crc_flit", nvml.FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, false},
		{"crc_data", nvml.FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, false},
		{"crc", nvml.FI_DEV_NVLINK_ERROR_DL_CRC, true},
		{"replay", nvml.FI_DEV_NVLINK_ERROR_DL_REPLAY, true},
		{"replay", nvml.FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, false},
		{"recovery", nvml.FI_DEV_NVLINK_ERROR_DL_RECOVERY, true},
		{"recovery", nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, true},
		{"recovery", nvml.FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, false},
		{"recovery_failed", nvml.FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, true},
		{"receive", nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, true},
		{"malformed_packet", nvml.FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, true},
		{"buffer_overrun", nvml.FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, true},
		{"link_integrity", nvml.FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, true},
		{"transmit_discard", nvml.FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, true},
	} {
		r := fieldRow(device.NVLinkErrors, e.kind, device.Slow, field{id: e.id, scale: 1, perLink: e.perLink})
		if e.kind == "crc" {
			r.after = "crc_flit"
		}
		rows = append(rows, r)
	}
	return rows
}

const kibibyte = 1024

// linkBytes are the fields of what went over single links: bytes from NVLink
// 5 on, KiB before.
func linkBytes(newer bool) (transmit, receive field) {
	if newer {
		return field{id: nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, scale: 1, perLink: true},
			field{id: nvml.FI_DEV_NVLINK_COUNT_RCV_BYTES, scale: 1, perLink: true}
	}
	return field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scale: kibibyte, perLink: true},
		field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scale: kibibyte, perLink: true}
}

// linkRows are the links one by one.
func linkRows() []row {
	olderTransmit, olderReceive := linkBytes(false)
	newerTransmit, newerReceive := linkBytes(true)
	return []row{
		eachLink(device.NVLinkLinkTransmit, olderTransmit),
		eachLink(device.NVLinkLinkTransmit, newerTransmit),
		eachLink(device.NVLinkLinkReceive, olderReceive),
		eachLink(device.NVLinkLinkReceive, newerReceive),
	}
}

// eachLink reads a field of each link whose other end is known.
func eachLink(q device.Quantity, f field) row {
	r := fieldRow(q, "", device.Fast, f)
	r.readAll = func(p *probe, readings []device.Reading) ([]device.Reading, nvml.Return) {
		if _, ret := p.sumOfLinks(f); ret != nvml.SUCCESS {
			return readings, ret
		}
		last := p.history.links.of(f.id)
		for link := range last.counters {
			total, ok := last.total(link)
			if !ok {
				continue
			}
			if peer, ok := p.peer(link); ok {
				details := [2]string{strconv.Itoa(link), peer}
				readings = append(readings, device.Reading{Quantity: q, Details: details, Value: total})
			}
		}
		return readings, nvml.SUCCESS
	}
	return r
}

// The functions that read single links.
const (
	linkState  = "nvmlDeviceGetNvLinkState"
	remotePCI  = "nvmlDeviceGetNvLinkRemotePciInfo_v2"
	remoteType = "nvmlDeviceGetNvLinkRemoteDeviceType"
)

// linkStates counts the links that are up and those that are not. A link that
// sleeps because nothing goes over it is up.
func linkStates() row {
	f := field{id: nvml.FI_DEV_NVLINK_GET_STATE, perLink: true}
	r := fieldRow(device.NVLinks, "", device.Fast, f)
	r.readAll = func(p *probe, readings []device.Reading) ([]device.Reading, nvml.Return) {
		if _, ret := p.countLinks(); ret != nvml.SUCCESS {
			return readings, ret
		}
		p.fetchLinks(f)
		return p.countStates(readings, func(link int) (bool, nvml.Return) {
			state, ret := p.value(f.id, uint32(link))
			return state != nvml.NVLINK_STATE_INACTIVE, ret
		})
	}
	return r
}

// linkStatesOneByOne is for libraries that do not know the field.
func linkStatesOneByOne(p *probe, readings []device.Reading) ([]device.Reading, nvml.Return) {
	if _, ret := p.countLinks(); ret != nvml.SUCCESS {
		return readings, ret
	}
	return p.countStates(readings, func(link int) (bool, nvml.Return) {
		state, ret := p.device.GetNvLinkState(link)
		return state == nvml.FEATURE_ENABLED, ret
	})
}

// countStates appends how many of the links that answer are up. It appends
// nothing for a GPU in MIG mode: the driver then reports all links as inactive,
// although nothing is wrong with them.
func (p *probe) countStates(readings []device.Reading, up func(link int) (bool, nvml.Return)) ([]device.Reading, nvml.Return) {
	active, inactive := 0, 0
	for link := range p.history.links.count {
		switch ok, ret := up(link); {
		case ret == nvml.SUCCESS && ok:
			active++
		case ret == nvml.SUCCESS:
			inactive++
		case !unsupported(ret) && !unknown(ret):
			return readings, ret
		}
	}
	if active+inactive == 0 {
		return readings, nvml.ERROR_NOT_SUPPORTED
	}
	if !p.outsideMIG() {
		return readings, nvml.ERROR_NO_DATA
	}
	return append(readings,
		device.Reading{Quantity: device.NVLinks, Details: [2]string{"active"}, Value: float64(active)},
		device.Reading{Quantity: device.NVLinks, Details: [2]string{"inactive"}, Value: float64(inactive)},
	), nvml.SUCCESS
}

// outsideMIG reports whether the GPU is known not to be in MIG mode. It is
// read after the states of the links, because the mode may have changed them
// since the last read. The discovery of MIG devices reports a call that fails.
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
	l := p.history.links
	if peer, ok := l.peers[link]; ok {
		return peer, true
	}
	peer := "switch"
	if !p.endsOnSwitch(link) && p.has.has(remotePCI) {
		info, ret := p.device.GetNvLinkRemotePciInfo(link)
		if ret != nvml.SUCCESS && !unsupported(ret) {
			return "", false
		}
		if gpu, ok := p.peers[device.PCIAddress(characters(info.BusId[:]))]; ret == nvml.SUCCESS && ok {
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

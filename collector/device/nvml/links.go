//go:build cgo

package nvml

import (
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// nvlinkRows are the GPU's links together: what went over them, how many of
// them are up (told fast, so that one that goes down shows within seconds) and
// their errors.
//
// The kinds of errors are closed. Up to NVLink 4: crc_flit and crc_data (of
// flow control and of data), or crc where the two are not told apart, replay,
// recovery. From NVLink 5 on: recovery, recovery_failed (the link is down),
// receive, malformed_packet, buffer_overrun, link_integrity and
// transmit_discard. Those that are corrected on the fly are not among them.
func nvlinkRows() []row {
	transmit, receive := linkBytes(true)
	rows := []row{
		valued(device.NVLinkTransmit, "", device.Fast, field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, scale: kibibyte, allOf: true}),
		valued(device.NVLinkTransmit, "", device.Fast, transmit),
		valued(device.NVLinkReceive, "", device.Fast, field{id: nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX, scale: kibibyte, allOf: true}),
		valued(device.NVLinkReceive, "", device.Fast, receive),
		linkStates(),
		{quantity: device.NVLinks, tier: device.Fast, symbol: linkState, tell: linkStatesOneByOne},
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
		r := valued(device.NVLinkErrors, e.kind, device.Slow, field{id: e.id, scale: 1, perLink: e.perLink})
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

// eachLink tells a field of each link whose other end is known.
func eachLink(q device.Quantity, f field) row {
	r := valued(q, "", device.Fast, f)
	r.tell = func(p *probe, told []device.Reading) ([]device.Reading, nvml.Return) {
		if _, ret := p.sumOfLinks(f); ret != nvml.SUCCESS {
			return told, ret
		}
		last := p.past.links.of(f)
		for link, known := range last.known {
			if !known {
				continue
			}
			if peer, known := p.peer(link); known {
				details := [2]string{strconv.Itoa(link), peer}
				told = append(told, device.Reading{Quantity: q, Details: details, Value: last.total(link)})
			}
		}
		return told, nvml.SUCCESS
	}
	return r
}

// links are the counters of single links. One that does not answer any more
// counts on with its last value, and one that begins anew from there, so that
// their sum does not fall, until all of them have fallen at once: then the
// hardware began anew.
type links struct {
	count int            // -1: not known since the last look for GPUs
	peers map[int]string // by link, since the last look for GPUs
	last  map[uint32]*counters
}

// counters are the last values of one field, by link.
type counters struct {
	base  [nvml.NVLINK_MAX_LINKS]float64 // what a link had counted when it last began anew
	value [nvml.NVLINK_MAX_LINKS]float64 // since then
	known [nvml.NVLINK_MAX_LINKS]bool
}

func newLinks() *links {
	l := &links{last: make(map[uint32]*counters)}
	l.recount()
	return l
}

// recount makes the number of links, and where they end, be asked for again.
func (l *links) recount() { l.count, l.peers = -1, make(map[int]string) }

// of are the last values of a field.
func (l *links) of(f field) *counters {
	if l.last[f.id] == nil {
		l.last[f.id] = new(counters)
	}
	return l.last[f.id]
}

// total is what a link has counted.
func (c *counters) total(link int) float64 { return c.base[link] + c.value[link] }

// sum adds up the links. It makes no difference to it how many there are now.
func (c *counters) sum() (float64, nvml.Return) {
	sum, ret := 0.0, nvml.ERROR_NOT_SUPPORTED
	for link, known := range c.known {
		if known {
			sum, ret = sum+c.total(link), nvml.SUCCESS
		}
	}
	return sum, ret
}

// replace takes in newer values. A link whose own have fallen counts on from
// what it had, unless the values of all links have: then nothing that was
// before counts.
func (c *counters) replace(newer *counters) {
	all := true
	for link, known := range c.known {
		all = all && (!known || newer.known[link] && newer.value[link] < c.value[link])
	}
	if all {
		*c = *newer
		return
	}
	for link, value := range newer.value {
		if !newer.known[link] {
			continue
		}
		if value < c.value[link] {
			c.base[link] += c.value[link]
		}
		c.value[link], c.known[link] = value, true
	}
}

// countLinks asks how many links the GPU has, once between two looks for GPUs.
func (p *probe) countLinks() (int, nvml.Return) {
	l := p.past.links
	if l.count < 0 {
		count, ret := p.value(nvml.FI_DEV_NVLINK_LINK_COUNT, 0)
		if ret != nvml.SUCCESS {
			return 0, ret
		}
		l.count = min(max(int(count), 0), nvml.NVLINK_MAX_LINKS)
	}
	return l.count, nvml.SUCCESS
}

// sumOfLinks adds up a field over all links.
func (p *probe) sumOfLinks(f field) (float64, nvml.Return) {
	count, ret := p.countLinks()
	if ret != nvml.SUCCESS {
		return 0, ret
	}
	p.fetchLinks(f)
	var newer counters
	for link := range count {
		switch value, ret := p.value(f.id, uint32(link)); {
		case ret == nvml.SUCCESS:
			newer.value[link], newer.known[link] = value*f.scale, true
		case !unsupported(ret) && !unknown(ret):
			return 0, ret
		}
	}
	last := p.past.links.of(f)
	last.replace(&newer)
	return last.sum()
}

// fetchLinks asks for a field of all links at once, unless it is here.
func (p *probe) fetchLinks(f field) {
	for _, q := range p.questions {
		if q.id == f.id && q.scope != allLinks {
			return
		}
	}
	p.fetch(p.past.links.questions(f))
}

// questions are what a field that is read link by link is asked for.
func (l *links) questions(f field) []question {
	var questions []question
	for link := range l.count {
		questions = append(questions, question{f.id, uint32(link)})
	}
	return questions
}

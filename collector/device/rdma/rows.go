package rdma

import "github.com/dra-exporter/dra-exporter/collector/device"

// row maps a file of a port to a counter. A row that follows another one for
// the same quantity and detail is used only for ports without that one's file:
// two files of one port may count different things.
type row struct {
	quantity device.Quantity
	detail   string
	tier     device.Tier
	file     string
	scale    float64 // to the base unit
}

// same reports whether two rows have the same quantity and detail.
func (r row) same(other row) bool { return r.quantity == other.quantity && r.detail == other.detail }

// rows is the table of what a port counts. Data are in words of four octets,
// as InfiniBand defines it for PortXmitData and PortRcvData; adapters that do
// not have those count bytes under a name of their own.
func rows() []row {
	return append([]row{
		{device.NetworkTransmit, "", device.Fast, "counters/port_xmit_data", 4},
		{device.NetworkTransmit, "", device.Fast, "hw_counters/tx_bytes", 1},        // Broadcom, EFA
		{device.NetworkTransmit, "", device.Fast, "hw_counters/hw_tx_bytes_cnt", 1}, // Alibaba
		{device.NetworkReceive, "", device.Fast, "counters/port_rcv_data", 4},       //
		{device.NetworkReceive, "", device.Fast, "hw_counters/rx_bytes", 1},         //
		{device.NetworkReceive, "", device.Fast, "hw_counters/hw_rx_bytes_cnt", 1},  //
	}, errorRows()...)
}

// errorRows are the kinds of errors: those of InfiniBand's port counters, then
// those that RoCE adapters add. Each read of one is a question to the
// adapter's firmware, and nothing is accrued from them, so they are slow.
func errorRows() []row {
	var table []row
	for _, kind := range []struct{ name, file string }{
		{"symbol", "counters/symbol_error"},
		{"link_recovery", "counters/link_error_recovery"},
		{"link_downed", "counters/link_downed"},
		{"receive", "counters/port_rcv_errors"},
		{"receive_remote_physical", "counters/port_rcv_remote_physical_errors"},
		{"receive_switch_relay", "counters/port_rcv_switch_relay_errors"},
		{"receive_constraint", "counters/port_rcv_constraint_errors"},
		{"transmit_discard", "counters/port_xmit_discards"},
		{"transmit_constraint", "counters/port_xmit_constraint_errors"},
		{"link_integrity", "counters/local_link_integrity_errors"},
		{"buffer_overrun", "counters/excessive_buffer_overrun_errors"},
		{"vl15_dropped", "counters/VL15_dropped"},
		{"out_of_buffer", "hw_counters/out_of_buffer"},
		{"out_of_sequence", "hw_counters/out_of_sequence"},
		{"packet_sequence", "hw_counters/packet_seq_err"},
		{"ack_timeout", "hw_counters/local_ack_timeout_err"},
		{"rnr_nak_retry", "hw_counters/rnr_nak_retry_err"},
		{"icrc", "hw_counters/rx_icrc_encapsulated"},
	} {
		table = append(table, row{device.NetworkErrors, kind.name, device.Slow, kind.file, 1})
	}
	return table
}

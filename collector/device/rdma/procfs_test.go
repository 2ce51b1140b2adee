//go:build linux

package rdma

import (
	"testing"

	"github.com/prometheus/procfs/sysfs"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

// Another library that reads the same files returns the same values.
func TestAgreesWithProcfs(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	fs, err := sysfs.NewFS(tree.Root)
	if err != nil {
		t.Fatal(err)
	}
	class, err := fs.InfiniBandClass()
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"mlx5_0", "mlx5_1", "mlx5_2"} {
		observations, err := adapters(t, New(tree.Root))[i].Read(t.Context(), device.Slow)
		if err != nil {
			t.Fatal(err)
		}
		port := class[name].Ports[1]
		for _, test := range []struct {
			quantity device.Quantity
			detail   string
			theirs   *uint64
		}{
			{device.NetworkTransmit, "", port.Counters.PortXmitData},
			{device.NetworkReceive, "", port.Counters.PortRcvData},
			{device.NetworkErrors, "symbol", port.Counters.SymbolError},
			{device.NetworkErrors, "link_recovery", port.Counters.LinkErrorRecovery},
			{device.NetworkErrors, "link_downed", port.Counters.LinkDowned},
			{device.NetworkErrors, "receive", port.Counters.PortRcvErrors},
			{device.NetworkErrors, "receive_remote_physical", port.Counters.PortRcvRemotePhysicalErrors},
			{device.NetworkErrors, "receive_switch_relay", port.Counters.PortRcvSwitchRelayErrors},
			{device.NetworkErrors, "receive_constraint", port.Counters.PortRcvConstraintErrors},
			{device.NetworkErrors, "transmit_discard", port.Counters.PortXmitDiscards},
			{device.NetworkErrors, "transmit_constraint", port.Counters.PortXmitConstraintErrors},
			{device.NetworkErrors, "link_integrity", port.Counters.LocalLinkIntegrityErrors},
			{device.NetworkErrors, "buffer_overrun", port.Counters.ExcessiveBufferOverrunErrors},
			{device.NetworkErrors, "vl15_dropped", port.Counters.VL15Dropped},
			{device.NetworkErrors, "out_of_buffer", port.HwCounters.OutOfBuffer},
			{device.NetworkErrors, "out_of_sequence", port.HwCounters.OutOfSequence},
			{device.NetworkErrors, "packet_sequence", port.HwCounters.PacketSeqErr},
			{device.NetworkErrors, "ack_timeout", port.HwCounters.LocalAckTimeoutErr},
			{device.NetworkErrors, "rnr_nak_retry", port.HwCounters.RnrNakRetryErr},
			{device.NetworkErrors, "icrc", port.HwCounters.RxIcrcEncapsulated},
		} {
			want := -1.0
			if test.theirs != nil {
				want = float64(*test.theirs)
			}
			if got := value(observations, test.quantity, test.detail); got != want {
				t.Errorf("%s %s of %s is %v, procfs says %v", device.Specs()[test.quantity].Name, test.detail, name, got, want)
			}
		}
	}
}

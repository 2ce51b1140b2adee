package rdma

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/test/fakes/sysfstest"
)

const port1 = roce + "infiniband/mlx5_1/ports/1/"

func TestFaults(t *testing.T) {
	for _, test := range []struct {
		name   string
		break_ func(*sysfstest.Tree)
		gone   []string // beginnings of lines
		there  []string
		err    string // empty: it is no failure
	}{
		{"a counter that is missing is an absence",
			func(tree *sysfstest.Tree) { tree.Remove(port1 + "counters/port_xmit_data") },
			[]string{"network_transmit"}, []string{"network_receive"}, ""},
		{"a counter that cannot be read fails its quantity alone",
			func(tree *sysfstest.Tree) { tree.Break(port1 + "counters/port_xmit_data") },
			[]string{"network_transmit"}, []string{"network_receive", `network_links{port="1",state="active"} 1`},
			"read network_transmit of 0000:a1:00.0: read /bus/pci/devices/0000:a1:00.0/infiniband/mlx5_1/ports/1/counters/port_xmit_data: input/output error"},
		{"a broken counter is not replaced by another one",
			func(tree *sysfstest.Tree) {
				tree.Break(port1 + "counters/port_xmit_data")
				tree.Set(port1+"hw_counters/tx_bytes", "5\n")
			}, []string{"network_transmit"}, nil, "port_xmit_data"},
		{"nor one that is not available",
			func(tree *sysfstest.Tree) {
				tree.Set(port1+"counters/port_xmit_data", "N/A (no PMA)\n")
				tree.Set(port1+"hw_counters/tx_bytes", "5\n")
			}, []string{"network_transmit"}, []string{"network_receive"}, ""},
		{"garbage fails its quantity alone",
			func(tree *sysfstest.Tree) { tree.Set(port1+"hw_counters/out_of_buffer", "\xff\n") },
			[]string{`network_errors{kind="out_of_buffer"}`}, []string{`network_errors{kind="icrc"}`, "network_receive"}, "out_of_buffer: no number"},
		{"the last value before a wrap",
			func(tree *sysfstest.Tree) { tree.Set(port1+"counters/port_rcv_data", "18446744073709551615\n") },
			nil, []string{"network_receive{} 73786976294838210000"}, ""},
		{"more than 64 bits",
			func(tree *sysfstest.Tree) { tree.Set(port1+"counters/port_rcv_data", "18446744073709551616\n") },
			[]string{"network_receive"}, []string{"network_transmit"}, "port_rcv_data"},
		{"no counters at all",
			func(tree *sysfstest.Tree) { tree.Remove(port1 + "counters"); tree.Remove(port1 + "hw_counters") },
			[]string{"network_transmit", "network_receive", "network_errors"}, []string{`network_links{port="1",state="active"} 1`}, ""},
		{"a port without a state",
			func(tree *sysfstest.Tree) { tree.Remove(port1 + "state") }, []string{"network_links"}, []string{"network_receive"}, ""},
		{"a state that cannot be read",
			func(tree *sysfstest.Tree) { tree.Break(port1 + "state") }, []string{"network_links"}, []string{"network_receive"}, "read network_links of"},
		{"a state that is garbage",
			func(tree *sysfstest.Tree) { tree.Set(port1+"state", "ACTIVE\n") }, []string{"network_links"}, []string{"network_receive"}, "no number of a state"},
		{"an unknown state",
			func(tree *sysfstest.Tree) { tree.Set(port1+"state", "9: BEYOND\n") }, []string{"network_links"}, nil, "no state has the number 9"},
		{"a link that is down, and no more is known",
			func(tree *sysfstest.Tree) { tree.Set(port1+"state", "1: DOWN\n"); tree.Break(port1 + "phys_state") },
			nil, []string{`network_links{port="1",state="down"} 1`, `network_links{port="1",state="active"} 0`}, ""},
		{"no ports", func(tree *sysfstest.Tree) { tree.Remove(roce + "infiniband/mlx5_1/ports") },
			[]string{"network"}, []string{`device uuid="" vendor="mellanox"`}, "list the ports of 0000:a1:00.0"},
		{"nothing of its names", func(tree *sysfstest.Tree) {
			tree.Remove(roce + "infiniband/mlx5_1/hca_type")
			tree.Remove(roce + "infiniband/mlx5_1/board_id")
			tree.Remove(roce + "infiniband_verbs")
			tree.Remove("module/mlx5_core")
		}, nil, []string{`device uuid="" vendor="mellanox" model="15b3:1021" pci="0000:a1:00.0" minor=-1 render=-1 driver="" nodes=[]`}, ""},
		{"a function that cannot be identified", func(tree *sysfstest.Tree) { tree.Break(roce + "uevent") }, []string{"device"}, nil, "identify 0000:a1:00.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tree := sysfstest.Plant(t, "rdma")
			test.break_(tree)
			observations, err := adapters(t, New(tree.Root))[1].Read(t.Context(), device.Slow)
			text := sysfstest.Text(tree.Root, observations, err)
			for _, gone := range test.gone {
				if strings.Contains(text, "\n  "+gone) || strings.HasPrefix(text, gone) {
					t.Errorf("%s is there", gone)
				}
			}
			for _, there := range test.there {
				if !strings.Contains("\n  "+text, "\n  "+there) {
					t.Errorf("%s is not there", there)
				}
			}
			if (err != nil) != (test.err != "") || !strings.Contains(text, test.err) {
				t.Errorf("it does not say %q", test.err)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

func TestLinkStates(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	r := adapters(t, New(tree.Root))[1]
	for _, test := range []struct{ logical, physical, want string }{
		{"4: ACTIVE", "5: LinkUp", "active"},
		{"5: ACTIVE_DEFER", "5: LinkUp", "active"},
		{"3: ARMED", "5: LinkUp", "armed"},
		{"2: INIT", "5: LinkUp", "init"},
		{"1: DOWN", "2: Polling", "polling"},
		{"1: DOWN", "4: PortConfigurationTraining", "polling"},
		{"1: DOWN", "3: Disabled", "disabled"},
		{"1: DOWN", "1: Sleep", "down"},
		{"1: DOWN", "6: LinkErrorRecovery", "down"},
	} {
		tree.Set(port1+"state", test.logical+"\n")
		tree.Set(port1+"phys_state", test.physical+"\n")
		observations, err := r.Read(t.Context(), device.Fast)
		if err != nil {
			t.Fatal(err)
		}
		for _, state := range linkStates() {
			want := 0.0
			if state == test.want {
				want = 1
			}
			if got := value(observations, device.NetworkLinks, state); got != want {
				t.Errorf("%s and %s: %s is %v, want %v", test.logical, test.physical, state, got, want)
			}
		}
	}
}

// readLasting reads until a decrease has lasted.
func readLasting(t *testing.T, r device.Reader) (observations []device.Observation, err error) {
	t.Helper()
	for range 3 {
		observations, err = r.Read(t.Context(), device.Fast)
	}
	return observations, err
}

// A counter that decreases was reset; the ledger counts it from zero.
func TestCountersThatAreReset(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	r := adapters(t, New(tree.Root))[0]
	for _, step := range []struct {
		words string
		want  float64
	}{{"18446744073709551615", 4 * 18446744073709551615.0}, {"3", 12}, {"1000", 4000}} {
		tree.Set(infiniband+"infiniband/mlx5_0/ports/1/counters/port_rcv_data", step.words)
		observations, err := readLasting(t, r)
		if got := value(observations, device.NetworkReceive, ""); got != step.want || err != nil {
			t.Errorf("%s words are %v bytes (%v), want %v", step.words, got, err, step.want)
		}
	}
}

// udev may rename an RDMA device while it is in use.
func TestRenamedDevice(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	r := adapters(t, New(tree.Root))[1]
	before, err := r.Read(t.Context(), device.Fast)
	if err != nil {
		t.Fatal(err)
	}
	tree.Rename(roce+"infiniband/mlx5_1", roce+"infiniband/rocep161s0")
	after, err := r.Read(t.Context(), device.Fast)
	if got, want := sysfstest.Text(tree.Root, after, err), sysfstest.Text(tree.Root, before, nil); got != want {
		t.Errorf("after:\n%sbefore:\n%s", got, want)
	}
}

// Several devices on one function are one: their bytes are added up, their
// ports are distinguished, and removing one does not decrease the sum.
func TestSeveralDevicesOnOneFunction(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	r := adapters(t, New(tree.Root))[2]
	const second = virtual + "infiniband/mlx5_9/"
	tree.Set(second+"node_guid", "0000:0000:0000:0009\n")
	tree.Set(second+"ports/1/state", "4: ACTIVE\n")
	tree.Set(second+"ports/1/counters/port_xmit_data", "100\n")
	tree.Set(second+"ports/2/state", "2: INIT\n")
	tree.Set(second+"ports/2/counters/port_xmit_data", "1000\n")
	sent := func(want float64) string {
		t.Helper()
		observations, err := readLasting(t, r)
		if got := value(observations, device.NetworkTransmit, ""); got != want || err != nil {
			t.Errorf("%v bytes were sent (%v), want %v", got, err, want)
		}
		return sysfstest.Text(tree.Root, observations, err)
	}
	text := sent(4 * 1125)
	for _, line := range []string{`{port="mlx5_2/1",state="polling"} 1`, `{port="mlx5_9/1",state="active"} 1`, `{port="mlx5_9/2",state="init"} 1`} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is not there:\n%s", line, text)
		}
	}
	tree.Rename(virtual+"infiniband/mlx5_9", virtual+"infiniband/another")
	sent(4 * 1125)
	tree.Remove(virtual + "infiniband/another")
	sent(4 * 1125)
	tree.Set(virtual+"infiniband/mlx5_2/ports/1/counters/port_xmit_data", "30\n")
	sent(4 * 1130)
	tree.Set(virtual+"infiniband/mlx5_2/ports/1/counters/port_xmit_data", "1\n")
	sent(4)
}

// A pipe in the place of a file does not block the reader. When the file is back,
// it is read again.
func TestPipeInPlaceOfFile(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	found := adapters(t, New(tree.Root))
	tree.Pipe(port1 + "counters/port_rcv_data")
	_, err := found[1].Read(t.Context(), device.Fast)
	if err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
		t.Errorf("with a pipe: %v", err)
	}
	tree.Remove(port1 + "counters/port_rcv_data")
	tree.Set(port1+"counters/port_rcv_data", "3\n")
	observations, err := found[1].Read(t.Context(), device.Fast)
	if got := value(observations, device.NetworkReceive, ""); got != 12 || err != nil {
		t.Errorf("afterwards: %v (%v)", got, err)
	}
}

func FuzzParseState(f *testing.F) {
	for _, seed := range []string{"4: ACTIVE", "1: DOWN\n", "5", ": x", "-1: x", "256: x", "4:", "\xff:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		number, err := parseState(text)
		if err == nil && (number < 0 || number > 255) {
			t.Errorf("%q has the number %d", text, number)
		}
		if err != nil && len(err.Error()) > 400 {
			t.Errorf("%q makes a message of %d bytes", text, len(err.Error()))
		}
	})
}

// While the file that a port has had is missing, its other file is not read: it may
// have counted from another time.
func TestFilesAreChosenOnce(t *testing.T) {
	tree := sysfstest.Plant(t, "rdma")
	const folder = infiniband + "infiniband/mlx5_0/ports/1/"
	tree.Set(folder+"counters/port_rcv_data", "1000\n")
	tree.Set(folder+"hw_counters/rx_bytes", "7\n")
	r := adapters(t, New(tree.Root))[0]
	received := func() float64 {
		observations, _ := r.Read(t.Context(), device.Fast)
		return value(observations, device.NetworkReceive, "")
	}
	if got := received(); got != 4000 {
		t.Errorf("%v bytes, want 4000", got)
	}
	tree.Rename(folder+"counters/port_rcv_data", folder+"counters/hidden")
	for range 4 {
		received()
	}
	tree.Rename(folder+"counters/hidden", folder+"counters/port_rcv_data")
	if got := received(); got != 4000 {
		t.Errorf("%v bytes when the file is back, want 4000", got)
	}
}

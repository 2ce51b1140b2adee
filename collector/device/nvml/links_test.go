//go:build cgo

package nvml

import (
	"fmt"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// linesWith are the lines of a text with one of the words, each without what comes
// after the value.
func linesWith(text string, words ...string) string {
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		for _, word := range words {
			if strings.HasPrefix(line, "\t"+word) || strings.HasPrefix(line, word) {
				before, _, _ := strings.Cut(strings.TrimSpace(line), " (")
				lines = append(lines, strings.TrimSpace(before))
				break
			}
		}
	}
	return strings.Join(lines, "; ")
}

// remote makes the links of a GPU end where the addresses say.
func remote(d *server.Device, addresses ...string) {
	d.GetNvLinkRemoteDeviceTypeFunc = func(link int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		if addresses[link] == "" {
			return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
		}
		return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
	}
	d.GetNvLinkRemotePciInfoFunc = func(link int) (info nvml.PciInfo, _ nvml.Return) {
		for at, c := range []byte(addresses[link]) {
			info.BusId[at] = int8(c)
		}
		return info, nvml.SUCCESS
	}
}

// Each link has its peer: another GPU that is seen, else a switch.
func TestEachLink(t *testing.T) {
	for generation, s := range map[int]*server.Server{
		3: equip(fitted(dgxa100.New()), 3), 5: equip(fitted(dgxb200.New()), 5),
	} {
		d := gpu(s, 0)
		remote(d, "00000000:2A:00.0", "", "00000000:FF:00.0")
		from := NewOver(s, Options{Links: true})
		want := map[int]string{
			3: "nvlink_link_transmit 0/GPU-1 1024 bytes; nvlink_link_transmit 1/switch 1024 bytes; nvlink_link_transmit 2/switch 1024 bytes",
			5: "nvlink_link_transmit 0/GPU-1 202 bytes; nvlink_link_transmit 1/switch 202 bytes; nvlink_link_transmit 2/switch 202 bytes",
		}[generation]
		r := readers(t, from)[0]
		for range 5 {
			if got := linesWith(written(r.Read(t.Context(), device.Fast)), "nvlink_link_transmit"); got != want {
				t.Errorf("NVLink %d: the links are %s, want %s", generation, got, want)
			}
		}
		// While it does not report where a link ends, that is left out.
		d.GetNvLinkRemotePciInfoFunc = func(int) (nvml.PciInfo, nvml.Return) { return nvml.PciInfo{}, nvml.ERROR_UNKNOWN }
		if got := linesWith(read(t, from, 0, device.Fast), "nvlink_link_receive"); !strings.HasPrefix(got, "nvlink_link_receive 1/switch") || strings.Count(got, ";") != 0 {
			t.Errorf("NVLink %d: the links are %s", generation, got)
		}
		if calls := len(d.GetNvLinkRemoteDeviceTypeCalls()); calls > 3*3 {
			t.Errorf("NVLink %d: in three looks it was asked %d times where its three links end", generation, calls)
		}
		if got := linesWith(read(t, NewOver(s, Options{}), 0, device.Fast), "nvlink_link"); got != "" {
			t.Errorf("NVLink %d: without being asked there are %s", generation, got)
		}
	}
}

// A link that goes down shows at the next read, by the field and by the older
// call.
func TestLinksUp(t *testing.T) {
	s := equip(fitted(dgxh100.New()), 4)
	f := fieldsOf(4, 0)
	gpu(s, 0).GetFieldValuesFunc = f.answer
	older := gpu(s, 1)
	down := 0
	older.GetFieldValuesFunc = fieldsOf(3, 1).answer
	older.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		return map[bool]nvml.EnableState{true: nvml.FEATURE_ENABLED}[link >= down], nvml.SUCCESS
	}
	found := readers(t, NewOver(s, Options{}))
	expect := func(i, active, inactive int) {
		t.Helper()
		want := fmt.Sprintf("nvlinks active %d; nvlinks inactive %d", active, inactive)
		if got := linesWith(written(found[i].Read(t.Context(), device.Fast)), "nvlinks "); got != want {
			t.Errorf("GPU %d: %s, want %s", i, got, want)
		}
	}
	expect(0, 2, 1)
	f[[2]uint32{nvml.FI_DEV_NVLINK_GET_STATE, 0}] = nvml.NVLINK_STATE_INACTIVE
	expect(0, 1, 2)
	expect(1, 3, 0)
	down = 1
	expect(1, 2, 1)
	older.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	text := written(found[1].Read(t.Context(), device.Fast))
	if got := linesWith(text, "nvlinks", "error:"); got != "error: read nvlinks of GPU-1: ERROR_UNKNOWN" {
		t.Errorf("links that fail give %s", got)
	}
}

// In MIG mode the driver reports every link as inactive: that is no reading.
// Nor is there one where the mode is unknown. Where there is no such mode there
// is one.
func TestLinksInMIGMode(t *testing.T) {
	s := equip(fitted(dgxh100.New()), 4)
	up := fieldsOf(4, 0)
	gpu(s, 0).GetFieldValuesFunc = up.answer
	links := true
	gpu(s, 1).GetFieldValuesFunc = fieldsOf(3, 1).answer
	gpu(s, 1).GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) {
		return map[bool]nvml.EnableState{true: nvml.FEATURE_ENABLED}[links], nvml.SUCCESS
	}
	found := readers(t, NewOver(s, Options{}))
	expect := func(when string, want ...string) {
		t.Helper()
		for i := range want {
			text, err := found[i].Read(t.Context(), device.Fast)
			if got := linesWith(written(text, err), "nvlinks "); got != want[i] || (err != nil) != strings.Contains(when, "fails") {
				t.Errorf("GPU %d %s: %q and %v, want %q", i, when, got, err, want[i])
			}
		}
	}
	both := func(set func(d *server.Device)) { set(gpu(s, 0)); set(gpu(s, 1)) }
	expect("outside", "nvlinks active 2; nvlinks inactive 1", "nvlinks active 3; nvlinks inactive 0")

	for link := range uint32(3) {
		up[[2]uint32{nvml.FI_DEV_NVLINK_GET_STATE, link}] = nvml.NVLINK_STATE_INACTIVE
	}
	links = false
	both(func(d *server.Device) { slice(t, d, 0) })
	for range 3 {
		expect("in MIG mode", "", "")
	}

	modes := []func() (int, int, nvml.Return){gpu(s, 0).GetMigModeFunc, gpu(s, 1).GetMigModeFunc}
	both(func(d *server.Device) {
		d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_UNKNOWN }
	})
	expect("when the mode's call fails", "", "")

	for i, mode := range modes {
		gpu(s, i).GetMigModeFunc, gpu(s, i).MigMode = mode, nvml.DEVICE_MIG_DISABLE
	}
	expect("outside again", "nvlinks active 0; nvlinks inactive 3", "nvlinks active 0; nvlinks inactive 3")

	both(func(d *server.Device) {
		d.GetMigModeFunc = func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED }
	})
	expect("without such a mode", "nvlinks active 0; nvlinks inactive 3", "nvlinks active 0; nvlinks inactive 3")
}

// The counters of one link that start over (it was trained again, or they
// were reset) leave what went over it and over the others as it was.
func TestOneLinkIsReset(t *testing.T) {
	s := equip(fitted(dgxb200.New()), 5)
	f := fieldsOf(5, 0)
	gpu(s, 0).GetFieldValuesFunc = f.answer
	set := func(link uint32, value uint64) {
		f[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_XMIT_BYTES, link}] = value
		f[[2]uint32{nvml.FI_DEV_NVLINK_COUNT_RCV_ERRORS, link}] = value
	}
	from := NewOver(s, Options{Links: true})
	expect := func(when, sum, each string) {
		t.Helper()
		for range 2 { // a decrease has to last
			read(t, from, 0, device.Slow)
		}
		want := fmt.Sprintf("nvlink_link_transmit 0/switch %s bytes; nvlink_transmit  %s bytes; nvlink_errors receive %s", each, sum, sum)
		if got := linesWith(read(t, from, 0, device.Slow), "nvlink_transmit", "nvlink_errors receive", "nvlink_link_transmit 0/"); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	for link := range uint32(3) {
		set(link, 1000)
	}
	expect("at first", "3000", "1000")
	set(0, 5)
	expect("the first started over", "3005", "1005")
	set(0, 6)
	set(1, 7)
	expect("so did the second", "3013", "1006")
	set(0, 2)
	set(1, 1000)
	expect("and the first again", "4008", "1008")
	set(0, 1)
	set(1, 2)
	set(2, 3)
	expect("all of them did", "6", "1")
	set(0, 2)
	expect("they go on", "7", "2")
}

// A GPU without links has none that are inactive.
func TestNoLinks(t *testing.T) {
	s := fitted(dgxh100.New())
	f := fieldsOf(4, 0)
	f[[2]uint32{nvml.FI_DEV_NVLINK_LINK_COUNT, 0}] = 0
	gpu(s, 0).GetFieldValuesFunc = f.answer
	if got := linesWith(read(t, NewOver(s, Options{Links: true}), 0, device.Slow), "nvlinks", "nvlink_link"); got != "" {
		t.Errorf("no links are %s", got)
	}
}

// A GPU that knows the older and the newer counters reports each link once.
func TestEachLinkOnce(t *testing.T) {
	s := fitted(dgxh100.New())
	f := fieldsOf(4, 0)
	for key, number := range fieldsOf(5, 0) {
		f[key] = number
	}
	gpu(s, 0).GetFieldValuesFunc = f.answer
	text := linesWith(read(t, NewOver(s, Options{Links: true}), 0, device.Fast), "nvlink_")
	if strings.Count(text, "nvlink_link_transmit 0/") != 1 || strings.Count(text, "nvlink_link_receive 0/") != 1 || strings.Count(text, "nvlink_transmit ") != 1 {
		t.Errorf("the links are %s", text)
	}
}

package cost

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

const head = "dra-recording 1 1795521678082554\n"

func TestRead(t *testing.T) {
	text := head + `lacks nvmlDeviceGetGpuFabricInfo
0 0 nvmlErrorString 15 = 0 "GPU\x20is\x20lost"
1000 2000000 nvmlInit_v2 = 0
3000000 1000000 nvmlDeviceGetHandleByIndex_v2 0 * = 0 d0
4000000 900000000 nvmlEventSetWait_v2 ~e0 * ~100 = 10
`
	// A read each second, of which each fifth has both tiers: the calls take 1, 2
	// and 3 ms, with 1 ms between them. The fourth fast read takes 100 ms more.
	for i := range 10 {
		began, more := int64(1e9)*int64(i+1), int64(0)
		if i == 4 {
			more = 100e6
		}
		text += fmt.Sprintf("%d 1000000 nvmlDeviceGetMemoryInfo_v2 d0 *28000002 = 0 x00\n", began)
		text += fmt.Sprintf("%d %d nvmlGpmMetricsGet 1 d0.2 d0.2 #0100 = 0 x00\n", began+2e6, 2e6+more)
		if i%5 == 0 {
			text += fmt.Sprintf("%d 3000000 nvmlDeviceGetEnforcedPowerLimit d0 * = 0 700000\n", began+5e6)
		}
		text += fmt.Sprintf("%d 500000 nvmlDeviceGetMemoryInfo_v2 d10m1 *28000002 = 0 x00\n", began+8e6)
	}
	text += "99000000000 5000000 nvmlDeviceGetUUID d0 * = 0 \"GPU-1\"\nstopped limit\n"
	got, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	wantReads := []Reads{
		{"d0", Fast, 8, 2, 0.004, 0.104, 0.104},
		{"d0", Tiers, 2, 3, 0.008, 0.008, 0.008},
		{"d10", Fast, 10, 1, 0.0005, 0.0005, 0.0005},
	}
	if !reflect.DeepEqual(got.Reads, wantReads) {
		t.Errorf("reads: %+v, not %+v", got.Reads, wantReads)
	}
	wantCalls := []Calls{
		{"nvmlGpmMetricsGet", 10, 0.002, 0.102, 0.102},
		{"nvmlDeviceGetMemoryInfo_v2", 20, 0.0005, 0.001, 0.001},
		{"nvmlDeviceGetEnforcedPowerLimit", 2, 0.003, 0.003, 0.003},
		{"nvmlDeviceGetUUID", 1, 0.005, 0.005, 0.005},
		{"nvmlInit_v2", 1, 0.002, 0.002, 0.002},
		{"nvmlDeviceGetHandleByIndex_v2", 1, 0.001, 0.001, 0.001},
	}
	if !reflect.DeepEqual(got.Calls, wantCalls) {
		t.Errorf("calls: %+v, not %+v", got.Calls, wantCalls)
	}
}

func TestReadWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "the first line",
		"dra-recording 2 1\n":           "the first line",
		head + "5 nvmlInit_v2 = 0\n":    `line 2 of a recording: "5 nvmlInit_v2 = 0" has no times`,
		head + "5 5 nvmlInit_v2\n":      "is no call",
		head + "-5 5 nvmlInit_v2 = 0\n": "has no times",
	} {
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got, err := Read(strings.NewReader(head)); err != nil || len(got.Calls) > 0 || got.Calls == nil || got.Reads == nil {
		t.Errorf("of nothing: %+v, %v", got, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(head + "1000 2000000 nvmlDeviceGetMemoryInfo_v2 d0m1 * = 0 x00\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Read(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		for _, c := range got.Calls {
			if c.Count <= 0 || c.P50 > c.P99 || c.P99 > c.Most || c.P50 < 0 {
				t.Errorf("%+v", c)
			}
		}
		for _, r := range got.Reads {
			if r.Count <= 0 || r.P50 > r.P99 || r.P99 > r.Most || r.Calls < 1 {
				t.Errorf("%+v", r)
			}
		}
	})
}

package tpu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/tpu/runtimemetrics"
)

// at is the moment at which the metrics of these tests are read.
func at() clock.Instant { return clock.Instant{Wall: time.Unix(1_800_000_000, 0), Elapsed: time.Hour} }

func double(id int64, value float64) *runtimemetrics.Metric {
	return &runtimemetrics.Metric{
		Attribute: attribute(id), Gauge: &runtimemetrics.Gauge{Value: &runtimemetrics.Gauge_AsDouble{AsDouble: value}},
	}
}

func integer(id, value int64) *runtimemetrics.Metric {
	return &runtimemetrics.Metric{
		Attribute: attribute(id), Gauge: &runtimemetrics.Gauge{Value: &runtimemetrics.Gauge_AsInt{AsInt: value}},
	}
}

func attribute(id int64) *runtimemetrics.Attribute {
	return &runtimemetrics.Attribute{Key: "device-id", Value: &runtimemetrics.AttrValue{Attr: &runtimemetrics.AttrValue_IntAttr{IntAttr: id}}}
}

func response(metrics ...*runtimemetrics.Metric) *runtimemetrics.MetricResponse {
	return &runtimemetrics.MetricResponse{Metric: &runtimemetrics.TPUMetric{Metrics: metrics}}
}

// linesOf has a line for each reading, sorted.
func linesOf(chips []device.Observation) []string {
	var lines []string
	for _, chip := range chips {
		for _, r := range chip.Readings {
			lines = append(lines, fmt.Sprintf("%s %s %v", chip.Device.Published.Device, device.Specs()[r.Quantity].Name, r.Value))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestObserve(t *testing.T) {
	read := device.Window{From: time.Hour - time.Second, To: time.Hour}
	for name, c := range map[string]struct {
		duty, used, total *runtimemetrics.MetricResponse
		want, err         string
	}{
		"a core in a chip": {
			duty: response(double(0, 12.5), double(1, 0)), used: response(integer(1, 20), integer(0, 10)), total: response(integer(0, 100), integer(1, 100)),
			want: "0 memory_size 100\n0 memory_used 10\n0 utilization 0.125\naccel1 memory_size 100\naccel1 memory_used 20\naccel1 utilization 0",
		},
		"two cores in a chip": {
			duty: response(double(0, 50), double(1, 100)),
			used: response(integer(0, 1), integer(1, 2), integer(2, 3), integer(3, 4)), total: response(integer(0, 10), integer(1, 10), integer(2, 10), integer(3, 10)),
			want: "0 memory_size 20\n0 memory_used 3\n0 utilization 0.5\naccel1 memory_size 20\naccel1 memory_used 7\naccel1 utilization 1",
		},
		"another number of cores": {
			duty: response(double(0, 50), double(1, 50)), used: response(integer(0, 1)), total: response(integer(0, 1), integer(1, 1), integer(2, 1)),
			want: "0 utilization 0.5\naccel1 utilization 0.5", err: "2 duty cycles, 1 used and 3 total sizes of memory do not fit together",
		},
		"a core is missing": {
			duty: response(double(0, 50), double(1, 50)), used: response(integer(0, 1), integer(2, 1)), total: response(integer(0, 5), integer(2, 5)),
			want: "0 memory_size 5\n0 memory_used 1\n0 utilization 0.5\naccel1 utilization 0.5",
		},
		"an impossible duty cycle": {
			duty: response(double(0, 101)), used: response(integer(0, 1)), total: response(integer(0, 5)),
			want: "0 memory_size 5\n0 memory_used 1", err: "the duty cycle of the chip 0 is 101 %",
		},
		"nothing": {err: "0 duty cycles"},
	} {
		t.Run(name, func(t *testing.T) {
			var values [3]map[int64]metricValue
			for i, r := range []*runtimemetrics.MetricResponse{c.duty, c.used, c.total} {
				var err error
				if values[i], err = decodeValues(r, read, at()); err != nil {
					t.Fatal(err)
				}
			}
			chips, err := observe(values[0], values[1], values[2], func(name string) bool { return name == "accel1" })
			if got := strings.Join(linesOf(chips), "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got the error %v, want %q", err, c.err)
			}
			for _, chip := range chips {
				for _, r := range chip.Readings {
					if r.Measured != read {
						t.Errorf("%+v is not measured when it was read", r)
					}
				}
			}
		})
	}
}

func TestValues(t *testing.T) {
	at := at()
	stamped := func(age time.Duration) *runtimemetrics.Metric {
		m := double(0, 1)
		m.Timestamp = timestamppb.New(at.Wall.Add(-age))
		return m
	}
	many := make([]*runtimemetrics.Metric, 2*maxChips+1)
	for i := range many {
		many[i] = double(int64(i), 1)
	}
	for name, c := range map[string]struct {
		response *runtimemetrics.MetricResponse
		want     map[int64]metricValue
		err      string
	}{
		"a time stamp":      {response(stamped(10 * time.Second)), map[int64]metricValue{0: {1, device.Window{From: time.Hour - 10*time.Second, To: time.Hour - 10*time.Second}}}, ""},
		"an old time stamp": {response(stamped(2 * time.Minute)), map[int64]metricValue{}, ""},
		"no response":       {nil, map[int64]metricValue{}, ""},
		"twice":             {response(double(3, 1), double(3, 1)), nil, "the device 3 is there twice"},
		"negative number":   {response(double(-1, 1)), nil, "the device -1"},
		"large number":      {response(double(2*maxChips, 1)), nil, "the device 128"},
		"many":              {response(many...), nil, "129 devices are more than 128"},
		"no value":          {response(&runtimemetrics.Metric{}), nil, "the value of the device 0 is no number"},
		"negative":          {response(double(0, -1)), nil, "the value of the device 0 is -1"},
		"not a number":      {response(double(0, math.NaN())), nil, "the value of the device 0 is NaN"},
		"infinite":          {response(double(0, math.Inf(1))), nil, "the value of the device 0 is +Inf"},
	} {
		got, err := decodeValues(c.response, device.Window{}, at)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: got %v, want %s", name, err, c.err)
			}
			continue
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// FuzzResponse maps foreign responses: nothing may panic, and no reading may be out
// of its range.
func FuzzResponse(f *testing.F) {
	for _, r := range []*runtimemetrics.MetricResponse{response(double(0, 50), integer(1, 7)), response(integer(0, 1<<40))} {
		text, err := proto.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, duty, memory []byte) {
		var values [2]map[int64]metricValue
		for i, text := range [][]byte{duty, memory} {
			var r runtimemetrics.MetricResponse
			if proto.Unmarshal(text, &r) != nil {
				return
			}
			var err error
			if values[i], err = decodeValues(&r, device.Window{}, at()); err != nil {
				return
			}
		}
		chips, _ := observe(values[0], values[1], values[1], func(string) bool { return false })
		for _, chip := range chips {
			for _, r := range chip.Readings {
				if !(r.Value >= 0) || math.IsInf(r.Value, 0) || r.Quantity == device.Utilization && r.Value > 1 {
					t.Fatalf("the reading %+v", r)
				}
			}
		}
	})
}

package plugin

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics"
	"github.com/dra-exporter/dra-exporter/plugin/devicemetrics/v1alpha1"
)

// examine examines the test's driver for a time that a test can wait for.
func examine(t *testing.T, folder string) Examination {
	l := quick()
	l.burst = 15
	return Examine(t.Context(), filepath.Join(folder, testDriver+suffix), ExamineOptions{
		Duration: 700 * time.Millisecond, Interval: 100 * time.Millisecond, Clock: clock.System(), limits: l,
	})
}

// The kit complies with the specification.
// What listens on the socket need not be a gRPC server.
func TestExamineAnotherProgram(t *testing.T) {
	for name, answer := range map[string]string{"closes": "", "text": "220 ready\r\n", "HTTP/1.1": "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "binary": strings.Repeat("\x00\xff", 4096)} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), testDriver+".sock")
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = connection.Write([]byte(answer))
					_ = connection.Close()
				}
			}()
			defer func() { _ = listener.Close(); <-ended }()
			x := Examine(t.Context(), path, ExamineOptions{Duration: time.Second, Clock: clock.System(), limits: quick()})
			if x.Failed == nil && len(x.Violations) == 0 || x.Reports != 0 {
				t.Errorf("got %+v", x)
			}
		})
	}
}

func TestExamineTheKit(t *testing.T) {
	folder := t.TempDir()
	var reads atomic.Int64
	serveKit(t, folder, testDriver, func() []devicemetrics.Device {
		state, used := devicemetrics.Degraded, uint64(5)
		return []devicemetrics.Device{{
			Pool: "node-1", Name: "gpu-0", UUID: "GPU-0", PCIAddress: "0000:01:00.0", Vendor: "example",
			Readings: []devicemetrics.Reading{
				{Quantity: devicemetrics.Energy, Value: float64(reads.Add(1) % 3)}, // begins again and again
				{Quantity: devicemetrics.Temperature, Details: []string{"gpu"}, Value: -5},
			},
			Health:    []devicemetrics.HealthSignal{{Name: "link", State: state, Reason: "one of two lanes"}},
			Processes: []devicemetrics.Process{{PID: 7, MemoryBytes: &used}},
		}}
	})
	eventually(t, "the socket", func() bool {
		_, err := os.Lstat(filepath.Join(folder, testDriver+suffix))
		return err == nil
	})
	x := examine(t, folder)
	if x.Failed != nil || len(x.Violations) > 0 || len(x.Notes) > 0 || x.Driver != testDriver || x.Devices != 1 || x.Reports < 2 || x.Readings != 5 || x.Longest == 0 {
		t.Errorf("%+v", x)
	}
}

// Each wrong server violates the rule that it is meant to violate, and no other.
func TestExamineWrongServers(t *testing.T) {
	described := func(change func(*v1alpha1.Description)) func(watchStream) error {
		return func(s watchStream) error {
			message := description("gpu-0")
			change(message)
			if err := s.Send(&v1alpha1.WatchResponse{Message: &v1alpha1.WatchResponse_Description{Description: message}}); err != nil {
				return err
			}
			return hold(s, live(reading("power", 70)))
		}
	}
	reports := func(change func(*v1alpha1.Report)) func(watchStream) error {
		return func(s watchStream) error {
			if err := describe(s, "gpu-0"); err != nil {
				return err
			}
			report := live()
			change(report)
			return hold(s, report)
		}
	}
	reads := func(readings ...*v1alpha1.Reading) func(watchStream) error {
		return reports(func(r *v1alpha1.Report) { r.Devices[0].Readings = readings })
	}
	with := func(r *v1alpha1.Reading, change func(*v1alpha1.Reading)) *v1alpha1.Reading {
		change(r)
		return r
	}
	falls := func(s watchStream) error {
		if err := errors.Join(describe(s, "gpu-0"), send(s, live(reading("energy", 5)))); err != nil {
			return err
		}
		return hold(s, live(reading("energy", 4)))
	}
	streams := &atomic.Int64{}
	wait := func(s watchStream) error { <-s.Context().Done(); return nil }
	for name, test := range map[string]struct {
		watch func(watchStream) error
		rule  string
	}{
		"hangs":                  {wait, ruleFirst},
		"report first":           {func(s watchStream) error { return hold(s, live()) }, ruleFirst},
		"silent":                 {func(s watchStream) error { return errors.Join(describe(s, "gpu-0"), wait(s)) }, ruleInterval},
		"ends":                   {func(s watchStream) error { return describe(s, "gpu-0") }, ruleStream},
		"another service":        {nil, ruleService},
		"floods":                 {func(s watchStream) error { return flood(s) }, ruleRate},
		"too large":              {reports(func(r *v1alpha1.Report) { r.Error = strings.Repeat("a", 5<<20) }), ruleMessageSize},
		"another driver":         {described(func(d *v1alpha1.Description) { d.Driver = "gpu.nvidia.com" }), ruleDriver},
		"device twice":           {described(func(d *v1alpha1.Description) { d.Devices = append(d.Devices, d.Devices[0]) }), ruleUnique},
		"no pool":                {described(func(d *v1alpha1.Description) { d.Devices[0].Pool = "" }), rulePool},
		"no DNS label":           {described(func(d *v1alpha1.Description) { d.Devices[0].Name = "GPU 0" }), ruleName},
		"PCI address":            {described(func(d *v1alpha1.Description) { d.Devices[0].PciAddress = "1:0.0" }), rulePCI},
		"a parent of itself":     {described(func(d *v1alpha1.Description) { d.Devices[0].Parent = "gpu-0" }), ruleParent},
		"control characters":     {described(func(d *v1alpha1.Description) { d.Devices[0].Model = "a\nb" }), ruleText},
		"long UUID":              {described(func(d *v1alpha1.Description) { d.Devices[0].Uuid = strings.Repeat("a", 129) }), "uuid, model, parent 128 bytes"},
		"kind of an extension":   {described(func(d *v1alpha1.Description) { d.Extensions = []*v1alpha1.Extension{{Name: "fans"}} }), ruleKind},
		"name of an extension":   {described(func(d *v1alpha1.Description) { d.Extensions = []*v1alpha1.Extension{{Name: "Fans"}} }), ruleExtensionName},
		"no time":                {reports(func(r *v1alpha1.Report) { r.Measured = nil }), ruleMeasured},
		"not described":          {reports(func(r *v1alpha1.Report) { r.Devices[0].Device = 1 }), ruleIndex},
		"reported twice":         {reports(func(r *v1alpha1.Report) { r.Devices = append(r.Devices, r.Devices[0]) }), ruleOnce},
		"reading twice":          {reads(reading("power", 1), reading("power", 2)), ruleReadings},
		"percent":                {reads(reading("utilization", 50)), ruleRatio},
		"not finite":             {reads(reading("power", math.Inf(1))), ruleValue},
		"negative":               {reads(reading("memory_used", -1)), ruleValue},
		"details":                {reads(reading("temperature", 1)), ruleDetails},
		"start of a gauge":       {reads(with(reading("power", 1), func(r *v1alpha1.Reading) { r.StartTime = timestamppb.Now() })), ruleStart},
		"invalid time":           {reads(with(reading("power", 1), func(r *v1alpha1.Reading) { r.Measured = &timestamppb.Timestamp{Nanos: -1} })), ruleOwnTime},
		"two names":              {reads(&v1alpha1.Reading{Quantity: "power", Extension: "fans"}), ruleQuantity},
		"extension not declared": {reads(&v1alpha1.Reading{Extension: "fans"}), ruleDeclared},
		"no quantity":            {reads(&v1alpha1.Reading{}), ruleQuantity},
		"counter falls":          {falls, ruleFell},
		"counter falls at restart": {func(s watchStream) error {
			return errors.Join(describe(s, "gpu-0"), hold(s, live(reading("energy", float64(9-streams.Add(1))))))
		}, ruleFell},
		"signal": {reports(func(r *v1alpha1.Report) { r.Devices[0].Health = []*v1alpha1.HealthSignal{{Name: "the link"}} }), ruleSignal},
		"process": {reports(func(r *v1alpha1.Report) {
			r.Devices[0].Processes = &v1alpha1.Processes{Processes: []*v1alpha1.Process{{Pid: 0}}}
		}), rulePID},
		"share of a process": {reports(func(r *v1alpha1.Report) {
			r.Devices[0].Processes = &v1alpha1.Processes{Processes: []*v1alpha1.Process{{Pid: 1, Utilization: proto.Float64(70)}}}
		}), ruleShare},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			serve(t, folder, testDriver, test.watch)
			x := examine(t, folder)
			if x.Failed != nil || len(x.Violations) != 1 || x.Violations[0].Rule != test.rule || x.Violations[0].Text == "" {
				t.Errorf("%+v, want a violation of: %s", x, test.rule)
			}
		})
	}
}

func flood(stream watchStream) error {
	err := describe(stream, "gpu-0")
	for err == nil {
		err = send(stream, live())
	}
	return err
}

// What is allowed and looks like a mistake is noted.
func TestExamineNotes(t *testing.T) {
	folder, streams := t.TempDir(), atomic.Int64{}
	serve(t, folder, testDriver, func(s watchStream) error {
		names := []string{"gpu-0", "gpu-1"}[:streams.Add(1)]
		report := live(reading("of_a_later_version", 1), reading("power", 1))
		report.Devices[0].Readings[1].Measured = timestamppb.New(time.Now().Add(-time.Hour))
		report.Measured = timestamppb.New(time.Now().Add(time.Hour))
		report.Error = "half of it"
		return errors.Join(describe(s, names...), hold(s, report))
	})
	x := examine(t, folder)
	if x.Failed != nil || len(x.Violations) > 0 {
		t.Errorf("%+v", x)
	}
	for _, want := range []string{`quantity "of_a_later_version"`, "older than 1m30s", "in the future", "half of it", "other devices than the first"} {
		if !strings.Contains(strings.Join(x.Notes, "\n"), want) {
			t.Errorf("the notes %q have no %q", x.Notes, want)
		}
	}
}

// What cannot be examined is an error.
func TestExamineNothing(t *testing.T) {
	folder := t.TempDir()
	if x := examine(t, folder); !errors.Is(x.Failed, os.ErrNotExist) {
		t.Errorf("no file: %+v", x)
	}
	listen(t, folder, "Upper").Close()
	file := filepath.Join(folder, testDriver+suffix)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if x := examine(t, folder); x.Failed != nil || len(x.Violations) != 1 || x.Violations[0].Rule != ruleSocket {
		t.Errorf("a file: %+v", x)
	}
	for name, rule := range map[string]string{"socket": ruleSocket, "Upper.sock": ruleSocketName} {
		listener := listen(t, folder, strings.TrimSuffix(name, suffix))
		path := filepath.Join(folder, strings.TrimSuffix(name, suffix)+suffix)
		if name == "socket" {
			if err := os.Rename(path, filepath.Join(folder, name)); err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(folder, name)
		}
		x := Examine(t.Context(), path, ExamineOptions{Duration: time.Second, Clock: clock.System()})
		if len(x.Violations) != 1 || x.Violations[0].Rule != rule {
			t.Errorf("%s: %+v", name, x)
		}
		listener.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	serve(t, folder, testDriver, flood)
	if x := Examine(ctx, file, ExamineOptions{Duration: time.Second, Clock: clock.System()}); !errors.Is(x.Failed, context.Canceled) {
		t.Errorf("ended: %+v", x)
	}
}

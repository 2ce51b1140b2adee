package exporter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// socketFolder is a folder with a short path: that of a socket has 107 bytes at most.
func socketFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "d")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

func listen(t *testing.T, folder, driver string) *net.UnixListener {
	t.Helper()
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, driver+suffix)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

// serveSocket serves a page on a driver's socket.
func serveSocket(t *testing.T, folder, driver, page string) *fakeExporter {
	t.Helper()
	fake := &fakeExporter{}
	fake.set(page)
	fake.Server = &httptest.Server{Listener: listen(t, folder, driver), Config: &http.Server{Handler: fake, ReadHeaderTimeout: time.Minute}}
	fake.Start()
	t.Cleanup(fake.Close)
	return fake
}

func openFolder(t *testing.T, folder string, now clock.Clock, configs ...Config) (*Source, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	s, err := New(Options{Exporters: configs, Folder: folder, Extensions: []string{"fan_speed_rpm"}, Clock: now, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return s, log
}

// readSource reads all pages of a source: their values by key, or their errors.
func readSource(t *testing.T, s *Source) (values map[string]string, reasons map[string]source.Reason) {
	t.Helper()
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	values, reasons = make(map[string]string), make(map[string]source.Reason)
	for _, r := range readers {
		r.(*page).client.timeout = time.Minute // pages come on a slow machine, too
		devices, err := r.Read(t.Context(), device.Fast)
		values[r.Key()] = strings.Join(linesOf(devices), " ")
		if err != nil {
			reasons[r.Key()] = source.ReasonOf(err)
			values[r.Key()] += " " + err.Error()
		}
	}
	return values, reasons
}

// Sockets come, are replaced and go, and each driver fails alone.
func TestSockets(t *testing.T) {
	folder, now := socketFolder(t), &fakeClock{}
	s, log := openFolder(t, folder, now.now)
	if _, err := s.Readers(t.Context()); source.ReasonOf(err) != source.ReasonLibraryMissing || !strings.Contains(err.Error(), folder) {
		t.Errorf("an empty folder: %v", err)
	}
	fake := serveSocket(t, folder, testDriver, gpu("power_watts", "", 70)+gpu("ext_fan_speed_rpm", "", 9))
	liar := serveSocket(t, folder, "liar.example.com", gpu("power_watts", "", 1)+strings.ReplaceAll(gpu("power_watts", "", 2), testDriver, "liar.example.com"))
	const own, other = testDriver, "liar.example.com"
	values, reasons := readSource(t, s)
	if values[own] != "gpu-0 extension fan_speed_rpm,gauge 9 gpu-0 power 70" {
		t.Errorf("got %q", values[own])
	}
	if !strings.HasPrefix(values[other], "gpu-0 power 2 exporter liar.example.com at unix://"+folder+"/liar.example.com.sock: ") ||
		!strings.Contains(values[other], `the label driver is "gpu.example.com", and not "liar.example.com" (dra-exporter check exporter --driver=liar.example.com unix://`) || reasons[other] != source.ReasonInvalid {
		t.Errorf("got %q, %q", values[other], reasons[other])
	}
	liar.set("nonsense\n")
	fake.Close() // its socket is gone
	replaced := serveSocket(t, folder, testDriver, gpu("power_watts", "", 80))
	now.turn(time.Second)
	if values, reasons = readSource(t, s); values[own] != "gpu-0 power 80" || reasons[other] != source.ReasonInvalid || strings.HasPrefix(values[other], "gpu-0") {
		t.Errorf("after a restart: %v", values)
	}
	if requests := replaced.requests.Load(); requests != 1 {
		t.Errorf("%d requests", requests)
	}
	readers, err := s.Readers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replaced.Close()
	liar.Close()
	if gone, err := s.Readers(t.Context()); err != nil || len(gone) != 0 {
		t.Errorf("without sockets: %v, %v", gone, err)
	}
	if got := log.String(); strings.Count(got, "has a socket") != 2 || strings.Count(got, "is gone") != 2 {
		t.Errorf("the log is\n%s", got)
	}
	now.turn(time.Minute)
	for _, r := range readers { // a read that was under way
		if _, err := r.Read(t.Context(), device.Fast); source.ReasonOf(err) != source.ReasonUnavailable {
			t.Errorf("got %v", err)
		}
	}
}

// Files that are no sockets of drivers are logged once, and are not opened.
func TestFilesOfTheFolder(t *testing.T) {
	folder := socketFolder(t)
	configured, err := Driver("known.example.com=http://127.0.0.1:1/metrics", 0)
	if err != nil {
		t.Fatal(err)
	}
	s, log := openFolder(t, folder, clock.System(), configured)
	for _, name := range []string{"file.example.com.sock", "README", ".hidden.sock"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/dev/null", filepath.Join(folder, "link.example.com.sock")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Upper.example.com", "..", strings.Repeat("a", 64), "dot..dot", "known.example.com"} {
		listen(t, folder, name)
	}
	for range 2 { // the configured one has a reader, without a socket
		if readers, err := s.Readers(t.Context()); err != nil || len(readers) != 1 {
			t.Errorf("%v, %v", readers, err)
		}
	}
	if got := strings.Count(log.String(), "a file is not used as a driver's socket"); got != 6 {
		t.Errorf("%d files are logged, want 6:\n%s", got, log)
	}
	crashed := listen(t, folder, testDriver) // a server that has crashed leaves its socket
	crashed.SetUnlinkOnClose(false)
	crashed.Close()
	if _, reasons := readSource(t, s); reasons[testDriver] != source.ReasonUnavailable {
		t.Errorf("got %v", reasons)
	}
	noFolder, _ := openFolder(t, "/proc/self/environ", clock.System(), configured)
	if readers, err := noFolder.Readers(t.Context()); err == nil || len(readers) != 1 || source.ReasonOf(err) == source.ReasonLibraryMissing {
		t.Errorf("a file instead of the folder: %v, %v", readers, err)
	}
}

// More drivers than the limit are not read.
func TestManyDrivers(t *testing.T) {
	folder := socketFolder(t)
	s, log := openFolder(t, folder, clock.System())
	for i := range maxDrivers + 2 {
		listen(t, folder, fmt.Sprintf("d%d", i))
	}
	readers, err := s.Readers(t.Context())
	if err != nil || len(readers) != maxDrivers || strings.Count(log.String(), "64 drivers are read already") != 2 {
		t.Errorf("%d readers, %v", len(readers), err)
	}
}

// A driver's page at an address is given by a flag, or by an entry without rules.
func TestDriverAtAddress(t *testing.T) {
	fake, now := serve(t, gpu("power_watts", "", 70)), &fakeClock{}
	flag, err := Driver(testDriver+"="+fake.URL, 0)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := Parse([]byte("exporters:\n- {driver: "+testDriver+", url: '"+fake.URL+"', interval: 2s}\n"), nil)
	if err != nil || entry[0].Name != testDriver || entry[0].Every != 2*time.Second {
		t.Fatalf("got %+v, %v", entry, err)
	}
	for _, config := range []Config{flag, entry[0]} {
		s, _ := openFolder(t, "", now.now, config)
		if values, _ := readSource(t, s); values[testDriver] != "gpu-0 power 70" {
			t.Errorf("got %v", values)
		}
	}
	fake.set("up 1\n")
	s, _ := openFolder(t, "", now.now, flag)
	if values, reasons := readSource(t, s); !strings.Contains(fmt.Sprint(values), "no series on the page is of a device of the driver") || len(reasons) != 1 {
		t.Errorf("got %v", values)
	}
	for _, text := range []string{testDriver, "Upper=http://127.0.0.1:1", testDriver + "=http://example.com:80/", testDriver + "=ftp://127.0.0.1:1"} {
		if _, err := Driver(text, 0); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
	for text, want := range map[string]string{
		"{driver: " + testDriver + "}":                                          "url is missing",
		"{driver: A, url: 'http://127.0.0.1:1'}":                                "line 2: driver is \"A\", which is not the name of a DRA driver",
		"{driver: " + testDriver + ", url: 'http://127.0.0.1:1', vendor: acme}": "vendor",
	} {
		if _, err := Parse([]byte("exporters:\n- "+text+"\n"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	if _, err := New(Options{Extensions: []string{"Fan"}, Clock: clock.System()}); err == nil {
		t.Error("an extension with a wrong name: no error")
	}
}

// examine examines the page that a driver serves on its socket.
func examine(t *testing.T, folder, file, driver string) Examination {
	t.Helper()
	x, err := Examine(t.Context(), "unix://"+filepath.Join(folder, file), ExamineOptions{Driver: driver, Interval: 20 * time.Millisecond, Duration: 100 * time.Millisecond, Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A good page has no violations; a doubtful one has notes.
func TestExamine(t *testing.T) {
	folder := socketFolder(t)
	fake := serveSocket(t, folder, testDriver, gpu("power_watts", "", 70)+gpu("energy_joules_total", "", 70)+gpu("ext_frames_total", "", 70)+gpu("process_utilization_ratio", `pid="7"`, 0.5))
	x := examine(t, folder, testDriver+suffix, "")
	if x.Failed != nil || len(x.Violations)+len(x.Notes) > 0 || x.Driver != testDriver || x.Devices != 1 || x.Readings != 3 || x.Reads < 2 || x.Slowest <= 0 {
		t.Errorf("got %+v", x)
	}
	fake.set(gpu("power_watts", `zone="a"`, 70) + gpu("speed", "", 1) + gpu("energy_joules_created", "", 1))
	x = examine(t, folder, testDriver+suffix, testDriver)
	want := []string{
		"the agent ignores the label zone of dra_device_power_watts", "the agent ignores dra_device_speed, which the specification does not have",
	}
	if len(x.Violations) > 0 || !slices.Equal(x.Notes, want) {
		t.Errorf("got %+v", x)
	}
}

// Each violation has its sentence of the specification.
func TestExamineViolations(t *testing.T) {
	for name, c := range map[string]struct{ page, rule, text string }{
		"a ratio of percent": {gpu("utilization_ratio", "", 50), ruleValue, "dra_device_utilization_ratio of gpu-0 is 50"},
		"milliwatts":         {gpu("power_watts", "", 70000), ruleValue, "it is above 20000"},
		"a negative counter": {gpu("ext_a_total", "", -1), ruleValue, "the counter is negative"},
		"a busy process":     {gpu("process_utilization_ratio", `pid="1"`, 50), ruleValue, "of a process"},
		"NaN":                {gpu("power_watts", "", "NaN"), ruleLeftOut, "it is NaN"},
		"another driver":     {strings.ReplaceAll(gpu("power_watts", "", 1), testDriver, "a.example.com"), ruleOwn, "a.example.com"},
		"no page":            {"dra_device_power_watts{\n", rulePage, "parse the page: line 1"},
		"no end":             {"up 1", rulePage, "ends within a line"},
	} {
		folder := socketFolder(t)
		serveSocket(t, folder, testDriver, c.page)
		x := examine(t, folder, testDriver+suffix, "")
		if len(x.Violations) != 1 || x.Violations[0].Rule != c.rule || !strings.Contains(x.Violations[0].Text, c.text) {
			t.Errorf("%s: got %+v", name, x)
		}
	}
	folder := socketFolder(t)
	fake := serveSocket(t, folder, testDriver, "")
	energy := 1000
	fake.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		energy--
		_, _ = io.WriteString(w, gpu("energy_joules_total", "", energy)+gpu("throttled_seconds_total", fmt.Sprintf("reason=\"r%d\"", energy), 1))
	})
	x := examine(t, folder, testDriver+suffix, "")
	if len(x.Violations) != 1 || x.Violations[0].Rule != ruleFell || !strings.Contains(x.Violations[0].Text, "dra_device_energy_joules_total of gpu-0 fell from 999 to 998") {
		t.Errorf("got %+v", x)
	}
}

// What is no socket of a driver is a violation, and what cannot be read a failure.
func TestExamineWhatIsNoPage(t *testing.T) {
	folder := socketFolder(t)
	listen(t, folder, "Upper")
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer hangs.Close()
	if x, err := Examine(t.Context(), hangs.URL, ExamineOptions{Driver: testDriver, Clock: clock.System()}); err != nil || len(x.Violations) != 1 || x.Violations[0].Rule != rulePage {
		t.Errorf("a server that hangs: %+v, %v", x, err)
	}
	for _, file := range []string{"", "Upper.sock"} {
		if x := examine(t, folder, file, ""); len(x.Violations) == 0 || x.Violations[0].Rule != rulePlace {
			t.Errorf("%s: got %+v", file, x)
		}
	}
	if x := examine(t, folder, "none.sock", ""); !errors.Is(x.Failed, os.ErrNotExist) {
		t.Errorf("no socket: %+v", x)
	}
	for _, url := range []string{"http://127.0.0.1:1", "/tmp/a.sock", "unix://a.sock"} {
		if _, err := Examine(t.Context(), url, ExamineOptions{Clock: clock.System()}); err == nil {
			t.Errorf("%s: no error", url)
		}
	}
}

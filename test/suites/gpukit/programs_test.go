package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/child"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
)

// What the test's program is, by the variable asProgram, instead of a test.
const (
	asGPUKit      = "gpukit"
	asNVIDIASMI   = "nvidia-smi"
	asFaultyAgent = "dra-exporter"
)

// Variables of these programs.
const (
	smiLibrary      = "GPUKIT_TEST_LIBRARY" // path that the imitated nvidia-smi opens
	faultyAgentPath = "GPUKIT_TEST_AGENT"   // path of the agent without faults
)

// imitateNVIDIASMI prints what `nvidia-smi -q -x` of driver 580 would print of
// the quantities that the kit compares. It reads the library by the package
// direct, so that it sees what `gpukit direct` sees.
func imitateNVIDIASMI(out io.Writer) error {
	library, err := direct.Open(os.Getenv(smiLibrary))
	if err != nil {
		return err
	}
	sampler := direct.NewSampler(library, time.Now)
	sampler.SkipGPM = true
	sample, err := sampler.Sample()
	sampler.Close()
	if err := errors.Join(err, library.Close()); err != nil {
		return err
	}
	_, err = io.WriteString(out, smiText(sample))
	return err
}

// smiText is a sample in the schema v13.
func smiText(s direct.Sample) string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM \"nvsmi_device_v13.dtd\">\n<nvidia_smi_log>\n")
	fmt.Fprintf(&b, "<driver_version>%s</driver_version><attached_gpus>%d</attached_gpus>\n", s.DriverVersion, len(s.Devices))
	for i, d := range s.Devices {
		if d.ParentUUID == "" {
			var parts []direct.Device
			for _, p := range s.Devices[i+1:] {
				if p.ParentUUID == d.UUID {
					parts = append(parts, p)
				}
			}
			smiGPU(&b, d, parts)
		}
	}
	b.WriteString("</nvidia_smi_log>\n")
	return b.String()
}

func smiGPU(b *strings.Builder, d direct.Device, parts []direct.Device) {
	fmt.Fprintf(b, "<gpu id=%q><product_name>%s</product_name><uuid>%s</uuid><serial>%s</serial>\n", d.PCIBusID, d.Name, d.UUID, cmp.Or(d.Serial, "N/A"))
	fmt.Fprintf(b, "<mig_mode><current_mig>%s</current_mig></mig_mode><mig_devices>", smiFlag(d.MIGMode, "Enabled", "Disabled"))
	for i, p := range parts {
		fmt.Fprintf(b, "<mig_device><index>%d</index><gpu_instance_id>%s</gpu_instance_id><compute_instance_id>%s</compute_instance_id>%s</mig_device>",
			i, smiNumber(p.GPUInstance, 1, 0, ""), smiNumber(p.ComputeInstance, 1, 0, ""), smiMemory("fb_memory_usage", p.Memory))
	}
	b.WriteString("</mig_devices>\n")
	fmt.Fprintf(b, "<pci><pci_bus_id>%s</pci_bus_id><pci_gpu_link_info><pcie_gen><current_link_gen>%s</current_link_gen></pcie_gen>"+
		"<link_widths><current_link_width>%s</current_link_width></link_widths></pci_gpu_link_info><replay_counter>%s</replay_counter></pci>\n",
		d.PCIBusID, smiNumber(d.PCIe.Generation, 1, 0, ""), smiNumber(d.PCIe.Width, 1, 0, "x"), smiNumber(d.PCIe.Replays, 1, 0, ""))
	b.WriteString(smiMemory("fb_memory_usage", d.Memory) + smiMemory("bar1_memory_usage", d.BAR1) + "\n<clocks_event_reasons_counters>")
	for _, reason := range []struct{ printed, name string }{
		{"sw_power_cap", "sw_power_cap"}, {"sync_boost", "sync_boost"}, {"sw_therm_slowdown", "sw_thermal_slowdown"},
		{"hw_therm_slowdown", "hw_thermal_slowdown"}, {"hw_power_braking", "hw_power_brake_slowdown"},
	} {
		if seconds, reported := d.Throttled[reason.name]; reported {
			fmt.Fprintf(b, "<clocks_event_reasons_counters_%s>%.0f us</clocks_event_reasons_counters_%[1]s>", reason.printed, seconds*1e6)
		}
	}
	fmt.Fprintf(b, "</clocks_event_reasons_counters>\n<utilization><gpu_util>%s</gpu_util><memory_util>%s</memory_util></utilization>\n",
		smiNumber(d.Utilization.GPU, 100, 0, " %"), smiNumber(d.Utilization.Memory, 100, 0, " %"))
	fmt.Fprintf(b, "<ecc_errors><volatile><dram_correctable>%s</dram_correctable><dram_uncorrectable>%s</dram_uncorrectable></volatile>"+
		"<aggregate><dram_correctable>%s</dram_correctable><dram_uncorrectable>%s</dram_uncorrectable></aggregate></ecc_errors>\n",
		smiNumber(d.ECC.VolatileCorrected, 1, 0, ""), smiNumber(d.ECC.VolatileUncorrected, 1, 0, ""),
		smiNumber(d.ECC.AggregateCorrected, 1, 0, ""), smiNumber(d.ECC.AggregateUncorrected, 1, 0, ""))
	fmt.Fprintf(b, "<remapped_rows><remapped_row_corr>%s</remapped_row_corr><remapped_row_unc>%s</remapped_row_unc>"+
		"<remapped_row_pending>%s</remapped_row_pending><remapped_row_failure>%s</remapped_row_failure></remapped_rows>\n",
		smiNumber(d.Rows.Corrected, 1, 0, ""), smiNumber(d.Rows.Uncorrected, 1, 0, ""), smiFlag(d.Rows.Pending, "Yes", "No"), smiFlag(d.Rows.Failed, "Yes", "No"))
	fmt.Fprintf(b, "<temperature><gpu_temp>%s</gpu_temp><memory_temp>%s</memory_temp></temperature>\n",
		smiNumber(d.Temperature.GPU, 1, 0, " C"), smiNumber(d.Temperature.Memory, 1, 0, " C"))
	fmt.Fprintf(b, "<gpu_power_readings><average_power_draw>%s</average_power_draw><current_power_limit>%s</current_power_limit></gpu_power_readings>\n",
		smiNumber(d.Power.Usage, 1, 2, " W"), smiNumber(d.Power.EnforcedLimit, 1, 2, " W"))
	for _, block := range []struct {
		name   string
		clocks direct.Clocks
	}{{"clocks", d.Clocks}, {"max_clocks", d.MaxClocks}} {
		fmt.Fprintf(b, "<%s><graphics_clock>%s</graphics_clock><sm_clock>%s</sm_clock><mem_clock>%s</mem_clock></%[1]s>", block.name,
			smiNumber(block.clocks.Graphics, 1e-6, 0, " MHz"), smiNumber(block.clocks.SM, 1e-6, 0, " MHz"), smiNumber(block.clocks.Memory, 1e-6, 0, " MHz"))
	}
	b.WriteString("</gpu>\n")
}

func smiMemory(name string, m direct.Memory) string {
	return fmt.Sprintf("<%s><total>%s</total><reserved>%s</reserved><used>%s</used><free>%s</free></%[1]s>", name,
		smiNumber(m.Total, 1.0/mebibyte, 0, " MiB"), smiNumber(m.Reserved, 1.0/mebibyte, 0, " MiB"),
		smiNumber(m.Used, 1.0/mebibyte, 0, " MiB"), smiNumber(m.Free, 1.0/mebibyte, 0, " MiB"))
}

func smiNumber(value *float64, factor float64, decimals int, unit string) string {
	if value == nil {
		return "N/A"
	}
	return strconv.FormatFloat(*value*factor, 'f', decimals, 64) + unit
}

func smiFlag(value *float64, yes, no string) string {
	switch {
	case value == nil:
		return "N/A"
	case *value != 0:
		return yes
	default:
		return no
	}
}

// runFaultyAgent runs the agent behind a proxy on the agent's address. The proxy
// changes series of the page as the faults of faultTable say.
func runFaultyAgent(arguments []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	behind, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := behind.Addr().String()
	if err := behind.Close(); err != nil {
		return err
	}
	public := ""
	for i, argument := range arguments {
		if value, found := strings.CutPrefix(argument, "--web.listen-address="); found {
			public, arguments[i] = value, "--web.listen-address="+address
		}
	}
	listener, err := net.Listen("tcp4", public)
	if err != nil {
		return err
	}
	agent, err := child.Start(ctx, child.Options{Path: os.Getenv(faultyAgentPath), Arguments: arguments, Out: os.Stdout, Err: os.Stderr})
	if err != nil {
		return err
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	page := newFaultyPage()
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.URL.Path != "/metrics" || r.StatusCode != http.StatusOK {
			return nil
		}
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		text = page.change(text)
		r.Body = io.NopCloser(bytes.NewReader(text))
		r.ContentLength = int64(len(text))
		r.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	}
	server := &http.Server{Handler: plain(proxy), ReadHeaderTimeout: time.Minute}
	go func() {
		<-agent.Done()
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return agent.Err()
}

// plain asks for pages that are not compressed.
func plain(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Accept-Encoding", "identity")
		next.ServeHTTP(w, r)
	})
}

// faultyPage has the faults of the agent, by the UUID of their GPU, and what the
// series were at first. Its method is safe for concurrent use.
type faultyPage struct {
	faults map[string]pageFault
	mu     sync.Mutex
	first  map[string]float64
}

// pageFault changes a series of the agent's page: its name with its labels, its
// value now, and its first value. It returns false to leave the series out.
type pageFault func(series string, value, first float64) (string, float64, bool)

func newFaultyPage() *faultyPage {
	p := &faultyPage{faults: make(map[string]pageFault), first: make(map[string]float64)}
	for i, f := range faultTable() {
		if f.page != nil {
			p.faults[faultUUID(i)] = f.page
		}
	}
	return p
}

// change returns a page with the faults.
func (p *faultyPage) change(page []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	var changed bytes.Buffer
	lines := bufio.NewScanner(bytes.NewReader(page))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if line, keep := p.line(lines.Text()); keep {
			changed.WriteString(line + "\n")
		}
	}
	return changed.Bytes()
}

func (p *faultyPage) line(line string) (string, bool) {
	_, after, found := strings.Cut(strings.Replace(line, "{uuid=", "{,uuid=", 1), `,uuid="`) // not parent_uuid
	uuid, _, _ := strings.Cut(after, `"`)
	fault := p.faults[uuid]
	at := strings.LastIndexByte(line, ' ')
	if !found || fault == nil || strings.HasPrefix(line, "#") || at < 0 {
		return line, true
	}
	series := line[:at]
	value, err := strconv.ParseFloat(line[at+1:], 64)
	if err != nil {
		return line, true
	}
	first, known := p.first[series]
	if !known {
		p.first[series], first = value, value
	}
	series, value, keep := fault(series, value, first)
	return series + " " + strconv.FormatFloat(value, 'g', -1, 64), keep
}

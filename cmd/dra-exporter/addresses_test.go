package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kingpin/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/internal/advise"
	otlpsettings "github.com/dra-exporter/dra-exporter/internal/otlp/settings"
	"github.com/dra-exporter/dra-exporter/internal/page"
	"github.com/dra-exporter/dra-exporter/internal/top"
)

// addressFlags are the flags and arguments that take an address or a URL, each with
// the command that has it, and a function that parses it.
func addressFlags() map[string]struct {
	command string
	parse   func(address string) error
} {
	links := func(set func(*page.Links, string)) func(string) error {
		return func(address string) error {
			flags := &webFlags{}
			set(&flags.links, "http://"+address)
			return flags.checkLinks()
		}
	}
	listed := func(address string) error {
		_, err := top.ParseAddress(address)
		return err
	}
	return map[string]struct {
		command string
		parse   func(address string) error
	}{
		"dcgm.host-engine": {"node", func(address string) error { _, err := openDCGM(sourceFlags{hostEngine: address}); return err }},
		"tpu.metrics": {"node", func(address string) error {
			_, err := openTPU(sourceFlags{tpuMetrics: []string{address}, clock: clock.System()})
			return err
		}},
		"exporter.preset": {"node", func(address string) error {
			_, err := exporter.Preset("intel-xpumd=http://" + address + "/metrics")
			return err
		}},
		"exporter.driver": {"node", func(address string) error {
			_, err := exporter.Driver("gpu.example.com=http://"+address+"/metrics", 0)
			return err
		}},
		"neuron.monitor": {"node", nil}, // a socket or a file
		"otlp.endpoint": {"node", func(address string) error {
			_, err := pushSettings(&otlpsettings.Flags{Endpoint: "http://" + address})
			return err
		}},
		"web.grafana-url":         {"node", links(func(l *page.Links, url string) { l.Grafana = url })},
		"web.runbook-url":         {"node", links(func(l *page.Links, url string) { l.Runbooks = url })},
		"web.cluster-url":         {"node", links(func(l *page.Links, url string) { l.Cluster = url })},
		"web.listen-address":      {"node", nil}, // TestListenAddresses of internal/web
		"web.allowed-host":        {"node", nil}, // a name
		"cluster.listen-address":  {"demo", nil}, // as web.listen-address
		"training.listen-address": {"demo", nil},
		"prometheus.url":          {"advise", func(address string) error { _, err := advise.NewClient("http://"+address, ""); return err }},
		"url":                     {"top", listed},
		"cluster-url":             {"top", listed},
	}
}

// Every flag whose help names an address or a URL is in the table.
func TestAddressFlagsAreComplete(t *testing.T) {
	named := regexp.MustCompile(`\b(URL|HOST:PORT|[Aa]ddress(es)?|unix://)`)
	elsewhere := []string{
		"http.config.file", "timeout", "kubernetes.disable", // their help names another flag's address
		"web.systemd-socket", "web.created", "metrics.max-series",
	}
	known := addressFlags()
	eachCommand(newApp().Model().Commands, func(command *kingpin.CmdModel) {
		for _, flag := range command.Flags {
			if _, ok := known[flag.Name]; !ok && named.MatchString(flag.Help+" "+flag.PlaceHolder) && !flag.IsBoolFlag() && !slices.Contains(elsewhere, flag.Name) {
				t.Errorf("--%s of %s takes an address, and is not in the table: %s", flag.Name, command.FullCommand, flag.Help)
			}
		}
	})
}

// Kubernetes replaces $(HOST_IP) by an IPv6 address without brackets.
func TestIPv6Addresses(t *testing.T) {
	for name, flag := range addressFlags() {
		for _, host := range []string{"10.1.2.3", "[10.1.2.3]", "fd00::1", "[fd00::1]", "fd00:1:2:3:4:5:6:7", "::1"} {
			if flag.parse == nil {
				continue
			}
			if err := flag.parse(host + ":8080"); err != nil {
				t.Errorf("--%s with the host %s: %v", name, host, err)
			}
		}
	}
}

// No message of a flag shows a password.
func TestPasswordsInAddresses(t *testing.T) {
	for name, flag := range addressFlags() {
		for _, address := range []string{"http://me:pl4nted@127.0.0.1:1", "http://me:pl4nted%zz@127.0.0.1:1", "http://me:pl/pl4nted@127.0.0.1:1", "me:pl4nted@127.0.0.1:1", "ftp://127.0.0.1:1/?token=pl4nted"} {
			if flag.command == "advise" && !strings.HasPrefix(address, "ftp") && !strings.Contains(address, "%") {
				continue // a password that is used
			}
			if name == "exporter.preset" {
				address = "intel-xpumd=" + address
			}
			if name == "exporter.driver" && strings.HasPrefix(address, "http") {
				address = "gpu.example.com=" + address
			}
			args := []string{flag.command, "--" + name + "=" + address}
			if flag.command == "node" {
				args = append(args, "--node.name=n", "--kubernetes.disable", "--web.listen-address=127.0.0.1:0")
			}
			if name == "web.listen-address" {
				args = args[:4]
			}
			if flag.command == "top" {
				args = append(args, "--once", "--timeout=1s")
			}
			var output bytes.Buffer
			if status := run(args, &output, &output); status == 0 || strings.Contains(output.String(), "pl4nted") {
				t.Errorf("%v: status %d\n%s", args, status, output.String())
			}
		}
	}
}

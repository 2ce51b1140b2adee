package settings

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// environment makes a lookup of NAME=value pairs.
func environment(pairs ...string) func(string) (string, bool) {
	values := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return func(name string) (string, bool) {
		value, found := values[name]
		return value, found
	}
}

func load(t *testing.T, flags Flags, pairs ...string) Settings {
	t.Helper()
	settings, err := Load(flags, environment(pairs...))
	if err != nil {
		t.Fatalf("Load(%+v, %q): %v", flags, pairs, err)
	}
	return settings
}

// Without an endpoint nothing is on, and other variables have no effect.
func TestOff(t *testing.T) {
	for _, pairs := range [][]string{
		nil,
		{"OTEL_EXPORTER_OTLP_ENDPOINT= "},
		{"OTEL_EXPORTER_OTLP_PROTOCOL=nonsense", "OTEL_METRIC_EXPORT_INTERVAL=x", "OTEL_TRACES_SAMPLER=y", "OTEL_SDK_DISABLED=perhaps"},
		{"OTEL_METRICS_EXPORTER=otlp", "OTEL_TRACES_EXPORTER=console"},
	} {
		settings := load(t, Flags{}, pairs...)
		if settings.On() || settings.String() != "off" {
			t.Errorf("%q: %v", pairs, settings)
		}
	}
	disabled := load(t, Flags{Endpoint: "http://c:4318"}, "OTEL_SDK_DISABLED=TRUE", "OTEL_METRIC_EXPORT_INTERVAL=x")
	if disabled.On() || disabled.String() != "off: OTEL_SDK_DISABLED=true" {
		t.Errorf("disabled: %v", disabled)
	}
	// An endpoint that nothing is pushed to is reported, with the reason.
	none := load(t, Flags{Endpoint: "http://c:4318"}, "OTEL_METRICS_EXPORTER=none", "OTEL_TRACES_EXPORTER=none")
	node := load(t, Flags{}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:4318")
	node.Traces.On = false
	for _, withheld := range []Settings{disabled, none, node} {
		if !withheld.Withheld() || !strings.Contains(withheld.String(), "OTEL_") {
			t.Errorf("withheld: %t, %v", withheld.Withheld(), withheld)
		}
	}
	if load(t, Flags{}).Withheld() || load(t, Flags{Endpoint: "http://c:4318"}).Withheld() {
		t.Error("settings without an endpoint, or that push, are withheld")
	}
}

func TestEndpoints(t *testing.T) {
	const (
		general = "OTEL_EXPORTER_OTLP_ENDPOINT="
		metrics = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT="
		traces  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="
		grpc    = "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"
	)
	for name, test := range map[string]struct {
		flags    Flags
		pairs    []string
		metrics  string // protocol, space, URL
		traces   string
		endpoint string // of metrics, if it differs from the URL
	}{
		"port of HTTP":            {pairs: []string{general + "http://c:4318"}, metrics: "http/protobuf http://c:4318/v1/metrics", traces: "http/protobuf http://c:4318/v1/traces"},
		"port of gRPC":            {pairs: []string{general + "http://c:4317"}, metrics: "grpc http://c:4317", traces: "grpc http://c:4317"},
		"TLS":                     {pairs: []string{general + "HTTPS://c:4318/"}, metrics: "http/protobuf https://c:4318/v1/metrics", traces: "http/protobuf https://c:4318/v1/traces"},
		"no port":                 {pairs: []string{general + "https://c"}, metrics: "http/protobuf https://c/v1/metrics", traces: "http/protobuf https://c/v1/traces"},
		"no port, gRPC":           {pairs: []string{metrics + "https://c", grpc}, metrics: "grpc https://c:443", traces: " "},
		"no port, plaintext gRPC": {pairs: []string{metrics + "http://c/", grpc}, metrics: "grpc http://c:80", traces: " "},
		"base":                    {pairs: []string{general + "http://c/otlp/"}, metrics: "http/protobuf http://c/otlp/v1/metrics", traces: "http/protobuf http://c/otlp/v1/traces"},
		"own as it stands":        {pairs: []string{general + "http://c/otlp", metrics + "https://d/in?", traces + "http://e"}, metrics: "", traces: ""},
		"own":                     {pairs: []string{general + "http://c/otlp", metrics + "https://d/in%20to", traces + "http://e"}, metrics: "http/protobuf https://d/in%20to", traces: "http/protobuf http://e/"},
		"one signal":              {pairs: []string{traces + "http://e/v1/traces"}, metrics: " ", traces: "http/protobuf http://e/v1/traces"},
		"flag before all":         {flags: Flags{Endpoint: "http://f:1"}, pairs: []string{general + "::", metrics + "https://d"}, metrics: "http/protobuf http://f:1/v1/metrics", traces: "http/protobuf http://f:1/v1/traces"},
		"protocol's flag":         {flags: Flags{Protocol: " GRPC "}, pairs: []string{general + "http://c:4318", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf"}, metrics: "grpc http://c:4318", traces: "grpc http://c:4318"},
		"protocol by signal":      {pairs: []string{general + "http://c:4317", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=http/protobuf"}, metrics: "http/protobuf http://c:4317/v1/metrics", traces: "grpc http://c:4317"},
		"no scheme":               {flags: Flags{Endpoint: "c:4317"}, metrics: "grpc https://c:4317", traces: "grpc https://c:4317"},
		"no scheme, insecure":     {flags: Flags{Endpoint: "127.0.0.1:4318/x"}, pairs: []string{"OTEL_EXPORTER_OTLP_INSECURE=True"}, metrics: "http/protobuf http://127.0.0.1:4318/x/v1/metrics", traces: "http/protobuf http://127.0.0.1:4318/x/v1/traces"},
		"insecure by signal":      {flags: Flags{Endpoint: "c:1"}, pairs: []string{"OTEL_EXPORTER_OTLP_INSECURE=true", "OTEL_EXPORTER_OTLP_TRACES_INSECURE=false"}, metrics: "http/protobuf http://c:1/v1/metrics", traces: "http/protobuf https://c:1/v1/traces"},
		"scheme before insecure":  {flags: Flags{Endpoint: "https://c:1"}, pairs: []string{"OTEL_EXPORTER_OTLP_INSECURE=true"}, metrics: "http/protobuf https://c:1/v1/metrics", traces: "http/protobuf https://c:1/v1/traces"},
		"address of version 6":    {flags: Flags{Endpoint: "http://[::1]:4317"}, metrics: "grpc http://[::1]:4317", traces: "grpc http://[::1]:4317", endpoint: "[::1]:4317"},
		"without its brackets":    {pairs: []string{general + "http://fd00::1:4318"}, metrics: "http/protobuf http://[fd00::1]:4318/v1/metrics", traces: "http/protobuf http://[fd00::1]:4318/v1/traces", endpoint: "[fd00::1]:4318"},
		"socket":                  {flags: Flags{Endpoint: "unix:///run/otel/c.sock"}, metrics: "grpc unix:///run/otel/c.sock", traces: "grpc unix:///run/otel/c.sock", endpoint: "unix:///run/otel/c.sock"},
		"only metrics":            {flags: Flags{Endpoint: "http://c"}, pairs: []string{"OTEL_TRACES_EXPORTER=none"}, metrics: "http/protobuf http://c/v1/metrics", traces: " "},
		"traces alone":            {flags: Flags{Endpoint: "http://c"}, pairs: []string{"OTEL_METRICS_EXPORTER=prometheus"}, metrics: " ", traces: "http/protobuf http://c/v1/traces"},
		"scraped as well":         {flags: Flags{Endpoint: "http://c"}, pairs: []string{"OTEL_METRICS_EXPORTER=Prometheus, otlp", "OTEL_TRACES_EXPORTER=otlp"}, metrics: "http/protobuf http://c/v1/metrics", traces: "http/protobuf http://c/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			settings, err := Load(test.flags, environment(test.pairs...))
			if test.metrics == "" {
				if err == nil {
					t.Fatalf("taken: %v", settings)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for want, signal := range map[string]SignalSettings{"metrics " + test.metrics: settings.Metrics, "traces " + test.traces: settings.Traces} {
				got := strings.Fields(want)[0] + " " + signal.Protocol + " "
				if signal.On {
					got += signal.URL()
				}
				if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
			if test.endpoint != "" && settings.Metrics.Endpoint != test.endpoint {
				t.Errorf("endpoint %q, want %q", settings.Metrics.Endpoint, test.endpoint)
			}
		})
	}
}

// What is invalid is refused with its name, its value and valid values.
func TestRefused(t *testing.T) {
	on := Flags{Endpoint: "http://c:4318"}
	at := func(endpoint string) Flags { return Flags{Endpoint: endpoint} }
	for name, test := range map[string]struct {
		flags Flags
		pair  string // NAME=value
		want  string // in the error, beside the name
	}{
		"no host":                 {flags: at("http://:4318"), want: `--otlp.endpoint="http://:4318": no host`},
		"nothing but a scheme":    {flags: at("https://"), want: "no host"},
		"path for a host":         {flags: at("/v1/metrics"), want: "no host"},
		"scheme":                  {flags: at("grpc://c:4317"), want: `unknown scheme "grpc": use http://`},
		"port 0":                  {flags: at("http://c:0"), want: "1 to 65535"},
		"port too large":          {flags: at("http://c:65536"), want: "1 to 65535"},
		"port of letters":         {flags: at("http://c:otlp"), want: "invalid port"},
		"empty port":              {flags: at("http://c:"), want: "invalid port"},
		"space":                   {flags: at("http://c d:1"), want: "no URL"},
		"host":                    {flags: at("http://c$d:1"), want: "letters"},
		"query":                   {flags: at("http://c:1?key=hush"), want: `"http://c:1…": no query`},
		"fragment":                {flags: at("http://c:1#hush"), want: "no fragment"},
		"user":                    {flags: at("http://hush:hush@c:1"), want: "--otlp.endpoint: no user name"},
		"relative socket":         {flags: at("unix:c.sock"), want: "unix:///run"},
		"socket with a host":      {flags: at("unix://c.sock"), want: "unix:///run"},
		"socket with escapes":     {flags: at("unix:///%20"), want: "percent signs"},
		"socket with HTTP":        {flags: Flags{Endpoint: "unix:///c.sock", Protocol: "http/protobuf"}, want: "to grpc"},
		"path with gRPC":          {flags: at("http://c:4317/v1/metrics"), want: "gRPC has no path"},
		"path twice":              {flags: at("http://c:4318/v1/metrics/"), want: "appended automatically"},
		"escape":                  {flags: at("http://c:1/%zz"), want: "no URL"},
		"JSON":                    {flags: on, pair: "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", want: "JSON is not supported"},
		"JSON by flag":            {flags: Flags{Protocol: "http/json"}, want: `--otlp.protocol="http/json"`},
		"protocol":                {flags: on, pair: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=udp", want: "http/protobuf or grpc"},
		"naming":                  {flags: Flags{Naming: "otel"}, want: `--otlp.naming="otel": unknown; use prometheus or semconv`},
		"interval by flag":        {flags: Flags{Interval: 500 * time.Millisecond}, want: `--otlp.interval="500ms": out of range: use 1s`},
		"negative interval":       {flags: Flags{Interval: -time.Minute}, want: "out of range"},
		"interval":                {flags: on, pair: "OTEL_METRIC_EXPORT_INTERVAL=999", want: "1000 to"},
		"interval with unit":      {flags: on, pair: "OTEL_METRIC_EXPORT_INTERVAL=60s", want: "whole number of milliseconds; 60000 would be 1m0s"},
		"interval beyond int":     {flags: on, pair: "OTEL_METRIC_EXPORT_INTERVAL=99999999999999999999", want: "milliseconds"},
		"push's timeout":          {flags: on, pair: "OTEL_METRIC_EXPORT_TIMEOUT=0", want: "out of range"},
		"timeout":                 {flags: on, pair: "OTEL_EXPORTER_OTLP_TIMEOUT=10s", want: "10000 would be 10s"},
		"timeout's range":         {flags: on, pair: "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=-1", want: "1 to 86400000"},
		"compression":             {flags: on, pair: "OTEL_EXPORTER_OTLP_COMPRESSION=zstd", want: "none or gzip"},
		"insecure":                {flags: on, pair: "OTEL_EXPORTER_OTLP_INSECURE=1", want: "false or true"},
		"disabled":                {flags: on, pair: "OTEL_SDK_DISABLED=yes", want: "false or true"},
		"delta":                   {flags: on, pair: "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=Delta", want: "cumulativetodelta"},
		"low memory":              {flags: on, pair: "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=lowmemory", want: "cumulativetodelta"},
		"temporality":             {flags: on, pair: "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=both", want: "use cumulative"},
		"aggregation":             {flags: on, pair: "OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=native", want: "explicit_bucket_histogram or base2"},
		"console":                 {flags: on, pair: "OTEL_METRICS_EXPORTER=console", want: `exporter "console" is not supported; use otlp or none`},
		"none and another":        {flags: on, pair: "OTEL_METRICS_EXPORTER=none,otlp", want: "none cannot be combined"},
		"traces are not scraped":  {flags: on, pair: "OTEL_TRACES_EXPORTER=prometheus", want: "use otlp or none"},
		"sampler":                 {flags: on, pair: "OTEL_TRACES_SAMPLER=jaeger_remote", want: "parentbased_traceidratio, always_on"},
		"delay":                   {flags: on, pair: "OTEL_BSP_SCHEDULE_DELAY=0", want: "out of range"},
		"queue":                   {flags: on, pair: "OTEL_BSP_MAX_QUEUE_SIZE=-1", want: "1 to 1048576"},
		"batch":                   {flags: on, pair: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=65537", want: "more than the queue's 65536"},
		"batch of words":          {flags: on, pair: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=many", want: "whole number"},
		"batch's timeout":         {flags: on, pair: "OTEL_BSP_EXPORT_TIMEOUT=soon", want: "milliseconds"},
		"attribute":               {flags: on, pair: "OTEL_RESOURCE_ATTRIBUTES=a=b,c", want: "entry 2 is not key=value"},
		"attribute's key":         {flags: on, pair: "OTEL_RESOURCE_ATTRIBUTES==b", want: "entry 1"},
		"attribute's escape":      {flags: on, pair: "OTEL_RESOURCE_ATTRIBUTES=a=50%", want: "%25"},
		"attribute's encoding":    {flags: on, pair: "OTEL_RESOURCE_ATTRIBUTES=a=%ff", want: "not UTF-8"},
		"cluster":                 {flags: Flags{Endpoint: "http://c", ClusterName: "\xff"}, want: `--otlp.cluster-name="\xff": not UTF-8`},
		"header":                  {flags: on, pair: "OTEL_EXPORTER_OTLP_HEADERS=a=hush,hush", want: "entry 2 is not key=value"},
		"header's trailing comma": {flags: on, pair: "OTEL_EXPORTER_OTLP_HEADERS=a=hush,", want: "entry 2 is not key=value"},
		"header's key":            {flags: on, pair: "OTEL_EXPORTER_OTLP_HEADERS=Bearer hush=hush", want: "the key of entry 1"},
		"header's escape":         {flags: on, pair: "OTEL_EXPORTER_OTLP_HEADERS=a=hush%", want: "percent-encoded"},
		"header's line":           {flags: on, pair: "OTEL_EXPORTER_OTLP_HEADERS=a=hush%0d%0ahush", want: "the value of entry 1"},
		"header of the protocol":  {flags: on, pair: "OTEL_EXPORTER_OTLP_METRICS_HEADERS=Content-Encoding=hush", want: "content-encoding (entry 1) is set by the protocol"},
		"metadata's key":          {flags: Flags{Endpoint: "c:4317"}, pair: "OTEL_EXPORTER_OTLP_HEADERS=a!=hush", want: "the key of entry 1"},
		"certificate":             {flags: at("https://c"), pair: "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere/ca.pem", want: "no such file"},
		"half a pair":             {flags: at("https://c"), pair: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/nowhere/c.pem", want: "set OTEL_EXPORTER_OTLP_CLIENT_KEY too"},
		"the other half":          {flags: at("https://c"), pair: "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY=/nowhere/k.pem", want: "set OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE too"},
	} {
		t.Run(name, func(t *testing.T) {
			settings, err := Load(test.flags, environment(test.pair))
			if err == nil {
				t.Fatalf("taken: %v", settings)
			}
			variable, _, _ := strings.Cut(test.pair, "=")
			for _, want := range []string{test.want, variable} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hush") {
				t.Errorf("%q contains a secret", err)
			}
		})
	}
}

func TestSamplerArgument(t *testing.T) {
	for argument, want := range map[string]string{
		"": "TraceIDRatioBased{1}", "0.25": "TraceIDRatioBased{0.25}", "0": "TraceIDRatioBased{0}", "1e-3": "TraceIDRatioBased{0.001}",
		"-0.1": "", "1.01": "", "NaN": "", "Inf": "", "50%": "",
	} {
		settings, err := Load(Flags{Endpoint: "http://c"}, environment("OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG="+argument))
		switch {
		case want == "" && (err == nil || !strings.Contains(err.Error(), "OTEL_TRACES_SAMPLER_ARG=") || !strings.Contains(err.Error(), "from 0 to 1")):
			t.Errorf("%q: %v", argument, err)
		case want != "" && (err != nil || settings.Sampler.Description() != want):
			t.Errorf("%q: %v, %v, want %s", argument, settings.Sampler, err, want)
		}
	}
	for sampler, root := range map[string]string{
		"": "AlwaysOnSampler", "parentbased_always_on": "AlwaysOnSampler", "parentbased_always_off": "AlwaysOffSampler",
		"PARENTBASED_traceidratio": "TraceIDRatioBased{0.5}",
	} {
		settings := load(t, Flags{Endpoint: "http://c"}, "OTEL_TRACES_SAMPLER="+sampler, "OTEL_TRACES_SAMPLER_ARG=0.5")
		if got := settings.Sampler.Description(); !strings.HasPrefix(got, "ParentBased{root:"+root) {
			t.Errorf("%q: %s", sampler, got)
		}
	}
}

func TestTuning(t *testing.T) {
	plain := load(t, Flags{Endpoint: "http://c"})
	if plain.Interval != time.Minute || plain.Timeout != 30*time.Second || plain.Metrics.Timeout != 10*time.Second ||
		plain.Traces.Timeout != 10*time.Second || plain.Naming != "prometheus" || plain.Metrics.Gzip || plain.ExponentialHistograms ||
		plain.QueueSize != 65536 || plain.BatchSize != 512 || plain.Delay != 5*time.Second || plain.Metrics.Headers != nil || len(plain.Attributes) != 0 {
		t.Errorf("defaults: %+v", plain)
	}
	all := load(t, Flags{Endpoint: "http://c", Naming: "Semconv"}, "OTEL_METRIC_EXPORT_INTERVAL= 15000 ", "OTEL_METRIC_EXPORT_TIMEOUT=7000",
		"OTEL_EXPORTER_OTLP_TIMEOUT=5000", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=6000", "OTEL_BSP_EXPORT_TIMEOUT=4000",
		"OTEL_EXPORTER_OTLP_COMPRESSION=gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=none",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION=base2_exponential_bucket_histogram",
		"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=cumulative",
		"OTEL_BSP_MAX_QUEUE_SIZE=100", "OTEL_BSP_SCHEDULE_DELAY=250")
	if all.Interval != 15*time.Second || all.Timeout != 7*time.Second || all.Metrics.Timeout != 5*time.Second ||
		all.Traces.Timeout != 4*time.Second || all.Naming != "semconv" || !all.Metrics.Gzip || all.Traces.Gzip || !all.ExponentialHistograms ||
		all.QueueSize != 100 || all.BatchSize != 100 || all.Delay != 250*time.Millisecond {
		t.Errorf("all: %+v", all)
	}
	if flag := load(t, Flags{Endpoint: "http://c", Interval: 2 * time.Second}, "OTEL_METRIC_EXPORT_INTERVAL=15000"); flag.Interval != 2*time.Second {
		t.Errorf("the variable won over the flag: %v", flag.Interval)
	}
	text := load(t, Flags{Endpoint: "c:4317"}, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=.25").String()
	if want := "metrics https://c:4317 (grpc, TLS, timeout 10s) every 1m0s by the names of prometheus; " +
		"traces https://c:4317 (grpc, TLS, timeout 10s) sampled by traceidratio 0.25"; text != want {
		t.Errorf("got %q, want %q", text, want)
	}
	// Variables of a signal that is off are not read.
	load(t, Flags{Endpoint: "http://c"}, "OTEL_TRACES_EXPORTER=none", "OTEL_TRACES_SAMPLER=nonsense", "OTEL_BSP_MAX_QUEUE_SIZE=x", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=x")
	load(t, Flags{Endpoint: "http://c"}, "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta")
}

func TestHeaders(t *testing.T) {
	settings := load(t, Flags{Endpoint: "http://c"},
		"OTEL_EXPORTER_OTLP_HEADERS= Authorization = Bearer%20a%3Db%2Cc , X-Empty=,x-twice=1,X-Twice=2,q=a=b",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=only=this")
	want := map[string]string{"authorization": "Bearer a=b,c", "x-empty": "", "x-twice": "2", "q": "a=b"}
	if !maps.Equal(settings.Metrics.Headers, want) {
		t.Errorf("metrics: %q", settings.Metrics.Headers)
	}
	if !maps.Equal(settings.Traces.Headers, map[string]string{"only": "this"}) {
		t.Errorf("traces: %q", settings.Traces.Headers)
	}
}

func TestAttributes(t *testing.T) {
	settings := load(t, Flags{Endpoint: "http://c", ClusterName: "west"},
		"OTEL_RESOURCE_ATTRIBUTES=service.name=other,team=a%2Cb, k8s.cluster.name=east,deployment.environment.name=prod", "OTEL_SERVICE_NAME=gpu")
	var got []string
	for _, attribute := range settings.Attributes {
		got = append(got, string(attribute.Key)+"="+attribute.Value.AsString())
	}
	want := []string{"deployment.environment.name=prod", "k8s.cluster.name=west", "service.name=gpu", "team=a,b"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Nothing that prints settings prints a header.
func TestSecretsStaySecret(t *testing.T) {
	settings := load(t, Flags{Endpoint: "https://c"}, "OTEL_EXPORTER_OTLP_HEADERS=authorization=hush")
	var text, structured bytes.Buffer
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&text, nil)), slog.New(slog.NewJSONHandler(&structured, nil))} {
		log.Info("pushing", "settings", settings, "metrics", settings.Metrics)
	}
	for _, output := range []string{text.String(), structured.String(), fmt.Sprintf("%v %+v %s", settings, settings, settings.Metrics)} {
		if strings.Contains(output, "hush") {
			t.Errorf("%s", output)
		}
		if !strings.Contains(output, "https://c/v1/metrics (http/protobuf, TLS, headers: 1, timeout 10s)") {
			t.Errorf("is incomplete: %s", output)
		}
	}
}

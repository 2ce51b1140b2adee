package prometheus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
)

// use is what a device of a claim is used for in a minute. What is NaN is not reported.
type use struct{ memory, utilization, sm, dram float64 } // GiB and shares

// sizedClaim is a claim with a history, and the advice that is right for it.
type sizedClaim struct {
	namespace   string // empty: ml
	name        string
	template    string
	price       float64 // in USD an hour; 0: 2 EUR
	model       string
	profile     string
	memory      float64 // of each device, GiB
	devices     int
	from, to    time.Duration // in which it is held, before the end
	attribution string
	share       float64 // of its devices; 0: they are not shared
	nvlink      bool
	decoder     float64
	use         func(device, minute int, random *rand.Rand) use

	want       string // the profile, share or number of devices, or the reason
	confidence string
}

const (
	h100   = "NVIDIA H100 80GB HBM3"
	days   = 24 * time.Hour
	unread = -1 // a quantity that is not reported
)

// noisy is the use of a device whose memory is between two values, and whose activity is
// up to the given shares.
func noisy(low, high, utilization, sm, dram float64) func(int, int, *rand.Rand) use {
	return func(_, _ int, random *rand.Rand) use {
		up := func(share float64) float64 {
			if share < 0 {
				return math.NaN()
			}
			return share * (0.5 + 0.5*random.Float64())
		}
		return use{low + (high-low)*random.Float64(), up(utilization), up(sm), up(dram)}
	}
}

func sizedClaims() []sizedClaim {
	gpu := func(name, want, confidence string, use func(int, int, *rand.Rand) use) sizedClaim {
		return sizedClaim{name: name, model: h100, memory: 80, devices: 1, from: 8 * days, attribution: "exclusive", use: use, want: want, confidence: confidence}
	}
	with := func(c sizedClaim, change func(c *sizedClaim)) sizedClaim {
		change(&c)
		return c
	}
	quiet := noisy(5, 8, 0.2, 0.08, 0.05)
	all := []sizedClaim{
		gpu("notebook", "1g.10gb", "high", quiet),
		gpu("serving", "3g.40gb", "high", noisy(20, 30, 0.9, 0.25, 0.3)),
		gpu("training", "activity", "", noisy(20, 30, 1, 0.95, 0.6)),
		gpu("large", "memory", "", noisy(40, 70, 0.3, 0.1, 0.1)),
		gpu("bandwidth", "bandwidth", "", noisy(5, 8, 0.9, 0.15, 0.6)),
		// An hour of work each day needs the whole device; a minute does not.
		gpu("daily-hour", "activity", "", func(_, minute int, random *rand.Rand) use {
			if minute%1440 < 60 {
				return use{8, 1, 0.9, 0.5}
			}
			return quiet(0, minute, random)
		}),
		gpu("daily-minute", "3g.40gb", "high", func(_, minute int, random *rand.Rand) use {
			if minute%1440 == 2 {
				return use{7, 1, 0.9, 0.5}
			}
			return quiet(0, minute, random)
		}),
		// One large batch in the week decides how much memory is needed.
		gpu("one-batch", "3g.40gb", "high", func(_, minute int, random *rand.Rand) use {
			u := quiet(0, minute, random)
			if minute == 4000 {
				u.memory = 25
			}
			return u
		}),
		with(gpu("warm-up", "growing", "", func(_, minute int, random *rand.Rand) use {
			if minute < 8*1440-360 {
				return use{2, 0.01, 0.01, 0.01}
			}
			return quiet(0, minute, random)
		}), func(c *sizedClaim) { c.from = 26 * time.Hour }),
		gpu("warm-up-of-work", "growing", "", func(_, minute int, random *rand.Rand) use {
			if minute < 8*1440-360 {
				return use{7, 0.01, 0.01, 0.01}
			}
			return noisy(7, 7, 0.5, 0.25, 0.05)(0, minute, random)
		}),
		gpu("pool", "memory_pool", "", noisy(72, 72, 0.3, 0.1, 0.1)),
		gpu("small-pool", "3g.40gb", "low", noisy(34, 34, 0.3, 0.1, 0.1)),
		with(gpu("shared", "shared", "", quiet), func(c *sizedClaim) { c.attribution = "shared" }),
		with(gpu("time-slice", "shared", "", quiet), func(c *sizedClaim) { c.attribution, c.share = "process", 0.5 }),
		with(gpu("short", "history", "", quiet), func(c *sizedClaim) { c.from = 20 * time.Hour }),
		with(gpu("two-days", "1g.10gb", "medium", quiet), func(c *sizedClaim) { c.from = 2 * days }),
		with(gpu("ended", "1g.10gb", "medium", quiet), func(c *sizedClaim) { c.from, c.to = 5*days, 2*days }),
		gpu("no-memory", "memory_unknown", "", noisy(math.NaN(), math.NaN(), 0.2, 0.08, 0.05)),
		gpu("gaps", "memory_unknown", "", func(_, minute int, random *rand.Rand) use {
			u := quiet(0, minute, random)
			if minute%1440 < 300 {
				u.memory = math.NaN()
			}
			return u
		}),
		gpu("no-activity", "activity_unknown", "", noisy(5, 8, unread, unread, unread)),
		gpu("no-profiling", "1g.10gb", "medium", noisy(5, 8, 0.08, unread, unread)),
		gpu("no-profiling-busy", "activity", "", noisy(5, 8, 0.9, unread, unread)),
		with(gpu("decoder", "1g.10gb", "medium", quiet), func(c *sizedClaim) { c.decoder = 0.3 }),
		with(gpu("linked", "linked", "", quiet), func(c *sizedClaim) { c.nvlink = true }),
		gpu("unused", "release", "high", noisy(0.5, 0.5, 0, 0, 0)),
		with(gpu("two-of-four", "2", "high", func(device, minute int, random *rand.Rand) use {
			if device < 2 {
				return use{60, 1, 0.9, 0.5}
			}
			return use{0.6, 0, 0, 0}
		}), func(c *sizedClaim) { c.devices, c.nvlink = 4, true }),
		// Half of the devices have no readings: they only seem to be unused.
		with(gpu("half-unmeasured", "activity_unknown", "", func(device, minute int, random *rand.Rand) use {
			if device < 2 {
				return use{60, 1, 0.9, 0.5}
			}
			return use{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		}), func(c *sizedClaim) { c.devices = 4 }),
		// The model is loaded on a device that has not computed yet.
		with(gpu("loaded", "several_devices", "", func(device, minute int, random *rand.Rand) use {
			return use{60, float64(device), float64(device), 0.5}
		}), func(c *sizedClaim) { c.devices = 2 }),
		with(gpu("mig", "1g.10gb", "high", noisy(3, 6, 0.9, 0.2, 0.1)), func(c *sizedClaim) { c.profile, c.memory = "3g.40gb", 40 }),
		with(gpu("mig-smallest", "smallest", "", noisy(3, 6, 0.2, 0.1, 0.1)), func(c *sizedClaim) { c.profile, c.memory = "1g.10gb", 10 }),
		with(gpu("mig-unknown", "profile_unknown", "", noisy(3, 6, 0.2, 0.1, 0.1)), func(c *sizedClaim) { c.profile, c.memory = "9g.99gb", 99 }),
		with(gpu("l4", "0.125", "high", noisy(1, 2, 0.1, 0.05, 0.05)), func(c *sizedClaim) { c.model, c.memory = "NVIDIA L4", 22 }),
		with(gpu("l4-third", "0.3333333333333333", "high", noisy(4, 6, 0.3, 0.2, 0.2)), func(c *sizedClaim) { c.model, c.memory = "NVIDIA L4", 22 }),
	}
	// Jobs of three hours, one after the other, of which one needs more memory.
	for i := range 10 {
		memory := 8.0
		if i == 3 {
			memory = 25
		}
		all = append(all, with(gpu(fmt.Sprintf("job-%d", i), "3g.40gb", "medium", noisy(5, memory, 0.2, 0.08, 0.05)), func(c *sizedClaim) {
			c.template = "job"
			c.from, c.to = 4*days-time.Duration(3*i)*time.Hour, 4*days-time.Duration(3*i+3)*time.Hour
		}))
	}
	return all
}

// TestAdvice: over histories of a week whose right advice is known, also those that tempt
// to a wrong one, what the shipped rules record in a real Prometheus makes
// `dra-exporter advise` say it.
func TestAdvice(t *testing.T) {
	end := time.Now().Truncate(5 * time.Minute)
	claims := sizedClaims()
	recorded := recordedOfRequesters(t, claims, end)
	for _, rule := range rules(t) {
		named := func(series storage.Series) bool { return series.Labels().Get("__name__") == rule.Record }
		if strings.HasPrefix(rule.Record, "requester:") && !slices.ContainsFunc(recorded, named) {
			t.Errorf("%s records nothing", rule.Record)
		}
	}
	address := prometheusWith(t, recorded)
	binary := demoBinary(t)
	advised := func(flags ...string) (stdout, stderr string, failed bool) {
		command := exec.CommandContext(t.Context(), binary, append([]string{"advise", "--prometheus.url=http://" + address}, flags...)...)
		var out, problems bytes.Buffer
		command.Stdout, command.Stderr = &out, &problems
		err := command.Run()
		return out.String(), problems.String(), err != nil
	}
	text, problems, failed := advised("-o", "json")
	if failed || problems != "" {
		t.Fatalf("%s%s", text, problems)
	}
	type row struct {
		Namespace, Kind, Name, Reason string
		DeviceHours                   float64
		Cost                          map[string]float64
		Advice                        *struct {
			Kind             string
			PartitionProfile string
			Share            float64
			Devices          int
			SavedDeviceHours float64
			SavedCost        map[string]float64
			Confidence       string
			Cautions         []string
		}
	}
	var report struct{ Advised, NotAdvised []row }
	if err := json.Unmarshal([]byte(text), &report); err != nil {
		t.Fatal(err)
	}
	got := map[string]row{}
	for _, r := range slices.Concat(report.Advised, report.NotAdvised) {
		if _, twice := got[r.Name]; twice {
			t.Errorf("%s has two rows", r.Name)
		}
		got[r.Name] = r
	}
	for _, c := range claims {
		name, kind := c.name, "ResourceClaim"
		if c.template != "" {
			name, kind = c.template, "ResourceClaimTemplate"
		}
		r, there := got[name]
		if !there || r.Kind != kind || r.Namespace != "ml" {
			t.Errorf("%s has the row %+v", name, r)
			continue
		}
		said, confidence := r.Reason, ""
		if a := r.Advice; a != nil {
			confidence = a.Confidence
			switch a.Kind {
			case "partition":
				said = a.PartitionProfile
			case "share":
				said = fmt.Sprint(a.Share)
			case "devices":
				said = fmt.Sprint(a.Devices)
			default:
				said = a.Kind
			}
			if math.Abs(r.Cost["EUR"]-2*r.DeviceHours) > 0.01*r.Cost["EUR"] || math.Abs(a.SavedCost["EUR"]-2*a.SavedDeviceHours) > 0.01*a.SavedCost["EUR"] {
				t.Errorf("%s: %.0f device-hours cost %v, and %.0f cost %v", name, r.DeviceHours, r.Cost, a.SavedDeviceHours, a.SavedCost)
			}
		}
		if said != c.want || confidence != c.confidence {
			t.Errorf("%s: %s %s %+v, want %s %s", name, said, confidence, r.Advice, c.want, c.confidence)
		}
	}
	// A week on one of two equal partitions, and on a seventh.
	for name, saved := range map[string]float64{"serving": 84, "notebook": 168 * 6. / 7, "two-of-four": 336, "unused": 168} {
		if a := got[name].Advice; a != nil && math.Abs(a.SavedDeviceHours-saved) > 2 {
			t.Errorf("%s saves %.1f device-hours, want %.1f", name, a.SavedDeviceHours, saved)
		}
	}
	text, problems, failed = advised()
	t.Logf("%s%s", text, problems)
	if failed || problems != "" || !strings.Contains(text, "ResourceClaimTemplate/job") || !strings.Contains(text, "memory_pool: ") {
		t.Errorf("the text is\n%s%s", text, problems)
	}
	if _, problems, failed := advised("-n", "empty"); !failed || !strings.Contains(problems, "no claim of the namespace empty has held a device in the last 7 days") {
		t.Errorf("of an empty namespace it says %s", problems)
	}
}

// recordedOfRequesters returns what the rules record of claims in eight days.
func recordedOfRequesters(t *testing.T, claims []sizedClaim, end time.Time) []storage.Series {
	t.Helper()
	options := tsdb.DefaultOptions()
	options.MinBlockDuration, options.MaxBlockDuration = (20 * days).Milliseconds(), (20 * days).Milliseconds() // the head takes samples of half of it
	db, err := tsdb.Open(t.TempDir(), slog.New(slog.DiscardHandler), nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.DisableCompactions()
	start := end.Add(-8 * days)
	for i := range claims {
		writeClaim(t, db, &claims[i], start, end)
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 5e7, Timeout: 5 * time.Minute, LookbackDelta: 5 * time.Minute, Parser: parser.NewParser(parser.Options{})})
	var wanted []rulefmt.Rule
	for _, rule := range rules(t) {
		if strings.HasPrefix(rule.Record, "requester:") {
			wanted = append(wanted, rule)
		}
	}
	var recorded []storage.Series
	for _, rule := range append(neededRules(t, wanted), wanted...) {
		query, err := engine.NewRangeQuery(t.Context(), db, nil, rule.Expr, start, end, 5*time.Minute)
		if err != nil {
			t.Fatalf("%s: %v", rule.Record, err)
		}
		result := query.Exec(t.Context())
		matrix, err := result.Matrix()
		if err != nil {
			t.Fatalf("%s: %v", rule.Record, err)
		}
		appender := db.Appender(t.Context())
		for _, series := range matrix {
			named := labels.NewBuilder(series.Metric).Set("__name__", rule.Record).Labels()
			samples := make([]chunks.Sample, 0, len(series.Floats))
			for _, point := range series.Floats {
				samples = append(samples, floatSample{point.T, point.F})
			}
			if strings.HasPrefix(rule.Record, "requester:") {
				recorded = append(recorded, storage.NewListSeries(named, samples))
			} else if err := storeRecorded(appender, named, series.Floats, 5*time.Minute, end); err != nil {
				t.Fatalf("%s: %v", rule.Record, err)
			}
		}
		if err := appender.Commit(); err != nil {
			t.Fatal(err)
		}
		query.Close()
	}
	return recorded
}

// floatSample is a sample of a series that is written to a block.
type floatSample struct {
	at    int64
	value float64
}

func (s floatSample) ST() int64                   { return 0 }
func (s floatSample) T() int64                    { return s.at }
func (s floatSample) F() float64                  { return s.value }
func (floatSample) H() *histogram.Histogram       { return nil }
func (floatSample) FH() *histogram.FloatHistogram { return nil }
func (floatSample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s floatSample) Copy() chunks.Sample         { return s }

// writeClaim writes the series of a claim, a sample each minute.
func writeClaim(t *testing.T, db *tsdb.DB, c *sizedClaim, start, end time.Time) {
	t.Helper()
	random := rand.New(rand.NewPCG(24, 4))
	appender := db.Appender(t.Context())
	appended := map[string]storage.SeriesRef{}
	add := func(at time.Time, value float64, name string, pairs ...string) {
		if math.IsNaN(value) {
			return
		}
		key := name + strings.Join(pairs, ",")
		ref, err := appender.Append(appended[key], labels.FromStrings(append(pairs, "__name__", name, "node", "n1", "job", "node", "instance", "n1")...), at.UnixMilli(), value)
		if err != nil {
			t.Fatal(err)
		}
		appended[key] = ref
	}
	from, to, held := end.Add(-c.from), end.Add(-c.to), 0.0
	namespace, price, currency, class := "ml", 2.0, "EUR", "gpu"
	if c.namespace != "" {
		namespace, price, currency, class = c.namespace, c.price, "USD", "gpu.nvidia.com"
	}
	if c.namespace != "" && c.profile != "" {
		class = "mig.nvidia.com"
	}
	for minute := range int(end.Sub(start) / time.Minute) {
		at := start.Add(time.Duration(minute) * time.Minute)
		if c.name == "notebook" {
			add(at, 1, "dra_exporter_build_info")
		}
		if at.Before(from) || at.After(to) {
			continue
		}
		held += 60
		add(at, 1, "dra_claim_info", "namespace", namespace, "resourceclaim", c.name, "template", c.template, "deviceclass", class, "admin_access", "false", "extended_resource", "false")
		for device := range c.devices {
			uuid := fmt.Sprintf("GPU-%s-%d", c.name, device)
			of := []string{"namespace", namespace, "resourceclaim", c.name, "uuid", uuid}
			u := c.use(device, minute, random)
			used := append(slices.Clone(of), "attribution", c.attribution)
			share := c.share
			if share == 0 {
				share = 1
			}
			add(at, 1, "dra_claim_device_info", append(slices.Clone(of), "deviceclass", class)...)
			add(at, 1, "dra_device_info", "uuid", uuid, "model", c.model, "partition_profile", c.profile)
			add(at, price, "dra_device_price_per_hour", "uuid", uuid, "deviceclass", class, "currency", currency)
			add(at, held, "dra_claim_held_seconds_total", of...)
			add(at, held*share, "dra_claim_device_seconds_total", of...)
			add(at, c.memory*(1<<30), "dra_claim_memory_allocated_bytes", of...)
			add(at, u.memory*(1<<30), "dra_claim_memory_used_bytes", used...)
			add(at, u.utilization, "dra_claim_utilization_ratio", used...)
			add(at, u.sm, "dra_claim_engine_active_ratio", append(slices.Clone(used), "engine", "sm")...)
			add(at, u.dram, "dra_claim_engine_active_ratio", append(slices.Clone(used), "engine", "dram")...)
			if c.decoder > 0 {
				add(at, c.decoder, "dra_claim_engine_active_ratio", append(slices.Clone(used), "engine", "decoder")...)
			}
			if c.nvlink {
				add(at, held*1e9, "dra_claim_nvlink_transmit_bytes_total", used...)
				add(at, held*1e9, "dra_claim_nvlink_receive_bytes_total", used...)
			}
		}
	}
	if err := appender.Commit(); err != nil {
		t.Fatal(err)
	}
}

// prometheusWith starts a Prometheus that has the series, and returns its address.
func prometheusWith(t *testing.T, series []storage.Series) string {
	t.Helper()
	folder, address := t.TempDir(), freeAddress(t)
	data, file := filepath.Join(folder, "data"), filepath.Join(folder, "prometheus.yaml")
	if _, err := tsdb.CreateBlock(series, data, (20 * days).Milliseconds(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("global: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, exec.CommandContext(t.Context(), filepath.Join(root, "test", ".bin", "prometheus", "prometheus"),
		"--config.file="+file, "--storage.tsdb.path="+data, "--web.listen-address="+address))
	until(t, "Prometheus is ready", func() bool { return reachable(t, "http://"+address+"/-/ready") })
	return address
}

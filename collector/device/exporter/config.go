package exporter

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/collector/yamlfile"
)

const (
	maxExporters = 16
	maxRules     = 256 // of a kind
	maxDetail    = 64  // bytes
	maxAge       = 90 * time.Second
	defaultEvery = 5 * time.Second
)

// Config says how the page of one exporter is read.
type Config struct {
	Name  string        // unique; in messages
	URL   string        // http://ADDRESS:PORT/PATH or unix:///SOCKET
	Every time.Duration // how often it is read
	Age   time.Duration // how old a value on the page may be: the interval at which the exporter reads its hardware

	ownFamilies bool // the page has the project's own families, of the devices of rules.driver
	rules       rules
}

// rules map the series of a page.
type rules struct {
	vendor, driver string
	info           string // the metric whose series have more labels of the identity; empty: none
	relabel        []relabeling
	labels         map[identityField]string // the label that has each part of a device's identity
	metrics        []metricRule
	blanks         []float64 // values that mean that there is no value
}

// names are the metrics that the rules read.
func (r *rules) names() map[string]bool {
	names := map[string]bool{r.info: r.info != ""}
	for _, rule := range r.metrics {
		names[rule.metric] = true
	}
	return names
}

// renamed returns the metric of a rule, and the required ones that are the same under
// other namings.
func (r *rules) renamed(rule metricRule) []string {
	names := []string{rule.metric}
	for _, other := range r.metrics {
		if rule.required && other.required && rule.sameReading(other) && rule.showsNaming != "" && other.showsNaming != "" && other.showsNaming != rule.showsNaming {
			names = append(names, other.metric)
		}
	}
	return names
}

// identityField is a part of a device's identity that a label may have.
type identityField string

const (
	fieldUUID          identityField = "uuid"
	fieldPCIAddress    identityField = "pci_address"
	fieldName          identityField = "name"         // under which the driver publishes the device
	fieldGPUInstance   identityField = "gpu_instance" // of a MIG partition; uuid is then that of the GPU
	fieldProfile       identityField = "profile"
	fieldVendor        identityField = "vendor" // if the exporter reads hardware of several
	fieldModel         identityField = "model"
	fieldDriverVersion identityField = "driver_version"
	fieldSerial        identityField = "serial"
	fieldPartNumber    identityField = "board_part_number"
	fieldVBIOS         identityField = "vbios"
)

func identityFields() []string {
	return []string{
		string(fieldUUID), string(fieldPCIAddress), string(fieldName), string(fieldGPUInstance),
		string(fieldProfile), string(fieldVendor), string(fieldModel), string(fieldDriverVersion),
		string(fieldSerial), string(fieldPartNumber), string(fieldVBIOS),
	}
}

// relabeling is a rule of Prometheus' relabeling, of which replace, keep and drop
// are known.
type relabeling struct {
	source      []string
	separator   string
	regex       *regexp.Regexp // anchored
	target      string
	replacement string
	action      string
}

// metricRule maps the series of one metric to one quantity. A rule that follows
// another one for the same reading is used only where that one has no value.
type metricRule struct {
	metric   string
	match    []condition
	quantity device.Quantity
	ratio    bool
	details  [2]detail
	unit     unit
	combine  string
	parts    []string // labels that tell apart what is combined; none: all but those of the holders
	required bool

	// Releases of an exporter name their metrics differently. A naming is known by a
	// metric that no other naming has.
	showsNaming string // a device with this metric has this naming
	needsNaming string // the rule is used of devices that show this naming
}

// condition is the value that a label must have. An absent label is empty.
type condition struct {
	label string
	regex *regexp.Regexp // anchored
}

// detail is the detail of a reading: fixed, or the value of a label.
type detail struct {
	fixed  string
	label  string
	values map[string]string // of the label; series with others are left out. Nil: as it is
}

// The ways to make one reading of the parts of a device. Without one, series with
// different values are an error.
const (
	combineSum  = "sum"
	combineMean = "mean"
	combineMax  = "max"
)

// The files of the presets, each the entry of one exporter without name and preset.
//
//go:embed presets/*.yaml
var presetFiles embed.FS

// Presets returns the names of the presets, sorted.
func Presets() []string {
	files, _ := fs.Glob(presetFiles, "presets/*.yaml") // the pattern is well-formed
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = strings.TrimSuffix(path.Base(file), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Preset returns the configuration of NAME or NAME=URL: a preset, whose page is at
// another place than the exporter's default with a URL.
func Preset(text string) (Config, error) {
	name, at, located := strings.Cut(text, "=")
	config, err := preset(name)
	if err != nil {
		return Config{}, err
	}
	if located {
		if config.URL, err = parseURL(at); err != nil {
			return Config{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return config, nil
}

func preset(name string) (Config, error) {
	if !slices.Contains(Presets(), name) {
		return Config{}, fmt.Errorf("there is no preset %s, want one of %s%s", yamlfile.Quoted(name), strings.Join(Presets(), ", "), yamlfile.Hint(name, Presets()))
	}
	file := "presets/" + name + ".yaml"
	text, err := presetFiles.ReadFile(file)
	if err != nil {
		return Config{}, err
	}
	root, err := yamlfile.Document(text)
	if err != nil {
		return Config{}, yamlfile.In(file, err)
	}
	config := Config{Name: name, Every: defaultEvery}
	if err := config.decode(root, nil, rulesKeys()...); err != nil {
		return Config{}, yamlfile.In(file, err)
	}
	return config, nil
}

// driverConfig is the page of a driver, with the project's own families.
func driverConfig(driver, url string, every time.Duration) Config {
	return Config{Name: driver, URL: url, Every: every, ownFamilies: true, rules: rules{driver: driver}}
}

// Driver returns the configuration of DRIVER=URL: the page of a DRA driver with the
// project's own families, which is read at an interval, a second at least.
func Driver(text string, every time.Duration) (Config, error) {
	driver, at, ok := strings.Cut(text, "=")
	if !ok || !isDriver(driver) {
		return Config{}, errors.New("want DRIVER=URL, with the name of a DRA driver") // the text can have a password
	}
	url, err := parseURL(at)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", driver, err)
	}
	return driverConfig(driver, url, max(every, time.Second)), nil
}

// Load reads the exporters of a file. Errors name the file, and the line and the
// key where there are any. env returns variables, to which URLs can refer.
func Load(file string, env func(string) string) ([]Config, error) {
	text, err := yamlfile.Read(file)
	if err != nil {
		return nil, err
	}
	configs, err := Parse(text, env)
	if err != nil {
		return nil, yamlfile.In(file, err)
	}
	return configs, nil
}

// Parse decodes the exporters of a file. In a URL, $(NAME) is the variable NAME of
// env, as in the arguments of a container: the address of the node is known to the
// container's environment only.
func Parse(text []byte, env func(string) string) ([]Config, error) {
	root, err := yamlfile.Document(text)
	if err != nil {
		return nil, err
	}
	file, err := yamlfile.MappingOf(root, "the file", "exporters")
	if err != nil {
		return nil, err
	}
	if _, err := file.Need("exporters"); err != nil {
		return nil, err
	}
	entries, err := file.List("exporters", maxExporters)
	if err != nil {
		return nil, err
	}
	configs := make([]Config, 0, len(entries))
	for _, entry := range entries {
		config, err := parseExporter(entry, env)
		if err != nil {
			return nil, err
		}
		configs = append(configs, config)
	}
	return configs, nil
}

// parseExporter decodes an entry: the place of an exporter, and a preset or rules.
func parseExporter(entry *yaml.Node, env func(string) string) (Config, error) {
	given := []string{"name", "preset", "url", "interval", "max_age"}
	keys, err := yamlfile.MappingOf(entry, "an exporter", append(given, rulesKeys()[3:]...)...)
	if err != nil {
		return Config{}, err
	}
	config := Config{Every: defaultEvery}
	if at := keys.Node("preset"); at != nil {
		name, err := keys.Text("preset")
		if err != nil {
			return Config{}, err
		}
		if config, err = preset(name); err != nil {
			return Config{}, yamlfile.Errorf(at, "%v", err)
		}
		return config, config.decode(entry, env, given...)
	}
	if keys.Node("driver") != nil && keys.Node("device") == nil && keys.Node("metrics") == nil {
		return parseDriver(entry, keys, env)
	}
	for _, key := range []string{"name", "url", "device", "metrics"} {
		if _, err := keys.Need(key); err != nil {
			return Config{}, err
		}
	}
	return config, config.decode(entry, env, append(given, rulesKeys()...)...)
}

// parseDriver decodes an entry of a driver without rules: its page has the project's own
// families.
func parseDriver(entry *yaml.Node, keys yamlfile.Mapping, env func(string) string) (Config, error) {
	if _, err := keys.Need("url"); err != nil {
		return Config{}, err
	}
	driver, err := keys.Text("driver")
	if err != nil {
		return Config{}, err
	}
	if !isDriver(driver) {
		return Config{}, yamlfile.Errorf(keys.Node("driver"), "driver is %s, which is not the name of a DRA driver", yamlfile.Quoted(driver))
	}
	config := driverConfig(driver, "", defaultEvery)
	return config, config.decode(entry, env, "name", "url", "interval", "max_age", "driver")
}

// rulesKeys are the keys of a preset. The first three are those of every exporter.
func rulesKeys() []string {
	return []string{"url", "interval", "max_age", "vendor", "driver", "info", "relabel", "device", "metrics", "blanks"}
}

// decode decodes the keys of a mapping over what is known already.
func (c *Config) decode(node *yaml.Node, env func(string) string, known ...string) error {
	keys, err := yamlfile.MappingOf(node, "an exporter", known...)
	if err != nil {
		return err
	}
	for _, field := range []struct {
		key  string
		into *string
	}{{"name", &c.Name}, {"url", &c.URL}, {"vendor", &c.rules.vendor}, {"driver", &c.rules.driver}, {"info", &c.rules.info}} {
		if keys.Node(field.key) == nil {
			continue
		}
		if *field.into, err = keys.Text(field.key); err != nil {
			return err
		}
	}
	if at := keys.Node("url"); at != nil {
		if c.URL, err = expand(c.URL, env); err == nil {
			c.URL, err = parseURL(c.URL)
		}
		if err != nil {
			return yamlfile.Errorf(at, "url: %v", err)
		}
	}
	if err := decodeDuration(keys, "interval", &c.Every, time.Second); err != nil {
		return err
	}
	if err := decodeDuration(keys, "max_age", &c.Age, 0); err != nil {
		return err
	}
	return c.rules.decode(keys)
}

func decodeDuration(keys yamlfile.Mapping, key string, field *time.Duration, least time.Duration) error {
	text, err := keys.Text(key)
	if err != nil || text == "" {
		return err
	}
	if *field, err = time.ParseDuration(text); err != nil || *field < least || *field > maxAge {
		return yamlfile.Errorf(keys.Node(key), "%s is %s, want a duration from %v to %v, such as 15s", key, yamlfile.Quoted(text), least, maxAge)
	}
	return nil
}

// expand replaces $(NAME) by variables, and by an IPv6 address in brackets.
func expand(text string, env func(string) string) (string, error) {
	var err error
	expanded := regexp.MustCompile(`\[\$\([A-Za-z_][A-Za-z0-9_]*\)\]|\$\([A-Za-z_][A-Za-z0-9_]*\)`).ReplaceAllStringFunc(text, func(reference string) string {
		name := strings.Trim(reference, "[$()]")
		value := ""
		if env != nil {
			value = env(name)
		}
		if value == "" && err == nil {
			err = fmt.Errorf("the variable %s is not set", name)
		}
		if reference[0] == '[' {
			return "[" + value + "]"
		}
		return hostport.Host(value)
	})
	return expanded, err
}

// parseURL returns the URL of a page on this node, with an IPv6 address in brackets.
// Names are refused, except localhost and those of Services: what they resolve to may be
// another node, whose devices would be taken for those of this one. A Service can keep
// to the node of its client (internalTrafficPolicy: Local).
func parseURL(text string) (string, error) {
	text = hostport.Bracketed(text)
	if hostport.HasUser(text) {
		return "", fmt.Errorf("%s has a user: it is neither http://ADDRESS:PORT/PATH nor unix:///SOCKET", yamlfile.Quoted(hostport.Redacted(text)))
	}
	at, err := url.Parse(text)
	if err != nil {
		var reason *url.Error
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return "", fmt.Errorf("%s: %w", yamlfile.Quoted(hostport.Redacted(text)), err)
	}
	switch {
	case at.Scheme == "unix" && at.Host == "" && filepath.IsAbs(at.Path):
		return text, nil
	case at.Scheme != "http" || at.Fragment != "":
		return "", fmt.Errorf("%s is neither http://ADDRESS:PORT/PATH nor unix:///SOCKET", yamlfile.Quoted(hostport.Redacted(text)))
	}
	if _, err := netip.ParseAddr(at.Hostname()); err != nil && at.Hostname() != "localhost" && !isService(at.Hostname()) {
		return "", fmt.Errorf("the host %s is neither an IP address of this node, localhost, nor a Service (NAME.NAMESPACE.svc) with internalTrafficPolicy: Local", yamlfile.Quoted(at.Hostname()))
	}
	if _, _, err := net.SplitHostPort(at.Host); err != nil {
		return "", fmt.Errorf("%s has no port", yamlfile.Quoted(hostport.Redacted(text)))
	}
	return text, nil
}

// isService reports whether a host is NAME.NAMESPACE.svc, with the cluster's domain or
// without it.
func isService(host string) bool {
	parts := strings.Split(host, ".")
	return len(parts) >= 3 && parts[0] != "" && parts[1] != "" && parts[2] == "svc"
}

// decode decodes the rules that a mapping has.
func (r *rules) decode(keys yamlfile.Mapping) error {
	entries, err := keys.List("relabel", maxRules)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		rule, err := parseRelabeling(entry)
		if err != nil {
			return err
		}
		r.relabel = append(r.relabel, rule)
	}
	if at := keys.Node("device"); at != nil {
		if err := r.decodeDevice(at); err != nil {
			return err
		}
	}
	if entries, err = keys.List("metrics", maxRules); err != nil {
		return err
	}
	for _, entry := range entries {
		rule, err := parseMetric(entry)
		if err != nil {
			return err
		}
		for j, earlier := range r.metrics {
			if earlier.same(rule) {
				return yamlfile.Errorf(entry, "%s maps the same series to the same quantity as line %d", rule.metric, entries[j].Line)
			}
		}
		r.metrics = append(r.metrics, rule)
	}
	for i, rule := range r.metrics {
		shows := func(other metricRule) bool { return other.showsNaming == rule.needsNaming }
		if rule.needsNaming != "" && !slices.ContainsFunc(r.metrics, shows) {
			return yamlfile.Errorf(entries[i], "needs_naming is %s, which no metric shows", yamlfile.Quoted(rule.needsNaming))
		}
	}
	if entries, err = keys.List("blanks", maxRules); err != nil {
		return err
	}
	for _, entry := range entries {
		blank, err := yamlfile.Number("blanks", entry)
		if err != nil {
			return err
		}
		r.blanks = append(r.blanks, blank)
	}
	return nil
}

// decodeDevice decodes the labels that identify a device.
func (r *rules) decodeDevice(at *yaml.Node) error {
	keys, err := yamlfile.MappingOf(at, "device", identityFields()...)
	if err != nil {
		return err
	}
	r.labels = make(map[identityField]string)
	for _, field := range identityFields() {
		label, err := keys.Text(field)
		if err != nil {
			return err
		}
		if label != "" {
			r.labels[identityField(field)] = label
		}
	}
	named := r.labels[fieldName] != ""
	switch {
	case named != (r.driver != ""):
		return yamlfile.Errorf(at, "driver (the DRA driver) and device.name (the label with the name under which it publishes the device) need each other")
	case named && (r.labels[fieldUUID] != "" || r.labels[fieldPCIAddress] != ""):
		return yamlfile.Errorf(at, "a device has a uuid, a pci_address or both, or else the name under which its driver publishes it")
	case !named && r.labels[fieldUUID] == "" && r.labels[fieldPCIAddress] == "":
		return yamlfile.Errorf(at, "none of uuid, pci_address and name is there: devices cannot be identified")
	case r.labels[fieldGPUInstance] != "" && r.labels[fieldUUID] == "":
		return yamlfile.Errorf(at, "gpu_instance needs uuid, the label with the UUID of the GPU")
	}
	return nil
}

func parseRelabeling(entry *yaml.Node) (relabeling, error) {
	rule := relabeling{separator: ";", replacement: "$1", action: "replace"}
	keys, err := yamlfile.MappingOf(entry, "a rule of relabel", "source_labels", "separator", "regex", "target_label", "replacement", "action")
	if err != nil {
		return rule, err
	}
	if rule.source, err = labelNames(keys, "source_labels"); err != nil {
		return rule, err
	}
	regex := "(.*)"
	for _, field := range []struct {
		key  string
		into *string
	}{{"separator", &rule.separator}, {"regex", &regex}, {"target_label", &rule.target}, {"replacement", &rule.replacement}, {"action", &rule.action}} {
		if keys.Node(field.key) == nil {
			continue
		}
		if *field.into, err = keys.Text(field.key); err != nil {
			return rule, err
		}
	}
	if rule.regex, err = anchored(regex); err != nil {
		return rule, yamlfile.Errorf(keys.Node("regex"), "regex: %v", err)
	}
	actions := []string{"replace", "keep", "drop"}
	switch {
	case !slices.Contains(actions, rule.action):
		return rule, yamlfile.Errorf(keys.Node("action"), "action is %s, want one of %s%s", yamlfile.Quoted(rule.action), strings.Join(actions, ", "), yamlfile.Hint(rule.action, actions))
	case (rule.action == "replace") != (rule.target != ""):
		return rule, yamlfile.Errorf(entry, "target_label belongs to the action replace, which needs it")
	}
	return rule, nil
}

// anchored compiles an expression that matches whole values, as those of Prometheus.
func anchored(text string) (*regexp.Regexp, error) { return regexp.Compile("^(?s:" + text + ")$") }

func parseMetric(entry *yaml.Node) (metricRule, error) {
	var rule metricRule
	keys, err := yamlfile.MappingOf(entry, "a metric", "metric", "match", "quantity", "details", "unit", "combine", "parts", "required", "shows_naming", "needs_naming")
	if err != nil {
		return rule, err
	}
	if _, err := keys.Need("metric"); err != nil {
		return rule, err
	}
	if rule.metric, err = keys.Text("metric"); err != nil {
		return rule, err
	}
	if rule.match, err = parseMatch(keys.Node("match")); err != nil {
		return rule, err
	}
	spec, err := rule.decodeQuantity(keys)
	if err != nil {
		return rule, err
	}
	if err := rule.decodeDetails(keys, spec); err != nil {
		return rule, err
	}
	if err := rule.decodeUnit(keys, spec); err != nil {
		return rule, err
	}
	if err := rule.decodeCombine(keys); err != nil {
		return rule, err
	}
	if rule.required, err = keys.Bool("required"); err != nil {
		return rule, err
	}
	if rule.showsNaming, err = keys.Text("shows_naming"); err != nil {
		return rule, err
	}
	rule.needsNaming, err = keys.Text("needs_naming")
	return rule, err
}

// decodeCombine decodes how parts of a device are combined, and the labels that tell
// them apart.
func (r *metricRule) decodeCombine(keys yamlfile.Mapping) (err error) {
	if r.combine, err = keys.Text("combine"); err != nil {
		return err
	}
	ways := []string{combineSum, combineMean, combineMax}
	if r.combine != "" && !slices.Contains(ways, r.combine) {
		return yamlfile.Errorf(keys.Node("combine"), "combine is %s, want one of %s%s", yamlfile.Quoted(r.combine), strings.Join(ways, ", "), yamlfile.Hint(r.combine, ways))
	}
	if at := keys.Node("parts"); at != nil && r.combine != combineSum && r.combine != combineMean {
		return yamlfile.Errorf(at, "parts belongs to combine: %s and combine: %s", combineSum, combineMean)
	}
	r.parts, err = labelNames(keys, "parts")
	return err
}

// labelNames decodes a list of names of labels.
func labelNames(keys yamlfile.Mapping, key string) ([]string, error) {
	entries, err := keys.List(key, maxRules)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, at := range entries {
		name, err := yamlfile.Text(key, at)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

func parseMatch(node *yaml.Node) ([]condition, error) {
	if node == nil {
		return nil, nil
	}
	keys, labels, err := yamlfile.Names(node, "match")
	if err != nil {
		return nil, err
	}
	conditions := make([]condition, 0, len(labels))
	for _, label := range labels {
		at := keys.Node(label)
		if at.Kind != yaml.ScalarNode {
			return nil, yamlfile.Errorf(at, "%s is %s, want a regular expression", label, yamlfile.KindOf(at))
		}
		regex, err := anchored(at.Value)
		if err != nil {
			return nil, yamlfile.Errorf(at, "%s: %v", label, err)
		}
		conditions = append(conditions, condition{label, regex})
	}
	return conditions, nil
}

// decodeQuantity decodes the quantity by its name in the catalogue.
func (r *metricRule) decodeQuantity(keys yamlfile.Mapping) (device.Spec, error) {
	at, err := keys.Need("quantity")
	if err != nil {
		return device.Spec{}, err
	}
	name, err := keys.Text("quantity")
	if err != nil {
		return device.Spec{}, err
	}
	var names []string
	for q, spec := range device.Specs() {
		if spec.Name == name {
			r.quantity, r.ratio = device.Quantity(q), spec.Unit == "ratio"
			return spec, nil
		}
		names = append(names, spec.Name)
	}
	return device.Spec{}, yamlfile.Errorf(at, "unknown quantity %s, want one of %s%s", yamlfile.Quoted(name), strings.Join(names, ", "), yamlfile.Hint(name, names))
}

// decodeDetails decodes each detail that the quantity has: a fixed text, or the
// values of a label.
func (r *metricRule) decodeDetails(keys yamlfile.Mapping, spec device.Spec) error {
	at := keys.Node("details")
	if at == nil && len(spec.Details) == 0 {
		return nil
	}
	if at == nil {
		return yamlfile.Errorf(keys.At, "details is missing: %s has the details %s", spec.Name, strings.Join(spec.Details, ", "))
	}
	details, err := yamlfile.MappingOf(at, "details of "+spec.Name, spec.Details...)
	if err != nil {
		return err
	}
	for i, name := range spec.Details {
		node, err := details.Need(name)
		if err != nil {
			return err
		}
		if r.details[i], err = parseDetail(name, node); err != nil {
			return err
		}
	}
	return nil
}

func parseDetail(name string, node *yaml.Node) (detail, error) {
	if node.Kind != yaml.MappingNode {
		fixed, err := yamlfile.Text(name, node)
		return detail{fixed: fixed}, err
	}
	keys, err := yamlfile.MappingOf(node, name, "label", "values")
	if err != nil {
		return detail{}, err
	}
	if _, err := keys.Need("label"); err != nil {
		return detail{}, err
	}
	var d detail
	if d.label, err = keys.Text("label"); err != nil || keys.Node("values") == nil {
		return d, err
	}
	values, names, err := yamlfile.Names(keys.Node("values"), "values")
	if err != nil {
		return d, err
	}
	d.values = make(map[string]string, len(names))
	for _, value := range names {
		if d.values[value], err = values.Text(value); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (r *metricRule) decodeUnit(keys yamlfile.Mapping, spec device.Spec) error {
	units := baseUnits(spec.Unit)
	name, err := keys.Text("unit")
	if err != nil {
		return err
	}
	if keys.Node("unit") == nil {
		name = spec.Unit
	}
	ok := false
	if r.unit, ok = units[name]; ok {
		return nil
	}
	if spec.Unit == "" {
		return yamlfile.Errorf(keys.Node("unit"), "unit: %s is a number without a unit", spec.Name)
	}
	names := unitNames(units)
	return yamlfile.Errorf(keys.Node("unit"), "unit is %s, want one of %s%s", yamlfile.Quoted(name), strings.Join(names, ", "), yamlfile.Hint(name, names))
}

// same reports whether another rule maps the same series to the same reading.
func (r metricRule) same(other metricRule) bool {
	return r.metric == other.metric && r.sameReading(other) &&
		slices.EqualFunc(r.match, other.match, func(a, b condition) bool {
			return a.label == b.label && a.regex.String() == b.regex.String()
		})
}

// sameReading reports whether another rule maps to the same reading.
func (r metricRule) sameReading(other metricRule) bool {
	return r.quantity == other.quantity && r.details[0].same(other.details[0]) && r.details[1].same(other.details[1])
}

func (d detail) same(other detail) bool { return d.fixed == other.fixed && d.label == other.label }

package inventory

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func TestProjection(t *testing.T) {
	whole := projection{whole: true}
	for expression, want := range map[string]projection{
		`true`:                                 {},
		`device.driver == "gpu.example.com"`:   {driver: true},
		`device.allowMultipleAllocations`:      {shareable: true},
		`device.attributes["dom"].uuid == "x"`: {names: []string{"a:dom/uuid"}},
		`device.attributes["dom"]["uuid"] == "x" && device.driver == "d"`:                          {names: []string{"a:dom/uuid"}, driver: true},
		`device.attributes.dom.uuid == "x"`:                                                        {names: []string{"a:dom/uuid"}},
		`has(device.attributes["dom"].uuid)`:                                                       {names: []string{"a:dom/uuid"}},
		`"uuid" in device.attributes["dom"]`:                                                       {names: []string{"a:dom/uuid"}},
		`device.attributes["dom"].?uuid.orValue("") == "x"`:                                        {names: []string{"a:dom/uuid"}},
		`device.attributes[?"dom"].?uuid.orValue("") == "x"`:                                       {names: []string{"a:dom/uuid"}},
		`device.attributes["dom"][?"uuid"].orValue("") == "x"`:                                     {names: []string{"a:dom/uuid"}},
		`device.capacity["dom"].memory.compareTo(quantity("1Gi")) >= 0`:                            {names: []string{"c:dom/memory"}},
		`cel.bind(dom, device.attributes["dom"], dom.a == "x" && has(dom.b))`:                      {names: []string{"a:dom/a", "a:dom/b"}},
		`cel.bind(all, device.attributes, all["dom"].a == "x")`:                                    {names: []string{"a:dom/a"}},
		`cel.bind(d, device, d.attributes["dom"].a == "x")`:                                        {names: []string{"a:dom/a"}},
		`cel.bind(want, device.attributes["dom"].a, want == "x" || want == "y")`:                   {names: []string{"a:dom/a"}},
		`device.attributes["dom"].list.exists(x, x == device.attributes["dom"].a)`:                 {names: []string{"a:dom/a", "a:dom/list"}},
		`["x", "y"].exists(n, device.attributes["dom"].a == n)`:                                    {names: []string{"a:dom/a"}},
		`device.attributes["dom"].v.isGreaterThan(semver("1.0.0")) || device.driver.endsWith("m")`: {names: []string{"a:dom/v"}, driver: true},

		`size(device.attributes["dom"]) > 3`:                                                     whole,
		`"dom" in device.attributes`:                                                             whole,
		`device.attributes["dom"].exists(k, k == "a")`:                                           whole,
		`["a"].exists(n, n in device.attributes["dom"])`:                                         whole,
		`["a"].exists(n, has(device.attributes["dom"].b) && device.attributes["dom"][n] == "x")`: {whole: true, names: []string{"a:dom/b"}},
		`device.attributes[device.driver].a == "x"`:                                              {whole: true, driver: true},
		`device.attributes == device.attributes`:                                                 whole,
		`cel.bind(dom, device.attributes["dom"], size(dom) > 1)`:                                 whole,
		`["a"].exists(device, device == "a")`:                                                    {},
	} {
		s := newSelector(expression)
		if s.broken != "" {
			t.Errorf("%s: %s", expression, s.broken)
		} else if !reflect.DeepEqual(s.reads, want) && (len(s.reads.names) > 0 || len(want.names) > 0 || s.reads.whole != want.whole || s.reads.driver != want.driver || s.reads.shareable != want.shareable) {
			t.Errorf("%s reads %+v, want %+v", expression, s.reads, want)
		}
	}
}

// expressions that fail for some devices, match some, and see all kinds of
// values.
func someExpressions() []string {
	return []string{
		`device.attributes["gpu.example.com"].model == "A"`,
		`device.driver == "gpu.example.com" && device.attributes["gpu.example.com"].model in ["B", "C"]`,
		`has(device.attributes["gpu.example.com"].version)`,
		`device.attributes["gpu.example.com"].version.isGreaterThan(semver("2.0.0"))`,
		`"version" in device.attributes["gpu.example.com"]`,
		`device.attributes["gpu.example.com"].?version.orValue(semver("9.0.0")).isLessThan(semver("3.0.0"))`,
		`device.attributes["other.example.com"].healthy`,
		`device.attributes["other.example.com"].?healthy.orValue(false)`,
		`device.capacity["gpu.example.com"].memory.compareTo(quantity("20Gi")) >= 0`,
		`device.capacity["net.example.com"].memory.isGreaterThan(quantity("20Gi"))`,
		`device.allowMultipleAllocations`,
		`cel.bind(gpu, device.attributes["gpu.example.com"], has(gpu.model) && gpu.model != "A")`,
		`device.attributes["gpu.example.com"].id % 2 == 0`,
		`size(device.attributes["gpu.example.com"]) > 2`,
		`device.attributes["gpu.example.com"].model`,
		`["model", "version"].all(n, n in device.attributes["gpu.example.com"])`,
	}
}

// An outcome that is remembered by what a selector reads is upstream's for the whole
// device.
func TestSelectorsAgreeWithUpstream(t *testing.T) {
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	matches, failures := 0, 0
	for seed := range uint64(8) {
		w := newTestCluster(t, seed)
		w.populate()
		for i, expression := range someExpressions() {
			w.change() // slots and texts are given again
			request := Request{Class: "any", Selectors: selectors(expression)}
			if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
				t.Fatal(err)
			}
			count := w.inv.Count(request)
			compiled := compiler.CompileCELExpression(expression, dracel.Options{})
			match, failed := 0, 0
			for _, s := range w.current() {
				for j := range s.Spec.Devices {
					d := &s.Spec.Devices[j]
					is, _, err := compiled.DeviceMatches(t.Context(), dracel.Device{Driver: s.Spec.Driver,
						AllowMultipleAllocations: d.AllowMultipleAllocations, Attributes: d.Attributes, Capacity: d.Capacity})
					switch {
					case err != nil:
						failed++
					case is:
						match++
					}
				}
			}
			if count.Left[dra.StageSelectors] != match || count.Failed != failed || !count.Complete || (len(count.Failures) > 0) != (failed > 0) {
				t.Errorf("seed %d: %s (%d) matches %d and fails for %d (%v), want %d and %d", seed, expression, i,
					count.Left[dra.StageSelectors], count.Failed, count.Failures, match, failed)
			}
			matches, failures = matches+match, failures+failed
		}
	}
	if matches < 200 || failures < 200 {
		t.Errorf("%d matches, %d failures: the test shows nothing", matches, failures)
	}
}

// current are the slices that count.
func (w *testCluster) current() []*resourcev1.ResourceSlice {
	w.inv.lockUpdated()
	defer w.inv.mu.Unlock()
	var current []*resourcev1.ResourceSlice
	for _, p := range w.inv.pools.all() {
		for _, s := range p.current {
			current = append(current, w.slices[s.name])
		}
	}
	return current
}

// fleet publishes pools of one slice each, on a node each.
func fleet(w *testCluster, pools, devices int, device func(pool, index int) resourcev1.Device) {
	for p := range pools {
		s := &resourcev1.ResourceSlice{}
		s.Name = fmt.Sprintf("slice-%d", p)
		s.Spec.Driver = "gpu.example.com"
		s.Spec.NodeName = new(fmt.Sprintf("node-%d", p))
		s.Spec.Pool = resourcev1.ResourcePool{Name: *s.Spec.NodeName, Generation: 1, ResourceSliceCount: 1}
		for i := range devices {
			s.Spec.Devices = append(s.Spec.Devices, device(p, i))
		}
		w.slice(s)
	}
}

func plain(pool, index int) resourcev1.Device {
	return resourcev1.Device{
		Name: fmt.Sprintf("gpu-%d", index),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"uuid":  {StringValue: new(fmt.Sprintf("GPU-%d-%d", pool, index))},
			"model": {StringValue: new([]string{"A", "B"}[pool%2])},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
	}
}

func TestEvaluatesOncePerProjection(t *testing.T) {
	for name, c := range map[string]struct {
		expression string
		want       int
	}{
		"what many have in common": {`device.attributes["gpu.example.com"].model == "A"`, 2},
		"the driver":               {`device.driver == "gpu.example.com"`, 1},
		"nothing":                  {`true`, 1},
		"what each has itself":     {`device.attributes["gpu.example.com"].uuid == "GPU-1-1"`, 600},
		"all of it":                {`size(device.attributes["gpu.example.com"]) > 1`, 600},
	} {
		w := newTestCluster(t, 1)
		fleet(w, 6, 100, plain)
		s := newSelector(c.expression)
		w.inv.mu.Lock()
		chain := w.inv.selectors.add([]*selector{s})
		w.inv.mu.Unlock()
		if err := w.inv.evaluate(t.Context(), nil, chain); w.inv.selectors.evaluated != uint64(c.want) || err != nil {
			t.Errorf("%s: evaluated for %d devices (%v), want %d", name, w.inv.selectors.evaluated, err, c.want)
		}
		fleet(w, 1, 100, plain) // the same again
		if err := w.inv.evaluate(t.Context(), nil, chain); w.inv.selectors.evaluated != uint64(c.want) || err != nil {
			t.Errorf("%s: evaluated for %d devices again (%v)", name, w.inv.selectors.evaluated-uint64(c.want), err)
		}
	}
}

func TestTaintChangeIsNotEvaluatedAgain(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("one", `device.attributes["gpu.example.com"].uuid == "GPU-0-1"`)
	fleet(w, 1, 3, plain)
	before := supplyOf(w.inv)
	stamp := w.inv.slices.blocks.stamp
	s := w.slices["slice-0"].DeepCopy()
	s.Spec.Devices[1].Taints = []resourcev1.DeviceTaint{{Key: "unhealthy", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	w.slice(s)
	after := supplyOf(w.inv)
	if w.inv.slices.blocks.stamp != stamp {
		t.Error("the devices are new to selectors")
	}
	if before.Classes[0].Devices != [3]int{0, 1, 0} || after.Classes[0].Devices != [3]int{0, 0, 1} {
		t.Errorf("the class's devices were %v and are %v", before.Classes[0].Devices, after.Classes[0].Devices)
	}
}

func TestSweepsUnusedTextsAndClearsMemos(t *testing.T) {
	w := newTestCluster(t, 1)
	w.deviceClass("first", `device.attributes["gpu.example.com"].uuid.endsWith("-0")`)
	for round := range 12 {
		fleet(w, 10, 50, func(pool, index int) resourcev1.Device { return plain(1000*round+pool, index) })
		if got := supplyOf(w.inv).Classes[0].Devices[dra.DeviceFree]; got != 10 {
			t.Fatalf("in round %d %d devices are selected, want 10", round, got)
		}
	}
	if w.inv.texts.sweeps == 0 || len(w.inv.texts.numbers) > 3000 {
		t.Errorf("%d texts are kept after %d sweeps", len(w.inv.texts.numbers), w.inv.texts.sweeps)
	}
	for p := range 10 {
		w.dropSlice(fmt.Sprintf("slice-%d", p))
	}
	w.inv.ApplyClass("first", nil)
	w.inv.texts.sweep()
	w.inv.mu.Lock()
	w.inv.selectors.remove(w.inv.selectors.byExpression[`device.attributes["gpu.example.com"].uuid.endsWith("-0")`])
	w.inv.texts.sweep()
	w.inv.mu.Unlock()
	if left := len(w.inv.texts.numbers) + len(w.inv.nodes.selections.values) + len(w.inv.pools.byID) + len(w.inv.slices.byName); left != 0 {
		t.Errorf("of what is gone %d things are kept: %v", left, w.inv.texts.numbers)
	}
}

func TestFailingSelectors(t *testing.T) {
	w := newTestCluster(t, 1)
	fleet(w, 2, 3, plain)
	w.deviceClass("careless", `device.attributes["other.example.com"].model == "A"`)
	w.deviceClass("broken", `device.attributes[`)
	w.deviceClass("models", `device.driver == "gpu.example.com"`)
	w.inv.ApplyClass("future", &resourcev1.DeviceClass{Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{}}}})
	for name, c := range map[string]struct {
		request Request
		left    int // after the selectors
		failed  int
		where   []string
		message string
	}{
		"a class":                       {Request{Class: "careless"}, 0, 6, []string{"class careless"}, "no such key: model. consider using"},
		"a class that is no CEL":        {Request{Class: "broken"}, 0, 6, []string{"class broken"}, "compilation failed"},
		"a future kind":                 {Request{Class: "future"}, 0, 6, []string{"class future"}, "no CEL expression"},
		"a request":                     {Request{Class: "models", Selectors: selectors(`device.attributes["gpu.example.com"].nope == 1`)}, 0, 6, []string{"request"}, "no such key: nope"},
		"after one that matches":        {Request{Class: "models", Selectors: selectors(`device.attributes["gpu.example.com"].model == "A"`, `device.attributes["a"].b`)}, 0, 3, []string{"request"}, "no such key: b"},
		"after one that fails":          {Request{Class: "careless", Selectors: selectors(`device.attributes["a"].b`)}, 0, 6, []string{"class careless"}, "no such key: model"},
		"after one that does not match": {Request{Class: "models", Selectors: selectors(`false`, `device.attributes["a"].b`)}, 0, 0, nil, ""},
		"too costly":                    {Request{Class: "models", Selectors: selectors(costly())}, 0, 6, []string{"request"}, "cost limit exceeded"},
		"a class that is not":           {Request{Class: "none"}, 0, 0, nil, ""},
		"an expression of no type":      {Request{Class: "models", Selectors: selectors(`"text"`)}, 0, 6, []string{"request"}, "must evaluate to bool"},
	} {
		if err := w.inv.EvaluateRequest(t.Context(), nil, c.request); err != nil {
			t.Fatal(err)
		}
		count := w.inv.Count(c.request)
		var where []string
		message := ""
		for _, failure := range count.Failures {
			where, message = append(where, failure.Where), failure.Message
		}
		if count.Left[dra.StageSelectors] != c.left || count.Failed != c.failed || !slices.Equal(where, c.where) || !strings.Contains(message, c.message) || !count.Complete {
			t.Errorf("%s: %d left, %d failed, %+v", name, count.Left[dra.StageSelectors], count.Failed, count.Failures)
		}
	}
	supply := supplyOf(w.inv)
	for _, class := range supply.Classes {
		if bad := class.Class == "broken" || class.Class == "future"; bad == (class.Error == "") || bad == class.Counted {
			t.Errorf("class %s: counted: %v, %q", class.Class, class.Counted, class.Error)
		}
	}
}

// costly is an expression whose evaluation takes more than is allowed.
func costly() string {
	ten := `[0,1,2,3,4,5,6,7,8,9]`
	return strings.Repeat(ten+`.all(x, `, 6) + `device.driver != ""` + strings.Repeat(`)`, 6)
}

func TestBrokenAttribute(t *testing.T) {
	w := newTestCluster(t, 1)
	fleet(w, 1, 3, func(pool, index int) resourcev1.Device {
		d := plain(pool, index)
		if index == 1 {
			d.Attributes["version"] = resourcev1.DeviceAttribute{VersionValue: new("not a version")}
		}
		return d
	})
	w.deviceClass("any", `device.driver == "gpu.example.com"`)
	count := func() Count {
		if err := w.inv.EvaluateRequest(t.Context(), nil, Request{Class: "any"}); err != nil {
			t.Fatal(err)
		}
		return w.inv.Count(Request{Class: "any"})
	}
	if got := count(); got.Left[dra.StageClass] != 2 || got.Failed != 1 || got.Failures[0].Device != "gpu.example.com/node-0/gpu-1" {
		t.Errorf("%+v", got)
	}
}

func TestStopsWithItsContext(t *testing.T) {
	w := newTestCluster(t, 1)
	fleet(w, 2, 3, plain)
	w.deviceClass("any", `device.driver != ""`)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if err := w.inv.EvaluateRequest(ctx, nil, Request{Class: "any"}); !errors.Is(err, reason) {
		t.Errorf("Select: %v", err)
	}
	if err := w.inv.EvaluateClasses(ctx, nil); !errors.Is(err, reason) {
		t.Errorf("EvaluateClasses: %v", err)
	}
	if count := w.inv.Count(Request{Class: "any"}); count.Complete {
		t.Error("a count without all results is complete")
	}
	if err := w.inv.EvaluateClasses(t.Context(), nil); err != nil || !w.inv.Count(Request{Class: "any"}).Complete {
		t.Errorf("EvaluateClasses: %v", err)
	}
}

func TestSelectorsWithoutClass(t *testing.T) {
	w := newTestCluster(t, 1)
	fleet(w, 1, 3, plain)
	w.deviceClass("any", `device.driver != ""`)
	long := strings.Repeat("x", 4*selectorMemory/fewestSelectors/64)
	for i := range fewestSelectors + 50 {
		request := Request{Class: "any", Selectors: selectors(fmt.Sprintf(`device.driver != "%d%s"`, i, long))}
		if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
			t.Fatal(err)
		}
		if got := w.inv.Count(request); got.Left[dra.StageSelectors] != 3 {
			t.Fatalf("selector %d leaves %d", i, got.Left[dra.StageSelectors])
		}
	}
	if len(w.inv.selectors.byExpression) != fewestSelectors+1 {
		t.Errorf("%d selectors are kept", len(w.inv.selectors.byExpression))
	}
	for i := range 2 * fewestSelectors {
		if err := w.inv.EvaluateRequest(t.Context(), nil, Request{Class: "any", Selectors: selectors(fmt.Sprintf(`device.driver != "%d"`, i))}); err != nil {
			t.Fatal(err)
		}
	}
	small := 0
	for expression := range w.inv.selectors.byExpression {
		if len(expression) < 100 {
			small++
		}
	}
	if small != 2*fewestSelectors+1 {
		t.Errorf("%d small selectors are kept, for which there is memory", small)
	}
	if len(w.inv.selectors.shapes) != 1 {
		t.Errorf("%d indexes for selectors that all read the same", len(w.inv.selectors.shapes))
	}
}

func TestClassesAreCountedAfterEvaluation(t *testing.T) {
	w := newTestCluster(t, 1)
	fleet(w, 45, 128, plain)
	w.deviceClass("one", `device.attributes["gpu.example.com"].uuid == "GPU-3-7"`)
	enough := errors.New("enough")
	for turn := 1; ; turn++ {
		if first := w.inv.Supply(); first.Classes[0].Counted || first.Classes[0].Devices != [3]int{} {
			t.Fatalf("after %d turns the class is counted, and its selectors have been evaluated for %d devices", turn-1, w.inv.selectors.evaluated)
		}
		evaluated := 0
		err := w.inv.EvaluateClasses(t.Context(), func(context.Context) error {
			if evaluated++; evaluated == 1000 {
				return enough
			}
			return nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
	if w.inv.selectors.evaluated != 45*128 {
		t.Errorf("evaluated for %d devices in all: what is evaluated in one turn counts in the next", w.inv.selectors.evaluated)
	}
	if supply := w.inv.Supply(); !supply.Classes[0].Counted || supply.Classes[0].Devices != [3]int{0, 1, 0} {
		t.Errorf("at last: %+v", supply.Classes[0])
	}
}

// A selector is evaluated for a device only if all before it select the device:
// those of the class first.
func TestSelectorsAreEvaluatedInOrder(t *testing.T) {
	w := newTestCluster(t, 1)
	fleet(w, 6, 100, plain) // three pools of model A
	w.deviceClass("models", `device.attributes["gpu.example.com"].model == "A"`)
	request := Request{Class: "models", Selectors: selectors(
		`device.attributes["gpu.example.com"].uuid.startsWith("GPU-2")`,
		`device.attributes["gpu.example.com"].uuid.endsWith("7")`,
		`device.attributes["gpu.example.com"].nope`)}
	if err := w.inv.EvaluateRequest(t.Context(), nil, request); err != nil {
		t.Fatal(err)
	}
	// Two models, 300 devices of model A, 100 in pool 2, 10 that end with 7, all
	// of which look the same to the last selector.
	if w.inv.selectors.evaluated != 2+300+100+1 {
		t.Errorf("evaluated %d times", w.inv.selectors.evaluated)
	}
	count := w.inv.Count(request)
	if !count.Complete || count.Left[dra.StageClass] != 300 || count.Left[dra.StageSelectors] != 0 || count.Failed != 10 {
		t.Errorf("%+v", count)
	}
	other := Request{Class: "models", Selectors: selectors(`device.attributes["gpu.example.com"].uuid.endsWith("7")`)}
	if count := w.inv.Count(other); count.Complete {
		t.Error("complete, and the selector was evaluated only for what another left")
	}
	if err := w.inv.EvaluateRequest(t.Context(), nil, other); err != nil {
		t.Fatal(err)
	}
	if count := w.inv.Count(other); !count.Complete || count.Left[dra.StageSelectors] != 30 {
		t.Errorf("evaluated for the rest: %+v", count)
	}
	if w.inv.selectors.evaluated != 2+300+100+1+200 {
		t.Errorf("evaluated %d times in all", w.inv.selectors.evaluated)
	}
}

// Selectors of users whose evaluation would not end are not evaluated.
func TestSelectorsThatDoNotEnd(t *testing.T) {
	for expression, want := range map[string]bool{
		`device.driver == "a"`: true,
		`device.capacity["a"].memory.compareTo(quantity("10Gi")) >= 0`:      true,
		`device.capacity["a"].memory.isGreaterThan( quantity ( '1e12' ) )`:  true,
		`device.attributes["a"].quantity == 1`:                              true,
		`device.attributes["https://a"].count == 1`:                         true,
		`isQuantity("5E") && quantity("5Ei").sign() == 1`:                   true,
		`quantity("1e-2147483648").isLessThan(quantity("1"))`:               false,
		`device.capacity["a"].memory.compareTo(quantity("1E+999999")) >= 0`: false,
		`isQuantity('1e-9999999')`:                                          false,
		`quantity("1e" + "-9999999").sign() == 1`:                           false,
		`quantity(device.attributes["a"].text).sign() == 1`:                 false,
		`quantity("""1e-9999999""").sign() == 1`:                            false,
		`quantity(r"1e-9999999").sign() == 1`:                               false,
		`quantity("\u0031e-9999999").sign() == 1`:                           false,
		"quantity // a\n(\"1e-9999999\").sign() == 1":                       false,
		`quantity("` + strings.Repeat("9", 4000) + `").sign() == 1`:         false,
		`["1e-9999999"].all(text, quantity(text).sign() == 1)`:              false,
	} {
		if got := hasPlainQuantities(expression); got != want {
			t.Errorf("%s: got %t", expression, got)
		}
		if made := newSelector(expression); !want && !strings.Contains(made.broken, "computes a quantity that may take too long") {
			t.Errorf("%s: %q", expression, made.broken)
		}
	}
}

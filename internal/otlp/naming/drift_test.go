package naming

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/hwconv"
)

// standard is a metric as the conventions' own code has it.
type standard interface {
	Name() string
	Unit() string
}

func standards() []standard {
	return []standard{
		hwconv.StatusObservable{}, hwconv.ErrorsObservable{}, hwconv.EnergyObservable{}, hwconv.PowerObservable{}, hwconv.TemperatureObservable{},
		hwconv.GpuUtilizationObservable{}, hwconv.GpuMemoryUsageObservable{}, hwconv.GpuMemoryLimitObservable{}, hwconv.GpuMemoryUtilizationObservable{}, hwconv.GpuIOObservable{},
		hwconv.NetworkIOObservable{}, hwconv.NetworkUpObservable{},
	}
}

// kindOf is derived from the instrument that the standard's type embeds.
func kindOf(s standard) instrument {
	switch field := reflect.TypeOf(s).Field(0).Name; {
	case strings.HasSuffix(field, "UpDownCounter"):
		return upDownCounterInstrument
	case strings.HasSuffix(field, "Counter"):
		return counterInstrument
	default:
		return gaugeInstrument
	}
}

// keysOfStandard are the keys that the standard's methods Attr… make.
func keysOfStandard(s standard) []attribute.Key {
	var keys []attribute.Key
	value := reflect.ValueOf(s)
	for i := range value.NumMethod() {
		if !strings.HasPrefix(value.Type().Method(i).Name, "Attr") {
			continue
		}
		method := value.Method(i)
		arguments := make([]reflect.Value, method.Type().NumIn())
		for a := range arguments {
			arguments[a] = reflect.Zero(method.Type().In(a))
		}
		call := method.Call
		if method.Type().IsVariadic() {
			call = method.CallSlice
		}
		keys = append(keys, call(arguments)[0].Interface().(attribute.KeyValue).Key)
	}
	return keys
}

// What is exported as hw.* is what the newest Go code of the conventions has, and 1.44.0,
// which has no Go code, has the same names, instruments and units.
func TestHardwareIsTheStandards(t *testing.T) {
	names, byName := readConventionNames(t), map[string]standard{}
	for _, s := range standards() {
		byName[s.Name()] = s
	}
	used := map[string][]attribute.Key{}
	for _, target := range targets() {
		for _, c := range target.families {
			for _, r := range append(c.subject.rules(), c.rules...) {
				used[target.name] = append(used[target.name], r.key)
			}
		}
	}
	for _, target := range targets() {
		if !strings.HasPrefix(target.name, "hw.") {
			continue
		}
		s := byName[target.name]
		if s == nil {
			t.Errorf("the conventions have no %s", target.name)
			continue
		}
		delete(byName, target.name)
		if target.unit != s.Unit() || target.kind != kindOf(s) {
			t.Errorf("%s is a %s of %q, the conventions say %s of %q", target.name, target.kind, target.unit, kindOf(s), s.Unit())
		}
		if newest := strings.Join(names.metrics[target.name], " "); newest != target.kind.String()+" "+target.unit {
			t.Errorf("%s is a %s of %q, 1.44.0 says %q", target.name, target.kind, target.unit, newest)
		}
		allowed := keysOfStandard(s)
		for _, key := range append(used[target.name], target.facts...) {
			if key != "" && !strings.HasPrefix(string(key), "dra.") && !slices.Contains(allowed, key) {
				t.Errorf("the conventions give %s no %s, but %v", target.name, key, allowed)
			}
		}
	}
	for name := range byName {
		t.Errorf("%s is not exported", name)
	}
}

// Other names and values that the conventions have.
func TestValuesAreTheStandards(t *testing.T) {
	values := map[string]string{
		"gpu": string(hwconv.TypeGpu), "network": string(hwconv.TypeNetwork),
		"ok": string(hwconv.StateOk), "degraded": string(hwconv.StateDegraded), "failed": string(hwconv.StateFailed),
		generalTask: string(hwconv.GpuTaskGeneral), "encoder": string(hwconv.GpuTaskEncoder), "decoder": string(hwconv.GpuTaskDecoder),
		"receive": string(hwconv.NetworkIODirectionReceive), "transmit": string(hwconv.NetworkIODirectionTransmit),
		string(k8sNamespaceName): string(semconv.K8SNamespaceNameKey), string(k8sPodName): string(semconv.K8SPodNameKey),
		string(errorType): string(semconv.ErrorTypeKey),
	}
	for ours, theirs := range values {
		if ours != theirs {
			t.Errorf("%q is %q by the conventions", ours, theirs)
		}
	}
	if got := sourceType("nvml"); got != "gpu" {
		t.Errorf("NVIDIA's devices are %q", got)
	}
	for i, state := range []string{"ok", "degraded", "failed"} {
		if status := targets()[0]; status.name != "hw.status" || status.families[i].rules[1].constant != state {
			t.Errorf("state %d of hw.status is not %s", i, state)
		}
	}
}

package decode

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// fill sets every string field of an object to the path of the field,
// {spec.containers.env.value}. Opaque parameters and the like become JSON with
// one such member.
func fill(value reflect.Value, path string) {
	switch value.Interface().(type) {
	case metav1.Time, metav1.MicroTime, resource.Quantity, metav1.TypeMeta:
		return
	case runtime.RawExtension:
		value.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"secret":"{` + path + `}","uuid":"{` + path + `.uuid}"}`)}))
		return
	}
	switch value.Kind() {
	case reflect.String:
		value.SetString("{" + path + "}")
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		fill(value.Elem(), path)
	case reflect.Slice:
		value.Set(reflect.MakeSlice(value.Type(), 1, 1))
		fill(value.Index(0), path)
	case reflect.Map:
		key, one := reflect.New(value.Type().Key()).Elem(), reflect.New(value.Type().Elem()).Elem()
		fill(key, path+":key")
		fill(one, path)
		value.Set(reflect.MakeMap(value.Type()))
		value.SetMapIndex(key, one)
	case reflect.Struct:
		for i := range value.NumField() {
			fillField(value.Type().Field(i), value.Field(i), path)
		}
	default: // numbers and the like hold no text
	}
}

func fillField(field reflect.StructField, value reflect.Value, path string) {
	if !field.IsExported() {
		return
	}
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	if name != "" {
		name = strings.TrimPrefix(path+"."+name, ".")
	} else {
		name = path
	}
	if depth := strings.Count(name, "."); depth < 12 {
		fill(value, name)
	}
}

// filled returns an object with a string in every field.
func filled[T any]() *T {
	object := new(T)
	fill(reflect.ValueOf(object).Elem(), "")
	return object
}

// fieldsIn lists the fields whose strings the kept value contains.
func fieldsIn(t *testing.T, kept any) []string {
	t.Helper()
	found := map[string]bool{}
	for _, match := range regexp.MustCompile(`\{[a-zA-Z.:]+\}`).FindAllString(allText(reflect.ValueOf(kept)), -1) {
		found[strings.Trim(match, "{}")] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// allText returns all text within a value, including unexported fields.
func allText(value reflect.Value) string {
	var text strings.Builder
	switch value.Kind() {
	case reflect.String:
		text.WriteString(value.String() + "\n")
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			text.WriteString(allText(value.Elem()))
		}
	case reflect.Slice:
		if value.Type().Elem().Kind() == reflect.Uint8 {
			text.Write(value.Bytes())
			break
		}
		for i := range value.Len() {
			text.WriteString(allText(value.Index(i)))
		}
	case reflect.Map:
		for _, key := range value.MapKeys() {
			text.WriteString(allText(key) + allText(value.MapIndex(key)))
		}
	case reflect.Struct:
		for i := range value.NumField() {
			text.WriteString(allText(value.Field(i)))
		}
	default: // numbers and the like hold no text
	}
	return text.String()
}

// mayBeSecret reports whether a field may contain secrets, or is not needed.
func mayBeSecret(field string) bool {
	return regexp.MustCompile(`(?i)\.env|annotations|args|command|image|volume|config|opaque|parameters|\.data|secret|message|managedFields|labels|probe|lifecycle|securityContext|host`).MatchString(field)
}

// The API server sends whole pods. The kept part has no environment, command,
// volume, image, message or annotation, and only the selected labels. The same
// applies to opaque parameters and annotations of claims.
func TestKeptFields(t *testing.T) {
	pod, claim := filled[corev1.Pod](), filled[resourcev1.ResourceClaim]()
	reads := PodFields{Labels: []string{"wanted"}, Workloads: DefaultWorkloads()}
	// Besides those of workloads, the annotation of mirror pods is the only one that is read.
	pod.Annotations[corev1.MirrorPodAnnotationKey] = "{mirror}"
	record, uses := NewPodRecord(pod, reads)
	if !uses {
		t.Fatal("the pod is not kept at all")
	}
	// Node selectors select by labels of nodes; drivers identify hardware in the
	// status of devices; the kubelet reports the health of a device in a message.
	meant := []string{"metadata.labels", "metadata.labels:key", "status.devices.data.uuid"}
	for _, of := range []string{"initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"} {
		meant = append(meant, "status."+of+".allocatedResourcesStatus.resources.message")
	}
	if fields := fieldsIn(t, StripPod(pod, reads)); slices.ContainsFunc(meant[:2], func(f string) bool { return slices.Contains(fields, f) }) {
		t.Errorf("labels that are not wanted are kept: %v", fields)
	}
	for name, kept := range map[string]any{
		"of a pod, while it is listed":        StripPod(pod, reads),
		"of a pod by the node role":           record,
		"of a pod by the cluster role":        PodLifecycle(pod, DefaultWorkloads()),
		"of a claim by the node role":         Claim(claim),
		"of a claim by the cluster role":      ClaimLifecycle(claim),
		"of a claim for the inventory":        StripClaim(claim),
		"of a template for the inventory":     StripTemplate(filled[resourcev1.ResourceClaimTemplate]()),
		"of a class for the inventory":        StripClass(filled[resourcev1.DeviceClass]()),
		"of a node for the inventory":         StripNode(filled[corev1.Node]()),
		"of a slice for the inventory":        StripSlice(filled[resourcev1.ResourceSlice]()),
		"of a slice, while slices are listed": StripNodeSlice(filled[resourcev1.ResourceSlice]()),
		"of a taint rule for the inventory":   StripRule(filled[resourcev1.DeviceTaintRule]()),
	} {
		fields := fieldsIn(t, kept)
		if len(fields) < 2 {
			t.Errorf("%s nothing is kept: the test checks nothing", name)
		}
		for _, field := range fields {
			if mayBeSecret(field) && !slices.Contains(meant, field) {
				t.Errorf("%s, %s is kept", name, field)
			}
		}
		t.Logf("%s: %s", name, strings.Join(fields, " "))
	}
	for _, field := range []string{"spec.containers.env.value", "spec.containers.command", "metadata.annotations", "status.message"} {
		if !slices.Contains(fieldsIn(t, pod), field) {
			t.Errorf("the pod has no %s: the test checks nothing", field)
		}
	}
	pod.Labels["wanted"] = "{wanted}"
	if record, _ := NewPodRecord(pod, reads); !strings.Contains(allText(reflect.ValueOf(record)), "{wanted}") {
		t.Error("a label that is wanted is not kept")
	}
}

func TestStrippedObjects(t *testing.T) {
	reads := PodFields{Labels: []string{"app", "missing"}, Workloads: DefaultWorkloads()}
	for _, name := range snapshots() {
		captured := readSnapshot(t, name)
		for i := range captured.pods {
			whole, keptWhole := NewPodRecord(&captured.pods[i], reads)
			light, keptLight := NewPodRecord(StripPod(&captured.pods[i], reads), reads)
			if keptWhole != keptLight || !reflect.DeepEqual(whole, light) {
				t.Errorf("%s: pod %s\n whole %+v\n light %+v", name, captured.pods[i].Name, whole, light)
			}
		}
		for i := range captured.slices {
			whole, light := NewSliceRecord(&captured.slices[i]), NewSliceRecord(StripNodeSlice(&captured.slices[i]))
			if !reflect.DeepEqual(whole, light) {
				t.Errorf("%s: slice %s\n whole %+v\n light %+v", name, captured.slices[i].Name, whole, light)
			}
		}
	}
}

// Of a rule's status, the eviction is kept if it is about the present
// specification.
func TestStripRuleKeepsEviction(t *testing.T) {
	condition := func(kind string, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "PodsPendingEviction", Message: "1 pod", ObservedGeneration: generation}
	}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		kept       bool
	}{
		"no condition":      {nil, false},
		"another condition": {[]metav1.Condition{condition("Other", 3)}, false},
		"the eviction":      {[]metav1.Condition{condition("Other", 3), condition("EvictionInProgress", 3)}, true},
		"an older one":      {[]metav1.Condition{condition("EvictionInProgress", 2)}, false},
	} {
		rule := &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "drain", Generation: 3}}
		rule.Status.Conditions = test.conditions
		converted, ok := TaintRule(rule)
		if !ok {
			t.Fatal("the rule cannot be converted")
		}
		kept := StripRule(converted).Status.Conditions
		if (len(kept) == 1) != test.kept || (test.kept && (kept[0].Type != "EvictionInProgress" || kept[0].Message != "1 pod")) {
			t.Errorf("%s: kept %+v", name, kept)
		}
	}
}

// What claims take of a node is kept by resource.
func TestAllocatableOfPod(t *testing.T) {
	quantity := func(text string) *resource.Quantity { return new(resource.MustParse(text)) }
	pod := &corev1.Pod{Status: corev1.PodStatus{NodeAllocatableResourceClaimStatuses: []corev1.NodeAllocatableResourceClaimStatus{{
		ResourceClaimName: "c", Containers: []string{"main"},
		Mapping:  []corev1.NodeAllocatableMappedResources{{Name: "memory", Quantity: quantity("8Gi")}, {Name: "cpu", Quantity: quantity("4")}, {Name: "bare"}},
		Overhead: []corev1.NodeAllocatableOverheadResources{{Name: "memory", PerPod: quantity("1Mi")}, {Name: "disk", PerContainer: quantity("2Mi")}},
	}, {ResourceClaimName: "d"}}}}
	want := []dra.ClaimAllocatable{{Claim: "c", Resources: []dra.AllocatableAmount{
		{Resource: "bare"}, {Resource: "cpu", Devices: "4"}, {Resource: "disk", PerContainer: "2Mi"}, {Resource: "memory", Devices: "8Gi", PerPod: "1Mi"},
	}}, {Claim: "d"}}
	if got := PodLifecycle(pod, DefaultWorkloads()).Allocatable; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The scheduler's message about a group is kept while the group has not been
// scheduled.
func TestUnschedulableGroup(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]string{metav1.ConditionFalse: "0/3 nodes are available", metav1.ConditionTrue: "", metav1.ConditionUnknown: ""} {
		group := &schedulingv1alpha3.PodGroup{}
		group.Status.Conditions = []metav1.Condition{{Type: "DisruptionTarget", Status: metav1.ConditionFalse, Message: "no"},
			{Type: "PodGroupInitiallyScheduled", Status: status, Reason: "Unschedulable", Message: "0/3 nodes are available"}}
		converted, ok := PodGroup(group)
		if !ok {
			t.Fatal("the group cannot be converted")
		}
		if got := Group(converted).Unschedulable; got != want {
			t.Errorf("%s: %q", status, got)
		}
	}
}

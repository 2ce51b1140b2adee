package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// startBehindProxy runs a ClusterWatch over a proxy that answers some paths itself.
func startBehindProxy(t *testing.T, answers map[string]http.HandlerFunc) *clusterTest {
	t.Helper()
	f := startClusterTest(t, nil)
	f.stop()
	f.state = make(map[string]string)
	target, err := url.Parse(f.server.Config().Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	transport := &http.Transport{}
	proxy.Transport = transport
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answer, own := answers[r.URL.Path]; own {
			answer(w, r)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { front.Close(); transport.CloseIdleConnections() })
	f.start(&rest.Config{Host: front.URL}, "")
	t.Cleanup(f.stop) // before the front
	return f
}

// streaming serves a collection of JSON objects as lists and streamed lists,
// and more events of the watch when they are sent.
func streaming(version, listKind string, more <-chan any, objects ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		out := json.NewEncoder(w)
		kind := strings.TrimSuffix(listKind, "List")
		if r.URL.Query().Get("watch") == "" {
			_ = out.Encode(map[string]any{"apiVersion": version, "kind": listKind, "metadata": map[string]any{"resourceVersion": "7"}, "items": objects})
			return
		}
		send := func(kind string, object any) {
			_ = out.Encode(map[string]any{"type": kind, "object": object})
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Query().Get("sendInitialEvents") == "true" {
			for _, object := range objects {
				send("ADDED", object)
			}
			send("BOOKMARK", map[string]any{"apiVersion": version, "kind": kind, "metadata": map[string]any{
				"resourceVersion": "7", "annotations": map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}})
		}
		for {
			select {
			case object := <-more:
				send("MODIFIED", object)
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestReadsTaintRulesInAnyVersion(t *testing.T) {
	driver, pool, device := "gpu.example.com", "node-a", "gpu-3"
	added := metav1.Now().Rfc3339Copy()
	beta := &resourcev1beta2.DeviceTaintRule{}
	beta.APIVersion, beta.Kind = "resource.k8s.io/v1beta2", "DeviceTaintRule"
	beta.Name, beta.ResourceVersion = "rule", "5"
	beta.Spec.DeviceSelector = &resourcev1beta2.DeviceTaintSelector{Driver: &driver, Pool: &pool, Device: &device}
	beta.Spec.Taint = resourcev1beta2.DeviceTaint{Key: "k", Value: "v", Effect: "NoExecute", TimeAdded: &added}
	alpha := &resourcev1alpha3.DeviceTaintRule{ObjectMeta: beta.ObjectMeta}
	alpha.APIVersion, alpha.Kind = "resource.k8s.io/v1alpha3", "DeviceTaintRule"
	alpha.Spec.DeviceSelector = &resourcev1alpha3.DeviceTaintSelector{Driver: &driver, Pool: &pool, Device: &device}
	alpha.Spec.Taint = resourcev1alpha3.DeviceTaint{Key: "k", Value: "v", Effect: "NoExecute", TimeAdded: &added}
	wider := alpha.DeepCopy()
	wider.Name = "by-class"
	wider.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:deviceSelector":{"f:deviceClassName":{}}}}`)}}

	var want resourcev1.DeviceTaintRuleSpec
	want.DeviceSelector = &resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &pool, Device: &device}
	want.Taint = resourcev1.DeviceTaint{Key: "k", Value: "v", Effect: "NoExecute", TimeAdded: &added}
	for version, objects := range map[string][]any{"v1beta2": {beta}, "v1alpha3": {alpha, wider}} {
		t.Run(version, func(t *testing.T) {
			more := make(chan any)
			f := startBehindProxy(t, map[string]http.HandlerFunc{
				"/apis/resource.k8s.io/v1/devicetaintrules":              http.NotFound,
				"/apis/resource.k8s.io/v1beta2/devicetaintrules":         http.NotFound,
				"/apis/resource.k8s.io/" + version + "/devicetaintrules": streaming("resource.k8s.io/"+version, "DeviceTaintRuleList", more, objects...),
			})
			f.until("the rule is known", func() bool { return strings.Contains(f.keeper.content(), "rule rule") && f.cluster.Settled() })
			got, ok := f.keeper.get("rule rule").(*resourcev1.DeviceTaintRule)
			if !ok || !equality.Semantic.DeepEqual(got.Spec, want) {
				t.Errorf("got %+v", got)
			}
			if status, found := f.status("devicetaintrules"); !found || !status.Up || status.Errors != 0 {
				t.Errorf("the source is %+v", status)
			}
			later := objects[0].(interface{ DeepCopyObject() runtime.Object }).DeepCopyObject()
			later.(metav1.Object).SetName("later")
			more <- later
			f.until("a change is known", func() bool { return f.keeper.get("rule later") != nil })
			if f.keeper.get("rule by-class") != nil {
				t.Error("a rule that selects by class seems to taint all devices")
			}
		})
	}
}

func TestOptionalCollections(t *testing.T) {
	f := startBehindProxy(t, map[string]http.HandlerFunc{
		"/apis/resource.k8s.io/v1/devicetaintrules":       http.NotFound,
		"/apis/resource.k8s.io/v1beta2/devicetaintrules":  http.NotFound,
		"/apis/resource.k8s.io/v1alpha3/devicetaintrules": http.NotFound,
	})
	f.untilSynced()
	for _, name := range []string{"devicetaintrules", "podgroups", "podgroups.scheduling.volcano.sh", "podgroups.scheduling.run.ai", "workloads", "computedomains"} {
		if status, found := f.status(name); found {
			t.Errorf("there is a source %+v", status)
		}
	}
	if f.logged("level=") != 0 {
		t.Errorf("logged %s", f.log.String())
	}
}

func TestReadsGroupsInAnyVersion(t *testing.T) {
	template, name := "t", "group-gpu-x7k2p"
	beta := &schedulingv1beta1.PodGroup{}
	beta.APIVersion, beta.Kind = "scheduling.k8s.io/v1beta1", "PodGroup"
	beta.Namespace, beta.Name, beta.UID, beta.ResourceVersion = "lab", "group", "group-1", "5"
	beta.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	beta.Status.ResourceClaimStatuses = []schedulingv1beta1.PodGroupResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
	alpha := &schedulingv1alpha3.PodGroup{ObjectMeta: beta.ObjectMeta}
	alpha.APIVersion, alpha.Kind = "scheduling.k8s.io/v1alpha3", "PodGroup"
	alpha.Spec.ResourceClaims = []schedulingv1alpha3.PodGroupResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	alpha.Status.ResourceClaimStatuses = []schedulingv1alpha3.PodGroupResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
	alpha.Spec.SchedulingPolicy.Gang = &schedulingv1alpha3.GangSchedulingPolicy{MinCount: 4}
	beta.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 4}
	// As Kubernetes 1.36 writes it.
	older := json.RawMessage(`{"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"namespace": "lab", "name": "group", "uid": "group-1", "resourceVersion": "5"},
"spec": {"podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}, "schedulingPolicy": {"gang": {"minCount": 4}}, "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
"status": {"conditions": [{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "message": "too few devices"}], "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "group-gpu-x7k2p"}]}}`)
	unscheduled := []metav1.Condition{{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Message: "too few devices"}}
	alpha.Status.Conditions, beta.Status.Conditions = unscheduled, unscheduled
	for version, object := range map[string]any{"v1beta1": beta, "v1alpha3": alpha, "v1alpha2": older} {
		t.Run(version, func(t *testing.T) {
			f := startBehindProxy(t, map[string]http.HandlerFunc{
				"/apis/scheduling.k8s.io/" + version + "/podgroups": streaming("scheduling.k8s.io/"+version, "PodGroupList", nil, object),
			})
			f.until("the group is known", func() bool { return f.state["group lab/group"] == "group-1" })
			want := []dra.PodClaim{{Name: "gpu", Template: "t", Claim: name}}
			for _, change := range f.changes {
				if g := change.Group; g != nil && (!slices.Equal(g.Claims, want) || g.MinPods != 4 || g.Unschedulable != "too few devices") {
					t.Errorf("the group is %+v", g)
				}
			}
		})
	}
}

// API servers send custom resources as JSON, whatever else is accepted.
func TestReadsCustomResources(t *testing.T) {
	made := 4
	object := func(version, kind, name, rest string) any {
		made++
		return json.RawMessage(fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"lab","name":%q,"uid":"uid-%s","resourceVersion":"%d"},%s}`, version, kind, name, name, made, rest))
	}
	const kueue, nvidia = "kueue.x-k8s.io/", "resource.nvidia.com/v1beta1"
	for _, version := range []string{"v1beta2", "v1beta1"} {
		t.Run(version, func(t *testing.T) {
			more := make(chan any)
			f := startBehindProxy(t, map[string]http.HandlerFunc{
				"/apis/" + kueue + version + "/workloads": streaming(kueue+version, "WorkloadList", more, object(kueue+version, "Workload", "queued", `"spec":{"queueName":"gpus","podSets":[{"count":3,"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":1}}}]}}}]}`)),
				"/apis/" + nvidia + "/computedomains":     streaming(nvidia, "ComputeDomainList", nil, object(nvidia, "ComputeDomain", "nvl", `"spec":{"numNodes":2,"channel":{"resourceClaimTemplate":{"name":"channel"}}},"status":{"status":"Ready"}`)),
			})
			f.until("both are known", func() bool {
				return f.state["workload lab/queued"] == "uid-queued" && f.state["domain lab/nvl"] == "uid-nvl"
			})
			for _, name := range []string{"workloads", "computedomains"} {
				f.until(name+" is up", func() bool { status, found := f.status(name); return found && status.Up && status.Errors == 0 })
			}
			pods := func() int32 {
				last := int32(0)
				for _, change := range f.changes {
					if change.KueueWorkload != nil {
						last = change.KueueWorkload.Pods
					}
				}
				return last
			}
			more <- object(kueue+version, "Workload", "queued", `"spec":{"podSets":[{"count":4}]}`)
			f.until("a change is known", func() bool { return pods() == 4 })
			more <- object(kueue+version, "Workload", "queued", `"status":{"conditions":[{"type":"Finished","status":"True"}]}`)
			f.until("its end is known", func() bool { return f.state["workload lab/queued"] == "" })
		})
	}
}

// Volcano's PodGroups and KAI's are gangs beside those of Kubernetes, and may be called
// the same.
func TestReadsGroupsOfSchedulers(t *testing.T) {
	answers, want := map[string]http.HandlerFunc{}, map[string]string{}
	for api, version := range map[string]string{"scheduling.volcano.sh": "v1beta1", "scheduling.run.ai": "v2alpha2"} {
		group := func(name string, rest string) any {
			return json.RawMessage(fmt.Sprintf(`{"apiVersion":"%s/%s","kind":"PodGroup","metadata":{"namespace":"lab","name":%q,"uid":"uid-%s-%s","resourceVersion":"7"},%s}`, api, version, name, api, name, rest))
		}
		answers["/apis/"+api+"/"+version+"/podgroups"] = streaming(api+"/"+version, "PodGroupList", nil,
			group("train", `"spec":{"minMember":4,"queue":"gpus"}`), group("single", `"spec":{"minMember":1}`))
		want["group lab/podgroup."+api+"/train"] = "uid-" + api + "-train"
	}
	f := startBehindProxy(t, answers)
	f.until("both gangs are known", func() bool {
		for name, uid := range want {
			if f.state[name] != uid {
				return false
			}
		}
		return true
	})
	for _, change := range f.changes {
		if change.Group != nil && change.Group.MinPods != 4 {
			t.Errorf("a gang is %+v", change.Group)
		}
	}
	for _, name := range []string{"podgroups.scheduling.volcano.sh", "podgroups.scheduling.run.ai"} {
		f.until(name+" is up", func() bool { status, found := f.status(name); return found && status.Up && status.Errors == 0 })
	}
}

func TestInvalidAnswersAffectOneCollection(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no protobuf": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
			_, _ = w.Write([]byte("k8s\x00\xff\xff\xff\xff\x0f garbage"))
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = w.Write([]byte(`{"kind": "DeviceClassList", "items": [{"metadata": 7}`))
		},
		"another kind": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "x"}}]}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := startBehindProxy(t, map[string]http.HandlerFunc{"/apis/resource.k8s.io/v1/deviceclasses": answer})
			f.put(claim("gpu", "claim-1", "", ""))
			want := all()
			want.Classes = false
			f.until("all others are known", func() bool { return f.cluster.Settled() && f.cluster.Synced() == want })
			if status, _ := f.status("deviceclasses"); status.Up || status.Errors == 0 || status.Reason == source.ReasonNone {
				t.Errorf("the source is %+v", status)
			}
			f.until("the claim is known", func() bool { return f.state["claim lab/gpu"] != "" })
		})
	}
}

// inPages serves claims without streaming lists. It records the requests for
// pages; forgets is how often a continue token has expired.
func inPages(count, forgets int) (answer http.HandlerFunc, asked func() []string) {
	var mu sync.Mutex
	var pages []string
	answer = func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("sendInitialEvents") != "" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		if query.Get("watch") != "" {
			streaming("resource.k8s.io/v1", "ResourceClaimList", nil)(w, r)
			return
		}
		mu.Lock()
		pages = append(pages, query.Get("limit")+"/"+query.Get("continue")+"/"+query.Get("resourceVersion"))
		forgotten := query.Get("continue") != "" && forgets > 0
		if forgotten {
			forgets--
		}
		mu.Unlock()
		if forgotten {
			status := apierrors.NewResourceExpired("the provided continue parameter is too old").Status()
			status.APIVersion, status.Kind = "v1", "Status"
			w.Header().Set("Content-Type", runtime.ContentTypeJSON)
			w.WriteHeader(http.StatusGone)
			_ = json.NewEncoder(w).Encode(status)
			return
		}
		limit, _ := strconv.Atoi(query.Get("limit"))
		begin, _ := strconv.Atoi(query.Get("continue"))
		list := resourcev1.ResourceClaimList{TypeMeta: metav1.TypeMeta{APIVersion: "resource.k8s.io/v1", Kind: "ResourceClaimList"}}
		list.ResourceVersion = "7"
		for i := begin; i < min(begin+limit, count); i++ {
			list.Items = append(list.Items, *claim(fmt.Sprint("claim-", i), fmt.Sprint("uid-", i), "", ""))
		}
		if begin+limit < count {
			list.Continue = strconv.Itoa(begin + limit)
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_ = json.NewEncoder(w).Encode(list)
	}
	return answer, func() []string { mu.Lock(); defer mu.Unlock(); return slices.Clone(pages) }
}

func TestReadsListsInPages(t *testing.T) {
	answer, asked := inPages(1200, 0)
	f := startBehindProxy(t, map[string]http.HandlerFunc{"/apis/resource.k8s.io/v1/resourceclaims": answer})
	f.untilSynced()
	if len(f.state) != 1200 {
		t.Errorf("reported %d claims", len(f.state))
	}
	if want := []string{"1//", "500//", "500/500/", "500/1000/"}; !slices.Equal(asked(), want) {
		t.Errorf("asked for %q", asked())
	}
}

// A list whose remaining pages cannot be read is discarded.
func TestIncompletePagedListIsReadAgain(t *testing.T) {
	answer, asked := inPages(1200, 1)
	f := startBehindProxy(t, map[string]http.HandlerFunc{"/apis/resource.k8s.io/v1/resourceclaims": answer})
	f.untilSynced()
	if len(f.state) != 1200 {
		t.Errorf("reported %d claims, asked for %q", len(f.state), asked())
	}
	if status, _ := f.status("resourceclaims"); status.Errors != 1 {
		t.Errorf("the source is %+v", status)
	}
}

package hostile

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

const (
	tenantsHostile = "hostile"
	tenantsVictim  = "victim"
	tenantsClass   = "gpu"
)

// tenants are the claims of a cluster in which several teams share devices.
type tenants struct {
	inventory *inventory.Inventory
	questions []dra.Question
}

// newTenants publishes devices, each with a UUID, on some nodes.
func newTenants(nodes, devices int) *tenants {
	inv := inventory.New()
	inv.ApplyClass(tenantsClass, &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: tenantsClass},
		Spec:       resourcev1.DeviceClassSpec{Selectors: tenantsSelectors(`device.driver == "gpu.example.com"`)},
	})
	for n := range nodes {
		node := fmt.Sprintf("node-%d", n)
		inv.ApplyNode(node, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-of-" + node}}
		slice.Spec.Driver, slice.Spec.NodeName = "gpu.example.com", &node
		slice.Spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
		for i := range devices {
			uuid, group := fmt.Sprintf("GPU-%s-%d", node, i), int64(i%10)
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprintf("gpu-%d", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"uuid": {StringValue: &uuid}, "group": {IntValue: &group},
				},
			})
		}
		inv.ApplySlice(slice.Name, slice)
	}
	return &tenants{inventory: inv}
}

func tenantsSelectors(expressions ...string) []resourcev1.DeviceSelector {
	var selectors []resourcev1.DeviceSelector
	for _, expression := range expressions {
		selectors = append(selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	return selectors
}

func tenantsRequest(name string, count int64, expressions ...string) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: tenantsClass, Selectors: tenantsSelectors(expressions...),
		AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
	}}
}

// claim adds a claim, and a pod of the same name that is pending for it.
func (c *tenants) claim(namespace, name string, constraints []resourcev1.DeviceConstraint, requests ...resourcev1.DeviceRequest) {
	c.inventory.ApplyClaim(namespace, name, &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests, Constraints: constraints}},
	})
	c.questions = append(c.questions, dra.Question{
		Pod: dra.PodRef{Namespace: namespace, Name: name}, PodUID: namespace + "/" + name,
		Refs: []dra.PendingRef{{PodClaim: "gpu", Claim: name}},
	})
}

// costly returns a selector of which one evaluation takes about 20 ms, an
// eighth of the API server's limit, and whose result differs between devices.
func costly(variant int) string {
	ten := `[0,1,2,3,4,5,6,7,8,9]`
	return strings.Repeat(ten+`.all(x, `, 4) + fmt.Sprintf(`device.attributes["gpu.example.com"].uuid != "v%d"`, variant) + strings.Repeat(`)`, 4)
}

// wide adds a claim with this many requests, and selectors in each. All
// selectors are different.
func (c *tenants) wide(index, requests, selectors int, expression func(int) string) {
	var all []resourcev1.DeviceRequest
	for r := range requests {
		var expressions []string
		for s := range selectors {
			expressions = append(expressions, expression((index*requests+r)*selectors+s))
		}
		all = append(all, tenantsRequest(fmt.Sprintf("r%d", r), 1, expressions...))
	}
	c.claim(tenantsHostile, fmt.Sprintf("wide-%d", index), nil, all...)
}

// search adds a claim for which the allocator has to search exhaustively: it
// requests eleven devices of ten groups, no two of one group.
func (c *tenants) search(index int) {
	group := resourcev1.FullyQualifiedName("gpu.example.com/group")
	c.claim(tenantsHostile, fmt.Sprintf("search-%d", index), []resourcev1.DeviceConstraint{{DistinctAttribute: &group}},
		tenantsRequest("r", 11, fmt.Sprintf(`device.attributes["gpu.example.com"].uuid != "v%d"`, index)))
}

// addNormalClaim adds the simple claim of another team, for more devices than
// a node has.
func (c *tenants) addNormalClaim() {
	c.claim(tenantsVictim, "simple", nil, tenantsRequest("gpus", 30))
}

func (c *tenants) newDiagnoser(clk clock.Clock, budget float64) *diagnosis.Diagnoser {
	return diagnosis.New(diagnosis.Options{Inventory: c.inventory, Clock: clk, Log: slog.New(slog.DiscardHandler), Budget: budget})
}

// tenantsRunning runs the Diagnoser until the test ends.
func tenantsRunning(t *testing.T, j *diagnosis.Diagnoser) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = j.Run(ctx) // it ends with the context
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func tenantsDiagnosis(j *diagnosis.Diagnoser, namespace string) (dra.Diagnosis, bool) {
	for _, v := range j.Diagnoses() {
		if v.Pod.Namespace == namespace {
			return v, true
		}
	}
	return dra.Diagnosis{}, false
}

func tenantsCost(j *diagnosis.Diagnoser, namespace string) time.Duration {
	for _, cost := range j.Work().Costs {
		if cost.Namespace == namespace {
			return cost.Took
		}
	}
	return 0
}

// TestTenantsDoNotDelayDiagnosesOfOthers: claims of one namespace with costly
// selectors, and claims with an exhaustive search, delay the diagnosis of
// another namespace by at most one turn. The test measures the work for the
// hostile namespace, not the time: without turns it would be minutes.
func TestTenantsDoNotDelayDiagnosesOfOthers(t *testing.T) {
	for name, attack := range map[string]func(*tenants){
		"one selector":        func(c *tenants) { c.wide(0, 1, 1, costly) },
		"32 x 32 selectors":   func(c *tenants) { c.wide(0, 32, 32, costly) },
		"exhaustive searches": func(c *tenants) { manyTimes(20, c.search) },
		"all of it": func(c *tenants) {
			manyTimes(20, func(i int) { c.wide(i, 1, 1, costly) })
			manyTimes(10, func(i int) { c.wide(100+i, 32, 32, costly) })
			manyTimes(20, c.search)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newTenants(20, 20)
			attack(c)
			j := c.newDiagnoser(clock.System(), 1)
			tenantsRunning(t, j)
			j.SetQuestions(c.questions)
			time.Sleep(300 * time.Millisecond) // the hostile claims are being diagnosed
			before := tenantsCost(j, tenantsHostile)
			c.addNormalClaim()
			j.SetQuestions(append([]dra.Question(nil), c.questions...))
			v := waitDiagnosis(t, j)
			if v.Reason != dra.ReasonFragmented {
				t.Errorf("%s: %s", v.Reason, v.Message)
			}
			// A turn is 100 ms. New claims are read every 250 ms. One step
			// takes up to 250 ms, and several times that under the race
			// detector.
			if cost := tenantsCost(j, tenantsHostile) - before; cost > 5*time.Second {
				t.Errorf("the hostile namespace was given %v of work before the other had its diagnosis", cost)
			}
			if early, found := tenantsDiagnosis(j, tenantsHostile); found && early.Reason != dra.ReasonUndetermined {
				t.Errorf("the attack is diagnosed as %s: %s: the test shows nothing", early.Reason, early.Message)
			}
		})
	}
}

func manyTimes(n int, do func(int)) {
	for i := range n {
		do(i)
	}
}

func waitDiagnosis(t *testing.T, j *diagnosis.Diagnoser) dra.Diagnosis {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		if v, found := tenantsDiagnosis(j, tenantsVictim); found {
			return v
		}
		select {
		case <-j.Changed():
		case <-limit:
			t.Fatalf("no diagnosis; costs are %v", j.Work().Costs)
		}
	}
}

// TestTenantsStayWithinTheBudget: however many claims a namespace has, and
// however many evaluations they need, the work stays within its share of a
// core, another namespace has its diagnosis within ten seconds, and each
// hostile claim ends as undetermined. The clock is simulated: each call, of
// which there is one for each evaluation, advances it by 20 ms.
func TestTenantsStayWithinTheBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const budget, look = 0.25, 20 * time.Millisecond
		c := newTenants(4, 16)
		manyTimes(12, func(i int) {
			c.wide(i, 4, 8, func(variant int) string {
				return fmt.Sprintf(`device.attributes["gpu.example.com"].uuid != "v%d"`, variant)
			})
		})
		looks, system := 0, clock.System()
		j := c.newDiagnoser(func() clock.Instant {
			looks++
			time.Sleep(look)
			return system()
		}, budget)
		tenantsRunning(t, j)
		j.SetQuestions(c.questions)
		began := time.Now()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		c.addNormalClaim()
		j.SetQuestions(append([]dra.Question(nil), c.questions...))
		submitted := time.Now()
		v := waitDiagnosis(t, j)
		if took := time.Since(submitted); took > 10*time.Second || v.Reason != dra.ReasonFragmented {
			t.Errorf("after %v: %s: %s", took, v.Reason, v.Message)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if share := float64(looks) * float64(look) / float64(time.Since(began)); share > 1.1*budget {
			t.Errorf("works %.3f of the time, may %v", share, budget)
		}
		undetermined := 0
		for _, v := range j.Diagnoses() {
			if v.Pod.Namespace == tenantsHostile && v.Reason == dra.ReasonUndetermined && strings.HasPrefix(v.Message, "the diagnosis needs more than 4s: ") {
				undetermined++
			}
		}
		if undetermined != 12 {
			t.Errorf("%d of 12 hostile claims are undetermined: %+v", undetermined, j.Diagnoses())
		}
	})
}

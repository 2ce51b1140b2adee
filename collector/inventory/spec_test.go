package inventory

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// claimWith is a claim with selectors of these lengths.
func claimWith(selectors ...int) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{}
	request := &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu", Count: 1}
	for i, length := range selectors {
		expression := fmt.Sprintf("%d%s", i, strings.Repeat("x", max(length-1, 0)))
		request.Selectors = append(request.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}})
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "main", Exactly: request}}
	return claim
}

func times(length, count int) []int {
	all := make([]int, count)
	for i := range all {
		all[i] = length
	}
	return all
}

// claimWithSelector is a claim with one selector.
func claimWithSelector(expression string) *resourcev1.ResourceClaim {
	claim := claimWith(1)
	claim.Spec.Devices.Requests[0].Exactly.Selectors[0].CEL.Expression = expression
	return claim
}

// TestLargeSpecifications: what is larger than the limits is not kept, but
// counted and explained, and displaces nothing.
func TestLargeSpecifications(t *testing.T) {
	for name, c := range map[string]struct {
		claim   *resourcev1.ResourceClaim
		refused dra.SpecLimit
		refusal string
	}{
		"no selector":                {claimWith(), "", ""},
		"one selector":               {claimWith(200), "", ""},
		"as long as it may be":       {claimWith(expressionLimit), "", ""},
		"longer":                     {claimWith(10, expressionLimit+1), dra.SpecLimitSelector, "one of its selectors has 4097 bytes, more than the limit of 4096 bytes"},
		"as many as the API permits": {claimWith(times(10<<10, 32)...), dra.SpecLimitSelector, "one of its selectors has 1024"},
		"one that does not end":      {claimWithSelector(`quantity("1e-999999999").sign() == 1`), dra.SpecLimitSelector, "one of its selectors computes a quantity that may take too long"},
		"many short ones":            {claimWith(times(2000, 32)...), dra.SpecLimitObject, "its requests take "},
	} {
		t.Run(name, func(t *testing.T) {
			inv := New()
			inv.ApplyClaim("a", "one", c.claim)
			inv.ApplyTemplate("a", "one", &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: c.claim.Spec}})
			spec, claimSays := inv.Spec("a", "one", "")
			ofTemplate, templateSays := inv.Spec("a", "", "one")
			kept := spec != nil
			if kept != (c.refused == "") || (ofTemplate != nil) != kept {
				t.Errorf("kept %t and %t", kept, ofTemplate != nil)
			}
			for _, refusal := range []string{claimSays, templateSays} {
				if !strings.HasPrefix(refusal, c.refusal) || (refusal == "") != kept {
					t.Errorf("the refusal is %q", refusal)
				}
			}
			for limit, count := range inv.Supply().Oversized {
				if want := 0; limit == c.refused && count != 2 || limit != c.refused && count != want {
					t.Errorf("%s: %d", limit, count)
				}
			}
			inv.ApplyClaim("a", "one", nil)
			inv.ApplyTemplate("a", "one", nil)
			checkSpecs(t, inv)
			if len(inv.specs.specs.values) != 0 {
				t.Error("the specification stays without its claim")
			}
		})
	}
}

// checkSpecs compares the budget with what is kept.
func checkSpecs(t *testing.T, inv *Inventory) {
	t.Helper()
	total, namespaces, refused := 0, map[string]int{}, 0
	for _, kept := range inv.specs.specs.values {
		if kept.value.namespace != "" {
			total += kept.value.bytes
			namespaces[kept.value.namespace] += kept.value.bytes
		}
	}
	for _, kept := range inv.claims.templates {
		if kept.value.spec == nil {
			refused++
		}
	}
	for _, c := range inv.claims.claims {
		if c.spec != nil && c.spec.value.spec == nil {
			refused++
		}
	}
	for _, count := range inv.specs.refusedCount {
		refused -= count
	}
	if total != inv.specs.total || fmt.Sprint(namespaces) != fmt.Sprint(inv.specs.byNamespace) || refused != 0 {
		t.Fatalf("the budget has %d, %v, and %d fewer are refused; kept are %d, %v", inv.specs.total, inv.specs.byNamespace, refused, total, namespaces)
	}
	if total > totalLimit {
		t.Fatalf("%d bytes are kept", total)
	}
	for namespace, bytes := range namespaces {
		if bytes > namespaceLimit {
			t.Fatalf("%d bytes are kept of %s", bytes, namespace)
		}
	}
}

// numbered is a claim whose specification no other has.
func numbered(i, size int) *resourcev1.ResourceClaim {
	claim := claimWith(times(2000, size/2000)...)
	claim.Spec.Devices.Requests[0].Name = fmt.Sprintf("r%d", i)
	return claim
}

// TestNamespacesDoNotDisplaceEachOther: one namespace's large specifications
// leave room for those of others, and however many there are in all, those of
// ordinary size are kept.
func TestNamespacesDoNotDisplaceEachOther(t *testing.T) {
	inv := New()
	for i := range 1000 {
		inv.ApplyClaim("hostile", fmt.Sprint(i), numbered(i, 20_000))
	}
	inv.ApplyClaim("other", "large", numbered(0, 20_000))
	inv.ApplyClaim("hostile", "small", numbered(0, 2000))
	if spec, _ := inv.Spec("other", "large", ""); spec == nil {
		t.Error("another namespace's claim is not kept")
	}
	if spec, _ := inv.Spec("hostile", "small", ""); spec == nil {
		t.Error("a claim of ordinary size is not kept")
	}
	if refused := inv.Supply().Oversized[dra.SpecLimitNamespace]; refused < 800 || refused == 1000 {
		t.Errorf("%d of 1000 are refused", refused)
	}
	if _, refusal := inv.Spec("hostile", "999", ""); refusal != "large specifications of its namespace take more than the limit of 2097152 bytes" {
		t.Errorf("the refusal is %q", refusal)
	}
	for namespace := range 50 {
		for i := range 110 {
			inv.ApplyClaim(fmt.Sprintf("hostile-%d", namespace), fmt.Sprint(i), numbered(i, 20_000))
		}
	}
	checkSpecs(t, inv)
	if _, refusal := inv.Spec("hostile-49", "0", ""); refusal != "large specifications of all namespaces take more than the limit of 67108864 bytes" {
		t.Errorf("the refusal is %q", refusal)
	}
	inv.ApplyClaim("other", "small", numbered(7, 2000))
	if spec, _ := inv.Spec("other", "small", ""); spec == nil {
		t.Error("a claim of ordinary size is not kept beside many large ones")
	}
}

// TestClaimsOfOneTemplateShareItsSpecification, also large ones.
func TestClaimsOfOneTemplateShareItsSpecification(t *testing.T) {
	for _, size := range []int{2000, 30_000} {
		inv := New()
		for i := range 10_000 {
			inv.ApplyClaim("a", fmt.Sprint(i), numbered(0, size))
		}
		first, _ := inv.Spec("a", "0", "")
		last, _ := inv.Spec("a", "9999", "")
		if len(inv.specs.specs.values) != 1 || first == nil || first != last {
			t.Errorf("%d specifications", len(inv.specs.specs.values))
		}
		checkSpecs(t, inv)
	}
}

// TestSpecificationLifecycle adds and removes specifications in any order, and checks the budget.
func TestSpecificationLifecycle(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 8))
	inv := New()
	for step := range 5000 {
		namespace, name := fmt.Sprintf("n%d", random.IntN(3)), fmt.Sprint(random.IntN(300))
		claim := numbered(random.IntN(200), random.IntN(24)*2000)
		if random.IntN(10) == 0 {
			claim.Status.Allocation = &resourcev1.AllocationResult{}
		}
		switch random.IntN(4) {
		case 0:
			inv.ApplyClaim(namespace, name, nil)
		case 1:
			inv.ApplyTemplate(namespace, name, nil)
		case 2:
			inv.ApplyTemplate(namespace, name, &resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim.Spec}})
		default:
			inv.ApplyClaim(namespace, name, claim)
		}
		if step%50 == 0 {
			checkSpecs(t, inv)
		}
	}
	for ref := range inv.claims.claims {
		inv.ApplyClaim(ref.Namespace, ref.Name, nil)
	}
	for ref := range inv.claims.templates {
		inv.ApplyTemplate(ref.Namespace, ref.Name, nil)
	}
	if checkSpecs(t, inv); len(inv.specs.specs.values) != 0 || inv.specs.total != 0 || len(inv.specs.byNamespace) != 0 {
		t.Errorf("something stays: %+v", inv.specs)
	}
}

// FuzzSpec takes a specification of any bytes in: what is kept of it is no
// larger than the limits, and is what it was.
func FuzzSpec(f *testing.F) {
	for _, claim := range []*resourcev1.ResourceClaim{claimWith(), claimWith(5000), claimWith(times(2000, 32)...), numbered(3, 20_000)} {
		data, err := claim.Spec.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		claim := &resourcev1.ResourceClaim{}
		if claim.Spec.Unmarshal(data) != nil {
			return
		}
		inv := New()
		inv.ApplyClaim("a", "one", claim)
		spec, refusal := inv.Spec("a", "one", "")
		kept := spec != nil
		switch {
		case kept && (specMemory(spec) > specLimit || longestSelector(spec) > expressionLimit):
			t.Errorf("%d bytes are kept", specMemory(spec))
		case kept && spec.String() != claim.Spec.String():
			t.Errorf("%v is kept of %v", spec, &claim.Spec)
		case kept == (refusal != ""):
			t.Errorf("kept: %t, and the refusal is %q", kept, refusal)
		}
		inv.ApplyClaim("a", "one", nil)
		checkSpecs(t, inv)
	})
}

// TestSpecsMostFrequent compares the most frequent specifications with all of them,
// sorted.
func TestSpecsMostFrequent(t *testing.T) {
	inv := New()
	random := rand.New(rand.NewPCG(1, 24))
	want := map[string]int{}
	for i := range 200 {
		class := fmt.Sprintf("class-%d", random.IntN(12)*random.IntN(3))
		spec := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, Count: 1}}}}}
		if i%10 == 0 {
			template := &resourcev1.ResourceClaimTemplate{}
			template.Spec.Spec = spec
			inv.ApplyTemplate("team", fmt.Sprint(i), template)
		} else {
			claim := &resourcev1.ResourceClaim{Spec: spec}
			if i%3 == 0 {
				claim.Status.Allocation = &resourcev1.AllocationResult{}
			}
			inv.ApplyClaim("team", fmt.Sprint(i), claim)
		}
		want[class]++
	}
	all := inv.Overview().Specs(1000)
	for _, use := range all {
		if class := use.Spec.Devices.Requests[0].Exactly.DeviceClassName; use.Claims+use.Templates != want[class] {
			t.Errorf("%s is requested by %d claims and %d templates, want %d", class, use.Claims, use.Templates, want[class])
		}
	}
	if len(all) != len(want) || !slices.IsSortedFunc(all, func(a, b SpecUse) int { return b.Claims + b.Templates - a.Claims - a.Templates }) {
		t.Errorf("%d specifications: %+v", len(all), all)
	}
	for most := range len(all) + 2 {
		if got := inv.Overview().Specs(most); !slices.Equal(got, all[:min(most, len(all))]) {
			t.Errorf("the first %d: %+v", most, got)
		}
	}
}

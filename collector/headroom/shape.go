package headroom

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/diagnosis"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// sizes are the numbers of devices of each class for which there are shapes, whether
// claims request them or not: nodes have up to eight devices.
func sizes() []int64 { return []int64{1, 2, 4, 8} }

// maxText bounds the text of a shape, which is a label.
const maxText = 120

// shape describes what a claim, or several claims of a pod together, request.
type shape struct {
	class string // of its first request
	text  string
	key   string // the same for equal specifications
	specs []*resourcev1.ResourceClaimSpec
	uses  int // claims and templates that request it
	asked int // claims
	most  int // claims that are counted on one node

	requests []diagnosis.Request
	devices  int64 // at least, of all classes
	simple   bool  // some devices of its class, and nothing else

	group  *shapeGroup
	found  map[inventory.TraitsKey]fill
	linked linkedFill
}

// newShape returns the shape of the specifications. It returns false if such claims
// cannot be counted: with admin access they take no devices.
func newShape(uses int, specs ...*resourcev1.ResourceClaimSpec) (*shape, bool) {
	s := &shape{specs: specs, uses: uses, most: timesPerNode, found: map[inventory.TraitsKey]fill{}}
	takes := false
	digest := sha256.New()
	for _, spec := range specs {
		requests := diagnosis.Requests(spec)
		s.requests = append(s.requests, requests...)
		s.devices += diagnosis.LeastDevices(requests)
		if encoded, err := spec.Marshal(); err == nil {
			_, _ = digest.Write(encoded) // it never fails
		}
	}
	for _, r := range s.requests {
		takes = takes || !r.AdminAccess
	}
	if !takes {
		return nil, false
	}
	s.class = s.requests[0].Class
	s.simple = len(specs) == 1 && isSimple(specs[0])
	s.text = specText(specs[0])
	s.key = hex.EncodeToString(digest.Sum(nil))
	return s, true
}

// constraints returns those of all claims.
func (s *shape) constraints() []resourcev1.DeviceConstraint {
	var all []resourcev1.DeviceConstraint
	for _, spec := range s.specs {
		all = append(all, spec.Devices.Constraints...)
	}
	return all
}

// newDeviceSpec returns the specification of a claim for devices of a class.
func newDeviceSpec(class string, count int64) *resourcev1.ResourceClaimSpec {
	return &resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "devices",
		Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		},
	}}}}
}

// isSimple reports whether a claim requests a number of devices of a class, and
// nothing else.
func isSimple(spec *resourcev1.ResourceClaimSpec) bool {
	if len(spec.Devices.Requests) != 1 || len(spec.Devices.Constraints) > 0 {
		return false
	}
	r := spec.Devices.Requests[0].Exactly
	return r != nil && r.AllocationMode != resourcev1.DeviceAllocationModeAll && len(r.Selectors) == 0 && len(r.Tolerations) == 0 &&
		r.Capacity == nil && len(r.DerivedAttributes) == 0
}

// specText describes what a claim requests. If it requests devices of one class only,
// the text is their number.
func specText(spec *resourcev1.ResourceClaimSpec) string {
	if isSimple(spec) {
		return strconv.FormatInt(max(spec.Devices.Requests[0].Exactly.Count, 1), 10)
	}
	var parts []string
	for i := range spec.Devices.Requests {
		parts = append(parts, textOfRequest(&spec.Devices.Requests[i]))
	}
	text := strings.Join(parts, " + ")
	for i := range spec.Devices.Constraints {
		switch c := &spec.Devices.Constraints[i]; {
		case c.MatchAttribute != nil:
			text += ", same " + string(*c.MatchAttribute)
		case c.DistinctAttribute != nil:
			text += ", distinct " + string(*c.DistinctAttribute)
		}
	}
	return text
}

func textOfRequest(request *resourcev1.DeviceRequest) string {
	if exactly := request.Exactly; exactly != nil {
		return textOfDevices(exactly.AllocationMode, exactly.Count, exactly.DeviceClassName, exactly.Selectors, exactly.Capacity, len(exactly.Tolerations) > 0)
	}
	var parts []string
	for i := range request.FirstAvailable {
		sub := &request.FirstAvailable[i]
		parts = append(parts, textOfDevices(sub.AllocationMode, sub.Count, sub.DeviceClassName, sub.Selectors, sub.Capacity, len(sub.Tolerations) > 0))
	}
	return "(" + strings.Join(parts, " or ") + ")"
}

func textOfDevices(mode resourcev1.DeviceAllocationMode, count int64, class string, selectors []resourcev1.DeviceSelector, capacity *resourcev1.CapacityRequirements, tolerates bool) string {
	text := strconv.FormatInt(max(count, 1), 10) + " " + class
	if mode == resourcev1.DeviceAllocationModeAll {
		text = "all " + class
	}
	if capacity != nil {
		var amounts []string
		for name, amount := range capacity.Requests {
			amounts = append(amounts, fmt.Sprintf("%s %s", amount.String(), name))
		}
		slices.Sort(amounts)
		text += " with " + strings.Join(amounts, ", ")
	}
	if len(selectors) > 0 {
		text += " by selector"
		if values := selectorTexts(selectors); len(values) > 0 {
			text += " (" + strings.Join(values, ", ") + ")"
		}
	}
	if tolerates {
		text += " with tolerations"
	}
	return text
}

// maxValues is how many values of selectors the text of a shape has.
const maxValues = 3

// selectorTexts returns the texts with which selectors compare, such as the profile of a
// partition: not those between brackets, which are the domains of attributes.
func selectorTexts(selectors []resourcev1.DeviceSelector) []string {
	var all []string
	for i := range selectors {
		if selectors[i].CEL == nil {
			continue
		}
		for _, found := range literal().FindAllStringSubmatch(selectors[i].CEL.Expression, -1) {
			value := cmp.Or(found[2], found[3])
			if found[1] != "[" && value != "" && !slices.Contains(all, value) && len(all) < maxValues {
				all = append(all, value)
			}
		}
	}
	return all
}

// literal matches a text in a CEL expression, and the character before it.
func literal() *regexp.Regexp { return regexp.MustCompile(`(^|.)(?:"([^"\\\\]*)"|'([^'\\\\]*)')`) }

// newShapes returns the shapes of classes, and those that most claims and templates
// request, each once, sorted by class and text. No two have the same class and text.
func newShapes(classes []string, used []inventory.SpecUse, previous map[string]*shape) []*shape {
	byKey := map[string]*shape{}
	add := func(spec *resourcev1.ResourceClaimSpec, claims, templates int) {
		made, ok := newShape(claims+templates, spec)
		if !ok {
			return
		}
		made.asked = claims
		if made.simple { // whatever its request is called
			made.key = made.class + "/" + made.text
		}
		if known := byKey[made.key]; known != nil {
			known.uses, known.asked = known.uses+made.uses, known.asked+claims
			return
		}
		if old := previous[made.key]; old != nil {
			old.uses, old.asked, old.text = made.uses, claims, made.text
			made = old
		}
		byKey[made.key] = made
	}
	for _, class := range classes {
		for _, size := range sizes() {
			add(newDeviceSpec(class, size), 0, 0)
		}
	}
	for _, use := range used {
		if known := slices.Contains(classes, firstClass(use.Spec)); known {
			add(use.Spec, use.Claims, use.Templates)
		}
	}
	all := make([]*shape, 0, len(byKey))
	for _, s := range byKey {
		all = append(all, s)
	}
	distinguish(all)
	slices.SortFunc(all, func(a, b *shape) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.text, b.text)) })
	return all
}

func firstClass(spec *resourcev1.ResourceClaimSpec) string {
	if requests := diagnosis.Requests(spec); len(requests) > 0 {
		return requests[0].Class
	}
	return ""
}

// distinguish shortens long texts. It adds a digest to shortened texts and to texts
// that several shapes of a class have.
func distinguish(all []*shape) {
	type label struct{ class, text string }
	counts := map[label]int{}
	short := func(text string) string {
		if len(text) <= maxText {
			return text
		}
		return strings.ToValidUTF8(text[:maxText], "") + "…"
	}
	for _, s := range all {
		counts[label{s.class, short(s.text)}]++
	}
	for _, s := range all {
		text := short(s.text)
		if counts[label{s.class, text}] > 1 || text != s.text {
			text += " #" + s.key[:6]
		}
		s.text = text
	}
}

// Describe returns what a claim requests, in a few words.
func Describe(spec *resourcev1.ResourceClaimSpec) string {
	if isSimple(spec) {
		return textOfRequest(&spec.Devices.Requests[0])
	}
	return specText(spec)
}

// single returns the specification of a claim for one device of a request.
func (s *shape) single(request int) *resourcev1.ResourceClaimSpec {
	r := &s.requests[request]
	spec := newDeviceSpec(r.Class, 1)
	exactly := spec.Devices.Requests[0].Exactly
	exactly.Selectors, exactly.Tolerations, exactly.Capacity = r.Selectors, r.Tolerations, r.Capacity
	return spec
}

package apiserver

import (
	"hash/maphash"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// sameVersion reports whether an object is as it was when it was decoded.
func sameVersion[O metav1.Object, T any](before item[T], object O) bool {
	return before.version != "" && before.version == object.GetResourceVersion()
}

// versionOf keeps nothing of an object but its version.
func versionOf[O metav1.Object](object O) (item[struct{}], bool) {
	return item[struct{}]{version: object.GetResourceVersion()}, true
}

// silently tells nobody of a change but the keeper.
func silently(_, _ *item[struct{}], _ bool) {}

func (c *Cluster) followSlices() {
	follow(c, kind[*resourcev1.ResourceSlice, item[struct{}]]{
		resource: "resourceslices", ofDRA: true,
		offers:  []offer{{c.client.resource, func() runtime.Object { return &resourcev1.ResourceSliceList{} }}},
		known:   sameVersion[*resourcev1.ResourceSlice, struct{}],
		decode:  versionOf[*resourcev1.ResourceSlice],
		changed: silently,
		handed: func(name objectName, slice *resourcev1.ResourceSlice, kept bool) {
			c.options.Keeper.Slice(decode.Text(name.name), decode.StripSlice(slice))
		},
	})
}

// followClasses hands classes over and learns which extended resources they
// stand for.
func (c *Cluster) followClasses() {
	follow(c, kind[*resourcev1.DeviceClass, classItem]{
		resource: "deviceclasses", ofDRA: true,
		offers: []offer{{c.client.resource, func() runtime.Object { return &resourcev1.DeviceClassList{} }}},
		known: func(before classItem, class *resourcev1.DeviceClass) bool {
			return before.version != "" && before.version == class.ResourceVersion
		},
		decode: func(class *resourcev1.DeviceClass) (classItem, bool) {
			return classItem{version: class.ResourceVersion, extended: decode.OptionalText(class.Spec.ExtendedResourceName)}, true
		},
		changed: func(before, after *classItem, _ bool) { c.classDiffers(before.name(), after.name()) },
		handed: func(name objectName, class *resourcev1.DeviceClass, kept bool) {
			c.options.Keeper.Class(decode.Text(name.name), decode.StripClass(class))
		},
	})
}

func (c *Cluster) followRules() {
	follow(c, kind[*resourcev1.DeviceTaintRule, item[struct{}]]{
		resource: "devicetaintrules", ofDRA: true, optional: true,
		offers:  ruleOffers(c.client),
		convert: decode.TaintRule,
		known:   sameVersion[*resourcev1.DeviceTaintRule, struct{}],
		decode:  versionOf[*resourcev1.DeviceTaintRule],
		changed: silently,
		handed: func(name objectName, rule *resourcev1.DeviceTaintRule, kept bool) {
			c.options.Keeper.Rule(decode.Text(name.name), decode.StripRule(rule))
		},
	})
}

// followNodes tells of nodes and hands over what selectors look at. A node's
// status is written every few minutes without anything being different that
// matters here, so that is what tells versions apart.
func (c *Cluster) followNodes() {
	seed := maphash.MakeSeed()
	teller := teller[dra.NodeLife]{
		journal: c.journal,
		uid:     func(life *dra.NodeLife) string { return life.Name },
		change:  func(life *dra.NodeLife) Change { return Change{Node: life} },
	}
	follow(c, kind[*corev1.Node, item[dra.NodeLife]]{
		resource: "nodes",
		offers:   []offer{{c.client.core, func() runtime.Object { return &corev1.NodeList{} }}},
		decode: func(node *corev1.Node) (item[dra.NodeLife], bool) {
			life := decode.NodeLife(node)
			return item[dra.NodeLife]{version: fingerprint(seed, decode.StripNode(node)), value: &life}, true
		},
		changed: teller.tell,
		handed: func(name objectName, node *corev1.Node, kept bool) {
			c.options.Keeper.Node(decode.Text(name.name), decode.StripNode(node))
		},
	})
}

// fingerprint is the same for nodes that are; of one that cannot be encoded
// it is empty, as it is of all such.
func fingerprint(seed maphash.Seed, node *corev1.Node) string {
	bytes, err := node.Marshal()
	if err != nil {
		return ""
	}
	return strconv.FormatUint(maphash.Bytes(seed, bytes), 36)
}

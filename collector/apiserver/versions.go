package apiserver

import (
	"fmt"
	"sync/atomic"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// offer is one version under which API servers may have a collection.
type offer struct {
	group rest.Interface
	list  func() runtime.Object
}

// offers are the versions under which API servers of different ages have a
// collection, the best first. The one that was served last is asked for
// first. It is safe for concurrent use.
type offers struct {
	all     []offer
	present atomic.Int32
}

// ask asks for one version after the other until one is served. Where there
// is but one, that it is not served is for the API server's answer to say.
func (o *offers) ask(request func(offer) error) error {
	if len(o.all) == 1 {
		return request(o.all[0])
	}
	first := int(o.present.Load())
	var err error
	for i := range o.all {
		asked := (first + i) % len(o.all)
		if err = request(o.all[asked]); !isUnserved(err) {
			o.present.Store(int32(asked))
			return err
		}
	}
	return fmt.Errorf("%w: %w", errNotServed, err)
}

// ruleOffers: DeviceTaintRule is v1 since Kubernetes 1.37, was v1beta2 in 1.36
// and v1alpha3 before. All say the same of what is used here.
func ruleOffers(c *client) []offer {
	return []offer{
		{c.resource, func() runtime.Object { return &resourcev1.DeviceTaintRuleList{} }},
		{c.older[resourcev1beta2.SchemeGroupVersion], func() runtime.Object { return &resourcev1beta2.DeviceTaintRuleList{} }},
		{c.older[resourcev1alpha3.SchemeGroupVersion], func() runtime.Object { return &resourcev1alpha3.DeviceTaintRuleList{} }},
	}
}

// groupOffers: PodGroup is v1beta1 and v1alpha3 in Kubernetes 1.37, and both
// are off unless somebody has turned them on.
func groupOffers(c *client) []offer {
	return []offer{
		{c.older[schedulingv1beta1.SchemeGroupVersion], func() runtime.Object { return &schedulingv1beta1.PodGroupList{} }},
		{c.older[schedulingv1alpha3.SchemeGroupVersion], func() runtime.Object { return &schedulingv1alpha3.PodGroupList{} }},
	}
}

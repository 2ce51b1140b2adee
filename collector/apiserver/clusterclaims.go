package apiserver

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// followClaims tells of the lives of claims, and hands whole claims over.
func (c *Cluster) followClaims() {
	words := newWords()
	teller := teller[dra.ClaimLife]{
		journal: c.journal,
		uid:     func(life *dra.ClaimLife) string { return life.UID },
		change:  func(life *dra.ClaimLife) Change { return Change{Claim: life} },
	}
	follow(c, kind[*resourcev1.ResourceClaim, item[dra.ClaimLife]]{
		resource: "resourceclaims", scoped: true, ofDRA: true,
		offers: []offer{{c.client.resource, func() runtime.Object { return &resourcev1.ResourceClaimList{} }}},
		known:  sameVersion[*resourcev1.ResourceClaim, dra.ClaimLife],
		decode: func(claim *resourcev1.ResourceClaim) (item[dra.ClaimLife], bool) {
			life := decode.ClaimLife(claim)
			words.claim(&life)
			return item[dra.ClaimLife]{version: claim.ResourceVersion, value: &life}, true
		},
		changed: teller.tell,
		handed: func(name objectName, claim *resourcev1.ResourceClaim, kept bool) {
			c.options.Keeper.Claim(decode.Text(name.namespace), decode.Text(name.name), decode.StripClaim(claim))
		},
	})
	c.claims = c.kinds[len(c.kinds)-1]
}

// followTemplates hands templates over.
func (c *Cluster) followTemplates() {
	follow(c, kind[*resourcev1.ResourceClaimTemplate, item[struct{}]]{
		resource: "resourceclaimtemplates", scoped: true, ofDRA: true,
		offers:  []offer{{c.client.resource, func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} }}},
		known:   sameVersion[*resourcev1.ResourceClaimTemplate, struct{}],
		decode:  versionOf[*resourcev1.ResourceClaimTemplate],
		changed: silently,
		handed: func(name objectName, template *resourcev1.ResourceClaimTemplate, kept bool) {
			c.options.Keeper.Template(decode.Text(name.namespace), decode.Text(name.name), decode.StripTemplate(template))
		},
	})
}

// followGroups tells of the groups of pods that have claims.
func (c *Cluster) followGroups() {
	teller := teller[dra.Group]{
		journal: c.journal,
		uid:     func(group *dra.Group) string { return group.UID },
		change:  func(group *dra.Group) Change { return Change{Group: group} },
	}
	follow(c, kind[*schedulingv1beta1.PodGroup, item[dra.Group]]{
		resource: "podgroups", scoped: true, optional: true,
		offers:  groupOffers(c.client),
		convert: decode.PodGroup,
		known:   sameVersion[*schedulingv1beta1.PodGroup, dra.Group],
		decode: func(group *schedulingv1beta1.PodGroup) (item[dra.Group], bool) {
			decoded := decode.Group(group)
			return item[dra.Group]{version: group.ResourceVersion, value: &decoded}, len(decoded.Claims) > 0
		},
		changed: teller.tell,
	})
}

// followEvents tells of the events with one reason. The API server selects by
// one at a time.
func (c *Cluster) followEvents(reason string, silent bool) {
	teller := teller[dra.Trouble]{
		journal: c.journal,
		uid:     func(trouble *dra.Trouble) string { return trouble.Name },
		change:  func(trouble *dra.Trouble) Change { return Change{Trouble: trouble} },
	}
	follow(c, kind[*corev1.Event, item[dra.Trouble]]{
		resource: "events", scoped: true, silent: silent,
		selector: fields.OneTermEqualSelector("reason", reason).String(),
		offers:   []offer{{c.client.core, func() runtime.Object { return &corev1.EventList{} }}},
		known:    sameVersion[*corev1.Event, dra.Trouble],
		decode: func(event *corev1.Event) (item[dra.Trouble], bool) {
			trouble, ok := decode.Trouble(event)
			return item[dra.Trouble]{version: event.ResourceVersion, value: &trouble}, ok
		},
		changed: teller.tell,
	})
}

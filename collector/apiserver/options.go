package apiserver

import (
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/apiserver/watch"
	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// Limits bound what is accepted from an API server.
type Limits = watch.Limits

// LimitAnswers returns a copy of the configuration whose answers fail beyond the
// default limits.
func LimitAnswers(config *rest.Config) *rest.Config { return watch.LimitAnswers(config) }

// Options are the options of a NodeWatch. Config, Node, Log and Clock are required.
type Options struct {
	Config *rest.Config
	Node   string // name of the node
	Log    *slog.Logger
	Clock  clock.Clock

	// PodLabels are the keys of the labels of pods whose values are read.
	PodLabels []string

	// NodeLabels are the keys of the labels of the node that are read; none: the node
	// is not watched.
	NodeLabels []string

	// Workloads determines the workloads of pods; nil: by the table of frameworks.
	Workloads *decode.Workloads

	// PodsFed disables the watch of pods: the PodFeed receives them, as the
	// kubelet knows them.
	PodsFed bool

	// Observe returns what observes the duration of each request of the named
	// source, in seconds.
	Observe func(source string) func(seconds float64)

	Limits Limits
}

func (o Options) check() error {
	switch {
	case o.Config == nil:
		return errors.New("read from the API server: no configuration of the connection is given")
	case o.Node == "":
		return errors.New("read from the API server: the name of the node is not given")
	case o.Log == nil:
		return errors.New("read from the API server: no logger is given")
	case o.Clock == nil:
		return errors.New("read from the API server: no clock is given")
	}
	for _, key := range o.PodLabels {
		if faults := validation.IsQualifiedName(key); len(faults) > 0 {
			return fmt.Errorf("read from the API server: %q is not a valid name of a pod label: %s", key, faults[0])
		}
	}
	return nil
}

// podFields is what is read of pods.
func (o Options) podFields() decode.PodFields {
	return decode.PodFields{Labels: o.PodLabels, Workloads: o.Workloads}
}

func (o Options) observer(source string) func(seconds float64) {
	if o.Observe == nil {
		return func(float64) {}
	}
	return o.Observe(source)
}

// watching are the options of the watch of a source.
func (o Options) watching(name string, changed func(alive bool)) watch.Options {
	return watch.Options{Clock: o.Clock, Changed: changed, Tracker: source.NewTracker(name, o.Log, o.Clock, o.observer(name))}
}

// NodeFacts are what is known of the node from the API server. They are shared and
// must not be changed.
type NodeFacts struct {
	Pods       []dra.Pod             // that use claims and have not ended, sorted by namespace and name
	PluginPods []dra.Pod             // that use device plugins and no claims, and have not ended: their identity and labels, sorted likewise
	Claims     []dra.Claim           // that pods reference which have not ended, sorted likewise
	Published  []dra.PublishedDevice // for this node, sorted by driver, pool and name

	// PodsFresh reports whether the watch of pods is synced and alive: Pods are
	// complete and up to date.
	PodsFresh bool

	// SlicesFresh reports the same of the watch of slices, and so of Published.
	SlicesFresh bool

	// Unread are the claims that pods reference which have not ended and of which
	// nothing is known: they were not read yet, or could not be. A claim that is
	// known not to exist is not among them. Sorted by namespace and name.
	Unread []dra.ClaimRef
}

// nodesSource is the name of the source that the labels of the node are read from.
const nodesSource = "nodes"

// claimsSource is the name of the source that claims are read from.
const claimsSource = "resourceclaims"

func nodeVersions() []watch.Version {
	return []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.NodeList{} }}}
}

func podVersions() []watch.Version {
	return []watch.Version{{Group: corev1.SchemeGroupVersion, Empty: func() runtime.Object { return &corev1.PodList{} }}}
}

func claimVersions() []watch.Version {
	return []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.ResourceClaimList{} }}}
}

func sliceVersions() []watch.Version {
	return []watch.Version{{Group: resourcev1.SchemeGroupVersion, Empty: func() runtime.Object { return &resourcev1.ResourceSliceList{} }}}
}

package apiserver

import (
	"errors"
	"fmt"
	"log/slog"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Options say what to read and whom to tell. Config, Node, Log
// and Clock are needed.
type Options struct {
	Config *rest.Config
	Node   string // name of the node
	Log    *slog.Logger
	Clock  clock.Clock

	// PodLabels are the labels of pods whose values are wanted, by their keys.
	PodLabels []string

	// PodsFed says that pods are not watched: somebody tells them to the
	// PodFeed, as the kubelet knows them.
	PodsFed bool

	// Observe returns what is told how long each request of the named
	// source took, in seconds.
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
			return fmt.Errorf("read from the API server: no label of pods can be %q: %s", key, faults[0])
		}
	}
	return nil
}

func (o Options) observer(source string) func(seconds float64) {
	if o.Observe == nil {
		return func(float64) {}
	}
	return o.Observe(source)
}

// Facts are what the API server is known to have said of the node. They are
// shared between all who ask and must not be changed.
type Facts struct {
	Pods       []dra.Pod             // that use claims and have not ended, sorted by namespace and name
	PluginPods []dra.Pod             // that use device plugins and no claims, and have not ended: who they are and their labels, sorted likewise
	Claims     []dra.Claim           // that pods name which have not ended, sorted likewise
	Published  []dra.PublishedDevice // for this node, sorted by driver, pool and name

	// PodsFresh reports that the watch of pods is synced and alive: Pods
	// is all there is, and as new as can be.
	PodsFresh bool

	// SlicesFresh reports the same of the watch of slices, and so of
	// Published.
	SlicesFresh bool

	// Unread are the claims that pods name which have not ended and of
	// which nothing is known: they have not been answered yet, or could
	// not be read. A claim that is known not to exist is not among them.
	// Sorted by namespace and name.
	Unread []dra.ClaimRef
}

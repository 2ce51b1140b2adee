package clusterread

import (
	"fmt"
	"strings"
)

// Kind is the kind of a subject.
type Kind string

// The kinds of subjects.
const (
	KindClaim    Kind = "claim"
	KindPod      Kind = "pod"
	KindNode     Kind = "node"
	KindWorkload Kind = "workload" // a workload of any kind: all pods that belong to it
)

// Object is how the API calls objects of the kind.
func (k Kind) Object() string {
	if k == KindClaim {
		return "ResourceClaim"
	}
	return string(k)
}

// Subject is the object to explain, or whose devices are to be shown.
type Subject struct {
	Kind            Kind
	Namespace, Name string
	WorkloadKind    string // of a workload, if several workloads have the name; empty: any
}

func (s Subject) String() string {
	return fmt.Sprintf("%s %s/%s", s.Kind.Object(), s.Namespace, s.Name)
}

// ParseSubject reads NAMESPACE/NAME, or NAME in the namespace given apart. Both
// at once must not contradict each other; asked means that a flag set the
// namespace, and not the kubeconfig.
func ParseSubject(kind Kind, text, namespace string, asked bool) (Subject, error) {
	name := text
	if left, right, slashed := strings.Cut(text, "/"); slashed {
		if asked && left != namespace {
			return Subject{}, fmt.Errorf("%q has a different namespace than --namespace=%s", text, namespace)
		}
		namespace, name = left, right
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return Subject{}, fmt.Errorf("%q is not NAMESPACE/NAME, nor the NAME of a %s", text, kind.Object())
	}
	return Subject{Kind: kind, Namespace: namespace, Name: name}, nil
}

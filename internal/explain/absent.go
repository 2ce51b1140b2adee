package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/spelling"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// UnreadError means that the subject could not be read.
type UnreadError struct {
	Subject clusterread.Subject
	Gap     clusterread.Gap
}

func (e *UnreadError) Error() string {
	text := fmt.Sprintf("nothing is known about %s: %s could not be read", e.Subject, e.Gap.Source)
	if e.Gap.Message != "" {
		text += ": " + e.Gap.Message
	}
	return text
}

// NotFoundError means that the object does not exist.
type NotFoundError struct {
	Subject clusterread.Subject
	NamedBy []string // pods that name the claim all the same
	Near    []string // NAMESPACE/NAME of objects with similar names
}

func (e *NotFoundError) Error() string {
	text := "there is no " + e.Subject.String()
	switch e.Subject.Kind {
	case clusterread.KindWorkload:
		if e.Subject.WorkloadKind != "" {
			text += " of kind " + e.Subject.WorkloadKind
		}
		text += " with pods that use claims or extended resources of a device class, or that waits in a queue of Kueue"
	case clusterread.KindPod:
		text += " that uses claims or extended resources of a device class"
	default:
	}
	if len(e.NamedBy) > 0 {
		text += fmt.Sprintf("; %s %s it", pods(e.NamedBy), words.Plural(len(e.NamedBy), "names", "name"))
	}
	if len(e.Near) > 0 {
		text += "; did you mean " + words.Join(e.Near, "or") + "?"
	}
	return text
}

// absent returns the error for an object that is not known.
func absent(f *clusterread.Facts, subject clusterread.Subject) error {
	name := subject.Namespace + "/" + subject.Name
	collection, names := clusterread.SourceClaims, []string{}
	missing := &NotFoundError{Subject: subject}
	switch subject.Kind {
	case clusterread.KindWorkload:
		collection = clusterread.SourcePods
		for ref, pod := range f.Objects.Pods {
			if workload := pod.Member.Workload; workload != nil && !slices.Contains(names, ref.Namespace+"/"+workload.Name) {
				names = append(names, ref.Namespace+"/"+workload.Name)
			}
		}
		for ref, queued := range f.Objects.Kueue {
			if name := ref.Namespace + "/" + queued.Workload.Name; queued.Waiting != nil && queued.Workload.Name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if subject.WorkloadKind != "" {
			_, kinds := workloadPods(f.Objects, clusterread.Subject{Kind: clusterread.KindWorkload, Namespace: subject.Namespace, Name: subject.Name})
			for _, kind := range kinds {
				missing.Near = append(missing.Near, kind+" "+name)
			}
		}
	case clusterread.KindPod:
		collection = clusterread.SourcePods
		for ref := range f.Objects.Pods {
			names = append(names, ref.String())
		}
	default:
		for ref := range f.Objects.Claims {
			names = append(names, ref.String())
		}
		for _, pod := range f.Objects.Users(dra.ClaimRef{Namespace: subject.Namespace, Name: subject.Name}) {
			missing.NamedBy = append(missing.NamedBy, pod.Ref.Name)
		}
	}
	for _, gap := range f.Gaps {
		if gap.Source == collection && (gap.Only == "" || gap.Only != subject.Namespace) {
			return &UnreadError{Subject: subject, Gap: gap}
		}
	}
	if len(missing.Near) == 0 {
		missing.Near = near(name, names)
	}
	return missing
}

// mostNear is the most similar names that are suggested.
const mostNear = 3

// near returns similar names: the same name in other namespaces, names that
// contain it or are contained, and names that a few keys away.
func near(wanted string, known []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	_, bare := split(wanted)
	var candidates []candidate
	for _, name := range known {
		_, other := split(name)
		distance := spelling.Distance(wanted, name)
		switch {
		case name == wanted:
			continue
		case other == bare:
			distance = 0
		case len(bare) >= 3 && strings.Contains(other, bare), len(other) >= 3 && strings.Contains(bare, other):
			distance = min(distance, 2)
		}
		if distance <= max(2, len(bare)/8) {
			candidates = append(candidates, candidate{name, distance})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	return words.Names(candidates[:min(len(candidates), mostNear)], func(c candidate) string { return c.name })
}

// split splits NAMESPACE/NAME; a name alone has no namespace.
func split(name string) (namespace, bare string) {
	namespace, bare, slashed := strings.Cut(name, "/")
	if !slashed {
		return "", name
	}
	return namespace, bare
}

// AmbiguousError means that several workloads of a namespace have the name.
type AmbiguousError struct {
	Subject clusterread.Subject
	Kinds   []string
}

func (e *AmbiguousError) Error() string {
	names := words.Names(e.Kinds, func(kind string) string { return fmt.Sprintf("%s %s/%s", kind, e.Subject.Namespace, e.Subject.Name) })
	return fmt.Sprintf("%s are workloads of this name: name one with --workload-kind", words.Join(names, "and"))
}

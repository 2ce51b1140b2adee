package upstream

import (
	"strings"

	kubeversion "k8s.io/apimachinery/pkg/util/version"
)

// Range is versions from one that has a bug to the one with the fix.
type Range struct {
	From  string // empty: since the feature exists
	Fixed string // the first version without the bug; empty: there is none
}

func (r Range) String() string {
	switch {
	case r.Fixed == "":
		return "from " + r.From
	case r.From == "":
		return "fixed in " + r.Fixed
	default:
		return "from " + r.From + ", fixed in " + r.Fixed
	}
}

// isAffected reports whether a version is in one of the ranges, and whether it can be
// compared. What vendors append to a version (-gke.100, +k3s1) does not count.
func isAffected(version string, ranges []Range) (affected, ok bool) {
	parsed := parse(version)
	if parsed == nil {
		return false, false
	}
	for _, r := range ranges {
		first, fixed := parse(r.From), parse(r.Fixed)
		if (first == nil || !parsed.LessThan(first)) && (fixed == nil || parsed.LessThan(fixed)) {
			return true, true
		}
	}
	return false, true
}

// parse returns nil for what is no version. A pre-release of Kubernetes comes before its
// release; every other suffix is dropped, because for semantic versions 1.36.2-gke.100
// would come before 1.36.2.
func parse(version string) *kubeversion.Version {
	parsed, err := kubeversion.ParseGeneric(version)
	if err != nil {
		return nil
	}
	semantic, err := kubeversion.ParseSemantic(version)
	if err != nil {
		return parsed
	}
	for _, stage := range []string{"alpha.", "beta.", "rc."} {
		if semantic.PreRelease() == "" || strings.HasPrefix(semantic.PreRelease(), stage) {
			return semantic
		}
	}
	return parsed // two versions of which one is not semantic are compared by their numbers
}

package apiserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	resourcev1 "k8s.io/api/resource/v1"
)

func TestCut(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""}, {"abcd", "abcd"}, {"abcde", "abcd"}, {"abcé", "abc"}, {"é", "é"}, {"a\xffb", "a\uFFFDb"}, {"abc\xffe", "abc"},
	} {
		if got := cut(c.text, 4); got != c.want || !utf8.ValidString(got) {
			t.Errorf("%q became %q, want %q", c.text, got, c.want)
		}
	}
}

// TestFinalizersOfAClaim: Kubernetes' own is among them wherever it stands,
// because explain says what keeps a claim.
func TestFinalizersOfAClaim(t *testing.T) {
	claim := &resourcev1.ResourceClaim{}
	for i := range 30 {
		claim.Finalizers = append(claim.Finalizers, fmt.Sprintf("example.com/%d", i))
	}
	if got := finalizersOf(claim); len(got) != maxFinalizers || got[15] != "example.com/15" {
		t.Errorf("%q", got)
	}
	claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
	if got := finalizersOf(claim); len(got) != maxFinalizers || !slices.Contains(got, resourcev1.Finalizer) || claim.Finalizers[15] != "example.com/15" {
		t.Errorf("%q of %q", got, claim.Finalizers)
	}
	claim.Finalizers = nil
	if got := finalizersOf(claim); got != nil {
		t.Errorf("%q", got)
	}
}

// TestExtendedResourcesOfAPod: those that a class names for certain come first.
func TestExtendedResourcesOfAPod(t *testing.T) {
	all := map[string]int64{resourcev1.ResourceDeviceClassPrefix + "gpu": 1}
	for i := range 40 {
		all[fmt.Sprintf("a.example.com/%02d", i)] = 1
	}
	bounded := boundExtended(all)
	if len(bounded) != maxExtended || bounded[resourcev1.ResourceDeviceClassPrefix+"gpu"] != 1 || bounded["a.example.com/14"] != 1 || bounded["a.example.com/15"] != 0 {
		t.Errorf("%v", bounded)
	}
	few := map[string]int64{strings.Repeat("x", 3): 2}
	if got := boundExtended(few); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

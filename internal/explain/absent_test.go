package explain_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

func TestNotFound(t *testing.T) {
	named := facts(2)
	named.Objects.Apply(dra.Change{Pod: &dra.PodLifecycle{Ref: dra.PodRef{Namespace: "team-a", Name: "eval"}, UID: "eval", Claims: []dra.PodClaim{{Name: "gpu", Claim: "evaluation"}}}})
	unread, elsewhere := facts(2), facts(2)
	unread.Gaps = clusterread.NewGaps([]source.Status{denied("pods")}, nil, "")
	elsewhere.Gaps = clusterread.NewGaps(nil, []source.Status{denied("resourceclaims"), denied("pods")}, "team-b")
	named.Objects.Apply(dra.Change{Claim: &dra.ClaimLifecycle{Ref: dra.ClaimRef{Namespace: "production", Name: "db"}}})
	for name, test := range map[string]struct {
		facts   clusterread.Facts
		subject clusterread.Subject
		want    string
	}{
		"a typing error":         {facts(2), clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-b", Name: "sevre"}, "there is no ResourceClaim team-b/sevre; did you mean team-b/serve?"},
		"another namespace":      {facts(2), clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-a", Name: "serve"}, "there is no ResourceClaim team-a/serve; did you mean team-b/serve?"},
		"a short name elsewhere": {named, clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "qa", Name: "db"}, "there is no ResourceClaim qa/db; did you mean production/db?"},
		"without the suffix":     {facts(2), clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-a", Name: "train-0-gpus"}, "there is no ResourceClaim team-a/train-0-gpus; did you mean team-a/train-0-gpus-x7k2p?"},
		"nothing like it":        {facts(2), clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-a", Name: "x"}, "there is no ResourceClaim team-a/x"},
		"named by a pod":         {named, clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-a", Name: "evaluation"}, "there is no ResourceClaim team-a/evaluation; pod eval names it"},
		"a pod":                  {facts(2), clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-a", Name: "train-1"}, "there is no pod team-a/train-1 that uses claims or extended resources of a device class; did you mean team-a/train-0?"},
		"pods cannot be read":    {unread, clusterread.Subject{Kind: clusterread.KindPod, Namespace: "team-a", Name: "missing"}, "nothing is known about pod team-a/missing: pods could not be read: pods is forbidden"},
		"only one was looked at": {elsewhere, clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-b", Name: "x"}, "there is no ResourceClaim team-b/x"},
	} {
		_, err := explain.Explain(test.facts, test.subject)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, test.want)
		}
		var missing *explain.NotFoundError
		var blind *explain.UnreadError
		if strings.HasPrefix(test.want, "there is no") != errors.As(err, &missing) || strings.HasPrefix(test.want, "nothing is known") != errors.As(err, &blind) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

func TestParseSubject(t *testing.T) {
	for _, test := range []struct {
		text, namespace string
		asked           bool
		want            string // NAMESPACE/NAME; empty: an error
	}{
		{"train", "default", false, "default/train"},
		{"train", "team-a", true, "team-a/train"},
		{"team-b/train", "default", false, "team-b/train"},
		{"team-b/train", "team-b", true, "team-b/train"},
		{"team-b/train", "team-a", true, ""},
		{"", "default", false, ""},
		{"/train", "default", false, ""},
		{"team-b/", "default", false, ""},
		{"a/b/c", "default", false, ""},
	} {
		subject, err := clusterread.ParseSubject(clusterread.KindClaim, test.text, test.namespace, test.asked)
		got := ""
		if err == nil {
			got = subject.Namespace + "/" + subject.Name
		}
		if got != test.want {
			t.Errorf("%q in %q: %q (%v), want %q", test.text, test.namespace, got, err, test.want)
		}
	}
}

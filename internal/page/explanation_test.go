package page

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/model"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// explaining serves the pages of a cluster whose objects are explained by a function.
func explaining(t *testing.T, visible Visible, explain func(context.Context, ExplainedObject) (*Explanation, error)) http.Handler {
	t.Helper()
	cluster := parseCluster(testClusterRows(t))
	made, err := ClusterHandlers(Config{
		MetricsPath: "/metrics", Log: slog.New(slog.DiscardHandler), Visible: visible, Explanation: explain,
		Cluster: func() *model.Cluster { return cluster }, Now: func() time.Time { return noon },
	})
	if err != nil {
		t.Fatal(err)
	}
	return muxOf(made)
}

// testExplanation is an explanation with everything that there can be, and long names.
func testExplanation() *Explanation {
	device := "gpu.nvidia.com/" + strings.Repeat("node-", 20) + "/gpu-0"
	return &Explanation{
		Pending: true, Conclusion: "Pod llm/pretrain-0 is pending since 10:00 UTC (2 h 0 min): no matching device is free",
		Evidence: []words.Fact{{Label: "asked", Text: "8 devices of class gpu.nvidia.com, by request gpus"}, {Label: "held", Text: "8 by team/" + strings.Repeat("claim-", 40)}},
		Remedies: []string{"delete the claim: `kubectl delete resourceclaim -n team " + strings.Repeat("claim-", 20) + "`", "or wait"},
		Events:   []string{"kubelet, 2 times, last 1 min ago: Failed to prepare " + device},
		Report:   "Pod llm/pretrain-0 is pending\n\n  Devices:\n    " + device + "\n",
	}
}

// The pages of pods and claims lead with what explain says, whatever the object's state.
// If there is no explanation, they show what the rows have, and say why.
func TestExplanationsOnPages(t *testing.T) {
	known := &Explanation{
		Pending: true, Conclusion: "Pod a/b is pending: <no> device", Evidence: []words.Fact{{Label: "asked", Text: "16 devices"}},
		Remedies: []string{"look at `kubectl get <x>` first", "or wait"}, Events: []string{"kubelet, 2 times"}, Report: "Whole\n  report",
	}
	for _, test := range []struct {
		name, path string
		answer     *Explanation
		err        error
		status     int
		wants      []string
		hides      string
	}{
		{"pending pod", "/pod?namespace=llm&name=pretrain-0", known, nil, 200, []string{
			`<p class="conclusion pending" id="conclusion">Pod a/b is pending: &lt;no&gt; device</p>`, "<dt>asked</dt><dd>16 devices</dd>",
			"<li>look at <code>kubectl get &lt;x&gt;</code> first</li>", "kubelet, 2 times", ">Whole\n  report</pre>", "asks for 8",
		}, "Wait for the holders"},
		{"pod of which there are no rows", "/pod?namespace=llm&name=running", &Explanation{Conclusion: "Pod runs"}, nil, 200, []string{`<p class="conclusion" id="conclusion">Pod runs</p>`}, "Pending claims</h2>"},
		{"claim", "/claim?namespace=llm&name=x", known, nil, 200, []string{"ResourceClaim llm/x", "Pod a/b is pending"}, ""},
		{"busy", "/pod?namespace=llm&name=pretrain-0", nil, errors.New("others are explained"), 200, []string{"There is no explanation now: others are explained.", "Wait for the holders"}, "Whole report"},
		{"busy without rows", "/pod?namespace=llm&name=x", nil, errors.New("others are explained"), 404, []string{"Others are explained."}, "Whole report"},
		{"unknown", "/pod?namespace=llm&name=x", nil, &Refusal{404, "there is no pod llm/x; did you mean llm/y?"}, 404, []string{"There is no pod llm/x; did you mean llm/y?</p>"}, "no pending claim, and"},
	} {
		t.Run(test.name, func(t *testing.T) {
			site := explaining(t, nil, func(_ context.Context, of ExplainedObject) (*Explanation, error) {
				if of.Namespace != "llm" || of.NamespaceOnly {
					t.Errorf("asked for %+v", of)
				}
				return test.answer, test.err
			})
			status, text := get(t, site, test.path)
			if status != test.status {
				t.Errorf("status %d, want %d", status, test.status)
			}
			for _, want := range test.wants {
				if !strings.Contains(text, want) {
					t.Errorf("the page does not say %q", want)
				}
			}
			if test.hides != "" && strings.Contains(text, test.hides) {
				t.Errorf("the page says %q", test.hides)
			}
		})
	}
}

// What a reader may not see is not explained to them, and explanations for a reader of
// one namespace are about that one alone.
func TestExplanationsForLimitedReaders(t *testing.T) {
	var asked []ExplainedObject
	site := explaining(t, only("science"), func(_ context.Context, of ExplainedObject) (*Explanation, error) {
		asked = append(asked, of)
		return &Explanation{Conclusion: "secret"}, nil
	})
	for path, want := range map[string]int{"/pod?namespace=llm&name=pretrain-0": 404, "/claim?namespace=llm&name=x": 404, "/pod": 404} {
		if status, text := get(t, site, path); status != want || strings.Contains(text, "secret") {
			t.Errorf("%s gives %d", path, status)
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
	if status, _ := get(t, site, "/pod?namespace=science&name=fold-0"); status != 200 || len(asked) != 1 || !asked[0].NamespaceOnly {
		t.Errorf("status %d, asked for %+v", status, asked)
	}
}

// A reader who leaves ends the explanation.
func TestExplanationsEndWithTheRequest(t *testing.T) {
	ended := make(chan struct{})
	site := explaining(t, nil, func(ctx context.Context, _ ExplainedObject) (*Explanation, error) {
		<-ctx.Done()
		close(ended)
		return nil, ctx.Err()
	})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/pod?namespace=llm&name=x", nil))
	<-ended
}

package explain_test

import (
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/clusterread"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/explain"
)

// TestSlowList reads a cluster whose claims are not listed in time at first, while other
// collections are: they are read again within the time limit.
func TestSlowList(t *testing.T) {
	var refused atomic.Int32
	server, err := apiserver.Start(t.Context(), apiserver.Options{Intercept: func(request apiserver.Request) int {
		if request.Resource == "resourceclaims" && refused.Add(1) <= 4 {
			return http.StatusGatewayTimeout
		}
		return 0
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "gpus", UID: "uid-1"}}
	if err := server.Put(claim); err != nil {
		t.Fatal(err)
	}
	reader := clusterread.Reader{
		Config: server.Config(), Clock: clock.System(), Log: slog.New(slog.DiscardHandler), Stderr: io.Discard, Timeout: time.Minute,
	}
	subject := clusterread.Subject{Kind: clusterread.KindClaim, Namespace: "team-a", Name: "gpus"}
	facts, err := reader.Facts(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := explain.Explain(*facts, subject); err != nil || report.State != explain.StateUnused || len(report.NotRead) > 0 {
		t.Errorf("state %q, not read %v, error %v", report.State, report.NotRead, err)
	}
	if got := refused.Load(); got < 5 {
		t.Errorf("the claims were requested %d times", got)
	}
}

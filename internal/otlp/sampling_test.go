package otlp

import (
	"bytes"
	"fmt"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/dra-exporter/dra-exporter/collector/trace"
	"github.com/dra-exporter/dra-exporter/internal/otlp/settings"
)

// What is exported is what Sampled says, whatever the sampler, and about the
// ratio that is set.
func TestTraceSampling(t *testing.T) {
	for name, test := range map[string]struct {
		sampler     sdktrace.Sampler
		least, most int // of 1,000
	}{
		"none given":   {nil, 1000, 1000},
		"always":       {sdktrace.ParentBased(sdktrace.AlwaysSample()), 1000, 1000},
		"never":        {sdktrace.NeverSample(), 0, 0},
		"ratio":        {sdktrace.TraceIDRatioBased(0.25), 200, 300},
		"parent ratio": {sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.25)), 200, 300},
	} {
		t.Run(name, func(t *testing.T) {
			tracing := startTracing(t, settings.ProtocolGRPC, func(o *tracerOptions) { o.Sampler = test.sampler })
			offered := lifecycles(0, 1000)
			tracing.Offer(offered)
			wanted := map[trace.ID]bool{}
			for i := range offered {
				if id := offered[i].ID(); tracing.Sampled(id) {
					wanted[id] = true
				}
			}
			if len(wanted) < test.least || len(wanted) > test.most {
				t.Errorf("%d of 1,000 are sampled, want %d to %d", len(wanted), test.least, test.most)
			}
			for _, span := range tracing.await(t, 5*len(wanted)) {
				if !wanted[trace.ID(span.GetTraceId())] {
					t.Fatalf("%x arrived and is not sampled", span.GetTraceId())
				}
			}
			tracing.lost(t, nil)
		})
	}
}

// UUIDs of version 4 would not do as trace ids: sampling by ratio takes bits
// of them for random that are not. Ours are, in all bytes that it looks at.
func TestTraceIDsAreEvenlySpread(t *testing.T) {
	sampler := sdktrace.TraceIDRatioBased(0.01)
	sampled := 0
	const n = 100_000
	for i := range n {
		id := trace.NewID(fmt.Sprintf("9c5b94b1-35ad-49bb-b118-8e8fc24a%04x", i%65536), fmt.Sprint(i))
		if bytes.Equal(id[:], make([]byte, 16)) {
			t.Fatal("an id of zeros")
		}
		if sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: [16]byte(id)}).Decision == sdktrace.RecordAndSample {
			sampled++
		}
	}
	if sampled < 800 || sampled > 1200 {
		t.Errorf("%d of %d are sampled by a ratio of 0.01", sampled, n)
	}
}

package fit

import (
	"fmt"
	"testing"
)

// BenchmarkFit reads a cluster of 10,000 nodes with eight GPUs each over HTTP, and
// answers for a Job whose pods request two. The server's work is included.
func BenchmarkFit(b *testing.B) {
	f := newFitTest(b)
	for i := range 10_000 {
		name := fmt.Sprintf("node-%05d", i)
		f.put(node(name), gpus(name, 8))
	}
	for b.Loop() {
		report, err := f.fit(job(8, ""))
		if err != nil {
			b.Fatal(err)
		}
		if report.Pods != 40_000 {
			b.Fatalf("%d pods", report.Pods)
		}
	}
}

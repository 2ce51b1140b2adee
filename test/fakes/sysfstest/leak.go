package sysfstest

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/device"
)

// Eventually waits until what is asked for holds.
func Eventually(t testing.TB, condition string, holds func() bool) {
	t.Helper()
	for range 2000 {
		if holds() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", condition)
}

// LeavesNothing reads the readers that a look finds ten thousand times, each
// time after another look, and fails if that leaves files open or memory in
// use.
func LeavesNothing(t testing.TB, look func() []device.Reader) {
	t.Helper()
	sample := func(times int) {
		for i := range times {
			tier := device.Fast
			if i%30 == 0 {
				tier = device.Slow
			}
			for _, r := range look() {
				if _, err := r.Read(t.Context(), tier); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	sample(100)
	files, bytes := openFiles(t), heap()
	times := 10_000
	if testing.Short() {
		times = 500
	}
	sample(times)
	if now := openFiles(t); now > files {
		t.Errorf("%d files were open and %d are", files, now)
	}
	if now := heap(); now > bytes+1<<20 {
		t.Errorf("%d bytes were in use and %d are", bytes, now)
	}
}

// openFiles is how many files the process has open.
func openFiles(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

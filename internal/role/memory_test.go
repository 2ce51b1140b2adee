package role

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestMemoryLimitOfTheCgroup(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64 // 0: none
	}{
		"nothing is mounted":        {nil, 0},
		"a container, version 2":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "805306368\n"}, 805306368},
		"without a limit":           {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"a service":                 {map[string]string{"proc/self/cgroup": "0::/system.slice/a.service\n", "sys/fs/cgroup/system.slice/a.service/memory.max": "max\n", "sys/fs/cgroup/system.slice/memory.max": "1000000\n"}, 1000000},
		"the smallest counts":       {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "5000\n", "sys/fs/cgroup/a/b/memory.max": "7000\n"}, 5000},
		"a container, version 1":    {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/kubepods/pod1/a\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "201326592\n"}, 201326592},
		"version 1 without a limit": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"both":                      {map[string]string{"proc/self/cgroup": "4:memory:/\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "3000\n", "sys/fs/cgroup/memory.max": "max"}, 3000},
		"another namespace's path":  {map[string]string{"proc/self/cgroup": "0::/../../a\n", "sys/fs/cgroup/memory.max": "4000\n", "a/memory.max": "1"}, 4000},
		"invalid":                   {map[string]string{"proc/self/cgroup": "x\n0::\n::\n", "sys/fs/cgroup/memory.max": "-1"}, 0},
		"too deep":                  {map[string]string{"proc/self/cgroup": "0::" + strings.Repeat("/a", 5000) + "\n", "sys/fs/cgroup/memory.max": "4000\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for path, text := range c.files {
				full := filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, limited := cgroupMemoryLimit(root)
			if limited != (c.want > 0) || limited && got != c.want {
				t.Errorf("got %d, %t; want %d", got, limited, c.want)
			}
		})
	}
}

// TestGoMemoryLimit checks that GOMEMLIMIT takes precedence over the limit of the cgroup.
func TestGoMemoryLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	t.Setenv("GOMEMLIMIT", "3GiB")
	LimitMemory(0.5, logger)
	if now := debug.SetMemoryLimit(-1); now != before || log.Len() != 0 {
		t.Errorf("the limit is %d: %s", now, log.String())
	}
	t.Setenv("GOMEMLIMIT", "")
	limit, limited := cgroupMemoryLimit("/")
	LimitMemory(0.5, logger)
	want := before
	if limited {
		want = int64(float64(limit) * 0.5)
	}
	if now := debug.SetMemoryLimit(-1); now != want || strings.Count(log.String(), "\n") > 1 || limited == (log.Len() == 0) {
		t.Errorf("the limit is %d, not %d of %d: %s", now, want, int64(math.MaxInt64), log.String())
	}
}

func TestSeriesWithin(t *testing.T) {
	const chart = 768 << 20
	for memory, want := range map[int64]int{
		1: 10_000, 100 << 20: 10_240, chart * 9 / 10: 70_778, 4 << 30: 419_430, 1 << 40: 1_000_000, math.MaxInt64: 100_000,
	} {
		if got := seriesWithin(memory); got != want {
			t.Errorf("with %d bytes a family may have %d series, want %d", memory, got, want)
		}
	}
}

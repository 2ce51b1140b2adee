package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/promslog"
	"k8s.io/klog/v2"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device/exporter"
	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/ratelog"
)

// TestFloodOfLines has sources that change their state all the time, events of devices,
// files that come and go in the folder of drivers, and client-go's lines, in the log of a
// role: it has a bounded number of lines, the first ones of each source, and the number of
// the others.
func TestFloodOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := &logBuffer{}
		flags := &webFlags{log: &promslog.Config{Writer: text, Level: promslog.NewLevel(), Format: promslog.NewFormat()}}
		log := flags.logger()
		defer discardLogs()
		folder := t.TempDir()
		drivers, err := exporter.New(exporter.Options{Folder: folder, Clock: clock.System(), Log: log})
		if err != nil {
			t.Fatal(err)
		}
		var trackers []*source.Tracker
		for i := range 20 {
			trackers = append(trackers, source.NewTracker(fmt.Sprint("source-", i), log, clock.System(), nil))
		}
		logged := 0
		for round := range 20 { // of a second
			for i, tracker := range trackers {
				tracker.Report(&source.Failure{Reason: source.Reason(fmt.Sprint("reason-", round)), Err: errors.New("broken")})
				logged++
				for n := range 4 {
					log.LogAttrs(t.Context(), slog.LevelWarn, "device of a claim matches no hardware", slog.Int("device", 100*i+n))
					logged++
				}
			}
			for i := range 50 {
				if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d-%d.sock", round, i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				klog.Background().Info("request", "n", i)
			}
			_, _ = drivers.Readers(t.Context()) // there is no socket
			logged += 50
			time.Sleep(time.Second)
		}
		lines := strings.Count(text.String(), "\n")
		if lines < 40 || lines > 2*ratelog.InTotal {
			t.Errorf("%d lines are written of %d", lines, logged)
		}
		for i := range trackers {
			if !strings.Contains(text.String(), fmt.Sprintf("component=source-%d ", i)) {
				t.Errorf("the log does not have source %d", i)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		_, dropped, _ := strings.Cut(text.String(), "log lines were dropped")
		for _, want := range []string{"1590 × device of a claim matches no hardware", "990 × a file is not used as a driver's socket"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the log does not say %q, but %q", want, dropped)
			}
		}
	})
}

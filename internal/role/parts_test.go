package role

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/price"
)

// TestPartsThatHang checks that Wait returns when all parts have ended, and after a
// bounded time if one never does, whose name it logs.
func TestPartsThatHang(t *testing.T) {
	for name, c := range map[string]struct {
		ends   time.Duration // of the slower part; 0: never
		waited time.Duration
		logged string // empty: nothing
	}{
		"all end":   {ends: time.Second, waited: time.Second},
		"one hangs": {waited: endTimeout, logged: "parts=cdi after=2.5s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var parts Parts
				var log strings.Builder
				release := make(chan struct{})
				parts.Go("kubelet", func() { time.Sleep(time.Millisecond) })
				parts.Go("cdi", func() {
					if c.ends > 0 {
						time.Sleep(c.ends)
						return
					}
					<-release
				})
				began := time.Now()
				parts.Wait(slog.New(slog.NewTextHandler(&log, nil)))
				if waited := time.Since(began); waited != c.waited {
					t.Errorf("it waits for %s, want %s", waited, c.waited)
				}
				if got := log.String(); (got == "") != (c.logged == "") || !strings.Contains(got, c.logged) {
					t.Errorf("the log is %q", got)
				}
				close(release)
			})
		})
	}
}

// TestReloadThatHangs has a file whose read does not return for a while, and then for
// ever: the list in use stays, the log names the file, and a list that comes late is
// used.
func TestReloadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		first, second := &price.Prices{Currency: "EUR"}, &price.Prices{Currency: "EUR", Rules: []price.Rule{{PerHour: 1}}}
		list, err := newPriceList("/prices.yaml", first, prometheus.NewRegistry(), clock.System(), slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan loaded)
		list.load = func(string) (*price.Prices, error) { answer := <-answers; return answer.list, answer.err }
		ctx, stop := context.WithCancel(t.Context())
		reloads := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range reloads {
				list.reload(ctx)
			}
		}()
		reloads <- struct{}{}
		time.Sleep(reloadTimeout + time.Second)
		synctest.Wait()
		if got := log.String(); list.prices() != first || strings.Count(got, "not reloaded") != 1 || !strings.Contains(got, "/prices.yaml") {
			t.Errorf("while it hangs, the list is %+v, and the log\n%s", list.prices(), got)
		}
		answers <- loaded{list: second}
		synctest.Wait()
		if list.prices() != second {
			t.Errorf("when it has come, the list is %+v", list.prices())
		}
		reloads <- struct{}{}
		answers <- loaded{err: errors.New("broken")}
		synctest.Wait()
		if got := log.String(); list.prices() != second || !strings.Contains(got, "error=broken") {
			t.Errorf("after a broken one the list is %+v, and the log\n%s", list.prices(), got)
		}
		reloads <- struct{}{}
		time.Sleep(time.Hour)
		close(reloads)
		stop()
		<-ended
		close(answers)
	})
}

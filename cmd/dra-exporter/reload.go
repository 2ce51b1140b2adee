package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// onHangup calls reload at each SIGHUP until ctx ends, in place of ending the
// process.
func onHangup(ctx context.Context, reload func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				reload()
			}
		}
	}()
}

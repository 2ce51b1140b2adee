package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// outliveHangup keeps SIGHUP from ending a role until ctx ends. By custom it asks
// for the configuration to be read again.
func outliveHangup(ctx context.Context, log *slog.Logger) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				log.Info("SIGHUP: the web configuration, certificates and tokens are read again whenever they are used; flags, and the files that other flags name, are read at the start alone")
			}
		}
	}()
}

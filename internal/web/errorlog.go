package web

import (
	"log"
	"log/slog"
	"strings"

	"github.com/dra-exporter/dra-exporter/internal/logging"
)

// newErrorLog is what net/http logs to. A panic is a defect of ours, and logged
// whole.
func newErrorLog(to *slog.Logger) *log.Logger {
	return log.New(&errorLog{
		tls: logging.Limit(to, logging.TLS), http: logging.Limit(to, logging.HTTP), ours: to,
	}, "", 0)
}

// errorLog logs each line that is written to it by its kind.
type errorLog struct{ tls, http, ours *slog.Logger }

func (e *errorLog) Write(line []byte) (int, error) {
	text := strings.TrimRight(string(line), "\n")
	switch {
	case strings.HasPrefix(text, "http: TLS handshake error"):
		e.tls.Warn(text)
	case strings.HasPrefix(text, "http: panic serving"):
		e.ours.Error(text)
	default:
		e.http.Warn(text)
	}
	return len(line), nil
}

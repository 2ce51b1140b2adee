package demo

import (
	"context"
	_ "embed" // for the recorded week
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// weekJSON are queries of Prometheus and their results: those of advise, over a week of
// the demo's claims. TestDemoWeek of test/suites/prometheus records them.
//
//go:embed week.json
var weekJSON []byte

// recordedWeek stands in for a Prometheus with a week of history: it has the recorded
// answers to instant queries, and no others.
type recordedWeek struct {
	url     string
	answers map[string]json.RawMessage // by query
	serving sync.WaitGroup
}

// serve begins to serve until ctx ends.
func (w *recordedWeek) serve(ctx context.Context) error {
	if err := json.Unmarshal(weekJSON, &w.answers); err != nil {
		return fmt.Errorf("read the recorded week: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.url = "http://" + listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(w.answer), ReadHeaderTimeout: 5 * time.Second}
	w.serving.Go(func() { _ = server.Serve(listener) }) // it ends with Close
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return nil
}

func (w *recordedWeek) answer(writer http.ResponseWriter, request *http.Request) {
	result, ok := w.answers[request.FormValue("query")]
	writer.Header().Set("Content-Type", "application/json")
	if request.URL.Path != "/api/v1/query" || !ok {
		writer.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(writer, `{"status":"error","errorType":"execution","error":"the recorded week of the demo answers dra-exporter advise alone, without -n and --window"}`)
		return
	}
	_, _ = fmt.Fprintf(writer, `{"status":"success","data":{"resultType":"vector","result":%s}}`, result)
}

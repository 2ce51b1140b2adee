package compare

import (
	"bytes"
	"fmt"
	"os"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// ReadMetrics decodes what the collector's file exporter has written, one
// request per line. It skips an incomplete last line: the collector is writing
// it, or was killed. Any other invalid line is an error.
func ReadMetrics(file string) ([]pmetric.Metrics, error) {
	return read(file, (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics)
}

// ReadTraces is ReadMetrics for traces.
func ReadTraces(file string) ([]ptrace.Traces, error) {
	return read(file, (&ptrace.JSONUnmarshaler{}).UnmarshalTraces)
}

func read[T any](file string, decode func([]byte) (T, error)) ([]T, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var all []T
	for number := 1; len(text) > 0; number++ {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		request, err := decode(line)
		if err != nil && !whole {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", file, number, err)
		}
		all, text = append(all, request), rest
	}
	return all, nil
}

package scrape

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// reasons returns the rows of the state set with one current reason.
func reasons(now string) (rows []string) {
	for _, reason := range AttributionReasons() {
		value := 0
		if reason == now {
			value = 1
		}
		rows = append(rows, fmt.Sprintf("dra_exporter_process_attribution{reason=%q} %d", reason, value))
	}
	return rows
}

func TestReasonIsOne(t *testing.T) {
	ok := reasons("ok")
	for name, test := range map[string]struct {
		rows []string
		want string
	}{
		"one reason":         {ok, ""},
		"two reasons":        {append(slices.Clone(ok[:5]), `dra_exporter_process_attribution{reason="unsupported"} 1`), `["ok" "unsupported"]`},
		"no reason":          {reasons(""), "because of []"},
		"the present reason": {ok[3:4], ""},
		"another is missing": {ok[1:], ""},
		"an unknown reason":  {append(slices.Clone(ok), `dra_exporter_process_attribution{reason="mood"} 0`), "mood"},
	} {
		t.Run(name, func(t *testing.T) {
			err := errors.Join(OneReason(page(t, 0, test.rows...))...)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("broken: %v\nwant: %q", err, test.want)
			}
		})
	}
}

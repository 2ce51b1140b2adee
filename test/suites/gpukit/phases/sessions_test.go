package phases

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/compare"
	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
)

// A session fails that leaves a file open or does not end. One that the library
// refuses is not reported.
func TestJudge(t *testing.T) {
	good, refused := &direct.Return{Text: "Success"}, direct.Return{Code: 2, Text: "Invalid"}
	three, four := 3, 4
	for _, c := range []struct {
		session       direct.Session
		want          compare.Status
		other, detail string
	}{
		{
			direct.Session{Count: good, GPUs: 8, Shutdown: good, Before: direct.Moment{References: &three},
				During: direct.Moment{Files: []string{"nvidia0", "nvidia0", "nvidiactl"}, References: &four}},
			compare.Passed, "opens nvidia0 (2 times), nvidiactl", "references of the driver: 3 before, 4 during, not readable after",
		},
		{direct.Session{Count: &refused, Shutdown: good}, compare.Passed, "opens no /dev/nvidia*", "nvmlDeviceGetCount_v2: 2 (Invalid), 0 GPUs; "},
		{direct.Session{Count: good, Shutdown: &refused}, compare.Failed, "opens no /dev/nvidia*", "nvmlShutdown: 2 (Invalid); "},
		{
			direct.Session{Count: good, Shutdown: good, After: direct.Moment{Files: []string{"nvidiactl"}}},
			compare.Failed, "opens no /dev/nvidia*", "open after it: nvidiactl; ",
		},
		{direct.Session{Init: refused}, compare.NotReported, "opens no /dev/nvidia*", "nvmlInitWithFlags: 2 (Invalid); open after"},
	} {
		var r compare.Result
		judge(&r, c.session)
		if r.Status != c.want || r.Other != c.other || !strings.Contains(r.Detail, c.detail) {
			t.Errorf("%+v: %+v", c.session, r)
		}
	}
}

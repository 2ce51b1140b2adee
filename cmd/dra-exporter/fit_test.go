package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric/metrictest"
)

// What a pod that requests two devices of the demo would wait for: one of three is held
// soon after the start, and a pool is not complete.
func TestFitOfTheDemo(t *testing.T) {
	_, _, tour := touringDemo(t)
	kubeconfig := ""
	for kubeconfig == "" && tour.Scan() {
		if found := regexp.MustCompile(`--kubeconfig=(\S+)`).FindStringSubmatch(tour.Text()); found != nil {
			kubeconfig = found[1]
		}
	}
	output := ""
	for patience := 0; patience < 200; patience++ {
		command := program(t.Context(), "fit", "--kubeconfig="+kubeconfig, "--filename=testdata/fit.yaml")
		text, err := command.CombinedOutput()
		if err == nil || command.ProcessState.ExitCode() != exitUnfit {
			t.Fatalf("%v\n%s", err, text)
		}
		if output = string(text); strings.Contains(output, "now: held") {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	metrictest.CompareGolden(t, "testdata/fit.txt", output)
	for _, flags := range [][]string{{"-f", "-"}, {"--filename", "-"}, {"--filename=-"}, {"-f-"}} {
		command := program(t.Context(), append([]string{"fit", "--kubeconfig=" + kubeconfig}, flags...)...)
		manifest, err := os.Open("testdata/fit.yaml")
		if err != nil {
			t.Fatal(err)
		}
		defer manifest.Close()
		command.Stdin = manifest
		if text, err := command.CombinedOutput(); err == nil || command.ProcessState.ExitCode() != exitUnfit {
			t.Errorf("%s: %v\n%s", flags, err, text)
		}
	}
}

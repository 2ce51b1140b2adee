package e2e

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestCheck runs the agent's own check in the agent's container, and the other
// checks from outside. They must report no failure without a fault, and name
// each missing permission.
func TestCheck(t *testing.T) {
	covers(t)
	t.Run("node", testCheckNode)
	t.Run("cluster", testCheckCluster)
	t.Run("without-permissions", testCheckWithoutPermissions)
	t.Run("agent", testCheckAgent)
}

// checkReport is the JSON report of check.
type checkReport struct {
	Failures int
	Findings []struct{ Area, Subject, Outcome, Text, Remedy, Page string }
}

// checkReportOf decodes a report. Where both outputs are one, progress lines
// precede it.
func checkReportOf(t *testing.T, output string) (report checkReport) {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(output[max(0, strings.Index(output, "{")):]))
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("no report: %v\n%s", err, output)
	}
	for _, f := range report.Findings {
		if (f.Outcome == "warning" || f.Outcome == "failure") && (f.Remedy == "" || f.Page == "") {
			t.Errorf("no remedy: %+v", f)
		}
	}
	return report
}

// checkFinding fails the test unless there is a finding of this area, subject
// and outcome whose text contains words.
func (r checkReport) checkFinding(t *testing.T, area, subject, outcome, words string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Area == area && f.Subject == subject && f.Outcome == outcome && strings.Contains(f.Text+" "+f.Remedy, words) {
			return
		}
	}
	t.Errorf("no %s about %s, %s, with %q in %+v", outcome, area, subject, words, r.Findings)
}

// checkFromOutside runs check outside the cluster, with a kubeconfig.
func checkFromOutside(t *testing.T, args ...string) (report checkReport, code int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	command := exec.CommandContext(ctx, agentBinary(), append(append([]string{"check"}, args...), "--output=json")...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return checkReportOf(t, string(output)), command.ProcessState.ExitCode()
}

func testCheckNode(t *testing.T) {
	pod, err := agentPod(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	output, err := shared.Kubectl(t.Context(), "exec", "--namespace", agentNamespace, pod.Name, "--", "/dra-exporter", "check", "--output=json")
	report := checkReportOf(t, output)
	if err != nil || report.Failures > 0 {
		t.Errorf("the shipped agent has %d failures (%v): %+v", report.Failures, err, report.Findings)
	}
	report.checkFinding(t, "this host", "flags", "ok", "--device.source=simulated")
	report.checkFinding(t, "this host", "program", "ok", "in a container, as uid 0, without capabilities")
	report.checkFinding(t, "kubelet", "PodResources", "ok", "pods, ")
	report.checkFinding(t, "CDI", "specifications", "ok", "device")
	report.checkFinding(t, "API server", "version", "ok", "v1.")
	report.checkFinding(t, "API server", "permissions", "ok", "7 of 7")
	report.checkFinding(t, "API server", "node name", "ok", shared.NodeName())
	report.checkFinding(t, "devices", "simulated", "ok", " × ")
	report.checkFinding(t, "matching", "gpu.example.com", "ok", "4 of 4 devices matched by uuid")
	report.checkFinding(t, "matching", "gpu.nvidia.com", "ok", "matched by")
	report.checkFinding(t, "matching", "share.example.com", "skipped", "no hardware values of gpu-0, gpu-1")
	report.checkFinding(t, "sharing", "processes", "skipped", "hostPID")
	report.checkFinding(t, "http://127.0.0.1:9420/metrics", shared.NodeName(), "ok", "sources up")
}

func testCheckCluster(t *testing.T) {
	report, code := checkFromOutside(t, "cluster", "--kubeconfig="+shared.Kubeconfig())
	if code != 0 {
		t.Errorf("a well cluster fails: %+v", report.Findings)
	}
	report.checkFinding(t, "API server", "resource.k8s.io", "ok", "v1")
	report.checkFinding(t, "API server", "permissions", "ok", "26 of 26")
	report.checkFinding(t, "cluster", "gpu.example.com", "ok", "4 devices in 1 pool on 1 node")
	report.checkFinding(t, "cluster", "device classes", "ok", "")
}

// testCheckWithoutPermissions runs check with a service account that has no
// role.
func testCheckWithoutPermissions(t *testing.T) {
	path := kubeconfigWithoutPermissions(t)
	report, code := checkFromOutside(t, "cluster", "--kubeconfig="+path)
	if code != 1 {
		t.Errorf("exit code %d of a cluster of which nothing may be read", code)
	}
	report.checkFinding(t, "API server", "list resourceclaims.resource.k8s.io", "failure", "dra-exporter-cluster")
	report.checkFinding(t, "API server", "watch pods", "failure", "dra-exporter-cluster")
	report.checkFinding(t, "cluster", "drivers", "skipped", "cannot be read")
	report, code = checkFromOutside(t, "node", "--node.name="+shared.NodeName(), "--kubeconfig="+path, "--kubelet.pod-resources-socket="+shared.KubeletSocket(), "--cdi.dir="+shared.CDIDir())
	if code != 1 {
		t.Errorf("exit code %d of a node of which nothing may be read", code)
	}
	report.checkFinding(t, "API server", "get resourceclaims.resource.k8s.io", "failure", "dra-exporter-node")
	report.checkFinding(t, "API server", "list resourceslices.resource.k8s.io", "failure", "dra-exporter-node")
	report.checkFinding(t, "kubelet", "PodResources", "ok", "pods, ")
	report.checkFinding(t, "matching", "published devices", "skipped", "cannot be read")
}

// kubeconfigWithoutPermissions returns a kubeconfig with a new token of the
// account default, which has no role.
func kubeconfigWithoutPermissions(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(shared.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token(t, "default", "default")}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func testCheckAgent(t *testing.T) {
	url, err := agentURL(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report, code := checkFromOutside(t, "agent", url)
	if code != 0 {
		t.Errorf("the shipped agent fails: %+v", report.Findings)
	}
	report.checkFinding(t, url, shared.NodeName(), "ok", "sources up")
}

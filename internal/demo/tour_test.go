package demo

import (
	"os/exec"
	"testing"
)

// If the page can be read from another machine, no command is offered, because
// it would not work there.
func TestExplainCommandIsLocal(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:9421": true, "localhost:9421": true, "[::1]:9421": true,
		":9421": false, "0.0.0.0:9421": false, "[::]:9421": false, "192.0.2.1:9421": false, "demo.example.com:9421": false,
	} {
		if got := ExplainCommand(address, "/bin/dra-exporter", "/tmp/of the demo's/kubeconfig"); (got != "") != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	answer, err := exec.Command("sh", "-c", "printf %s "+shellQuoted("/tmp/of the demo's/kubeconfig")).Output()
	if err != nil || string(answer) != "/tmp/of the demo's/kubeconfig" {
		t.Errorf("the shell reads %q, %v", answer, err)
	}
}

package main

import (
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The demo's page has a command for each pod. It works in a shell, in any
// directory, and its output has the pod's name.
func TestDemoExplainCommandWorks(t *testing.T) {
	_, cluster := runningDemo(t)
	var commands []string
	for patience := 0; len(commands) == 0; patience++ {
		if patience == 300 {
			t.Fatal("the page has no command")
		}
		time.Sleep(100 * time.Millisecond)
		_, page := get(t, cluster+"/")
		for _, found := range regexp.MustCompile(`<p class="command"><code>(.*?)</code>`).FindAllStringSubmatch(page, -1) {
			commands = append(commands, html.UnescapeString(found[1]))
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", commands[0])
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), asProgram+"=1")
	answer, err := command.CombinedOutput()
	pod := commands[0][strings.LastIndex(commands[0], " ")+1:]
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(answer)), " "), "Pod "+pod+" is pending since") {
		t.Errorf("%s\n%v\n%s", commands[0], err, answer)
	}
}

// If the page can be read from another machine, no command is offered, because
// it would not work there.
func TestDemoExplainCommandIsLocal(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:9421": true, "localhost:9421": true, "[::1]:9421": true,
		":9421": false, "0.0.0.0:9421": false, "[::]:9421": false, "192.0.2.1:9421": false, "demo.example.com:9421": false,
	} {
		if got := explainDemo(address, "/tmp/of the demo's/kubeconfig"); (got != "") != want {
			t.Errorf("%s: %q", address, got)
		}
	}
	answer, err := exec.Command("sh", "-c", "printf %s "+shellQuoted("/tmp/of the demo's/kubeconfig")).Output()
	if err != nil || string(answer) != "/tmp/of the demo's/kubeconfig" {
		t.Errorf("the shell reads %q, %v", answer, err)
	}
}

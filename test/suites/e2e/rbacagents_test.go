package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

// restrictedAgent is an agent on the host whose account lacks one permission
// of its role, or none.
type restrictedAgent struct {
	role    string
	missing permission // zero: nothing
	url     string     // with a slash at the end
	log     string     // path
	process *exec.Cmd
	ended   chan struct{} // closed once the process has ended
}

// startRestrictedAgents starts an agent that has all permissions of a role,
// which comes first, and one without each of them.
func startRestrictedAgents(t *testing.T, role string, all []permission) []*restrictedAgent {
	t.Helper()
	agents := []*restrictedAgent{{role: role}}
	for _, lacks := range all {
		agents = append(agents, &restrictedAgent{role: role, missing: lacks})
	}
	var accounts strings.Builder
	for i, agent := range agents {
		accounts.WriteString(agent.account(accountName(role, i), all))
	}
	applyFor(t, accounts.String())
	for i, agent := range agents {
		agent.launch(t, accountName(role, i))
	}
	return agents
}

func accountName(role string, i int) string { return fmt.Sprintf("deprived-%s-%d", role, i) }

const restrictedAccount = `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: ` + agentNamespace + `}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: ` + agentNamespace + `}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules:
`

// account returns the manifest of an account with all these permissions except
// for the one that the agent lacks.
func (d *restrictedAgent) account(name string, all []permission) string {
	text := fmt.Sprintf(restrictedAccount, name)
	for _, p := range all {
		if p != d.missing {
			text += fmt.Sprintf("- {apiGroups: [%q], resources: [%q], verbs: [%q]}\n", p.group, p.resource, p.verb)
		}
	}
	return text
}

// launch starts the agent. The client of an agent that may not list does not
// use streaming lists: with them it sends a plain list request only when a
// stream fails.
func (d *restrictedAgent) launch(t *testing.T, account string) {
	t.Helper()
	folder := t.TempDir()
	kubeconfig, err := accountKubeconfig(t.Context(), folder, account)
	if err != nil {
		t.Fatal(err)
	}
	address := porttest.OneAddress(t)
	args := []string{d.role, "--kubeconfig=" + kubeconfig, "--web.listen-address=" + address}
	if d.role == "node" {
		config := filepath.Join(folder, "devices.yaml")
		if err := os.WriteFile(config, []byte(steadyHardware(0.5).yaml()), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--device.source=simulated", "--simulated.config="+config,
			"--kubelet.pod-resources-socket="+shared.KubeletSocket(), "--node.name="+shared.NodeName(), "--cdi.dir="+shared.CDIDir())
	}
	d.url, d.log = "http://"+address+"/", filepath.Join(folder, "log")
	log, err := os.Create(d.log)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.process = exec.Command(agentBinary(), args...)
	d.process.Env = append(os.Environ(), fmt.Sprintf("KUBE_FEATURE_WatchListClient=%t", d.missing.verb != "list"))
	d.process.Stdout, d.process.Stderr = log, log
	if err := d.process.Start(); err != nil {
		t.Fatal(err)
	}
	d.ended = make(chan struct{})
	go func() {
		defer close(d.ended)
		d.process.Wait() // isReady reports if it ended early
	}()
	t.Cleanup(func() {
		d.process.Process.Kill()
		<-d.ended
		if text, err := os.ReadFile(d.log); err == nil && t.Failed() && d.missing == (permission{}) {
			t.Logf("the log of the %s role:\n%s", d.role, text)
		}
	})
}

func (d *restrictedAgent) fetch(ctx context.Context) (*scrape.Page, error) {
	return scrape.Fetch(ctx, d.url+"metrics")
}

// waitReady waits for a first page.
func (d *restrictedAgent) waitReady(t *testing.T) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "the first page", func(ctx context.Context) error {
		select {
		case <-d.ended:
			return cluster.Permanent(fmt.Errorf("it has ended: %s", d.process.ProcessState))
		default:
		}
		_, err := d.fetch(ctx)
		return err
	})
	if err != nil {
		text, _ := os.ReadFile(d.log)
		t.Fatalf("the %s role that cannot %s: %v\n%s", d.role, d.missing, err, text)
	}
}

// waitComplete waits until the agent with all permissions has every source up,
// and a row for each created object and caused event.
func (d *restrictedAgent) waitComplete(t *testing.T) {
	t.Helper()
	var last error // of the page: more helpful than the timeout
	err := cluster.Eventually(t.Context(), "the page of the "+d.role+" role", func(ctx context.Context) error {
		p, err := d.fetch(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, row := range p.Rows("dra_exporter_source_up", nil) {
			if row.Value != 1 {
				errs = append(errs, fmt.Errorf("%s is down", row.Labels["source"]))
			}
		}
		for _, one := range expectedRows(d.role) {
			if !slices.ContainsFunc(rowsOf(p, one.family), func(labels string) bool { return strings.Contains(labels, one.words) }) {
				errs = append(errs, fmt.Errorf("there is no %s with %s", one.family, one.words))
			}
		}
		last = errors.Join(errs...)
		return last
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

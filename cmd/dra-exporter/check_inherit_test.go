package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/check"
)

// fakeProcess is the part of a process in procfs that is read.
type fakeProcess struct{ pid, group, start, line string }

func fakeProcfs(t *testing.T, processes ...fakeProcess) string {
	t.Helper()
	root := t.TempDir()
	for _, p := range processes {
		folder := filepath.Join(root, p.pid)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		stat := p.pid + " (an odd) name) S" + strings.Repeat(" 0", 18) + " " + p.start + " 0 0\n"
		for name, text := range map[string]string{"cgroup": p.group + "\n", "stat": stat, "cmdline": strings.ReplaceAll(p.line, " ", "\x00") + "\x00"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestInheritFlagsOfExporter(t *testing.T) {
	self := fakeProcess{"self", "0::/", "900", "/dra-exporter check"}
	agent := fakeProcess{"1", "0::/", "100", "/dra-exporter node --dcgm.host-engine=engine:5555 --no-device.processes --device.profiling --labels.pod team --labels.pod app"}
	host := fakeProcess{"1", "0::/../../init.scope", "1", "/sbin/init"}
	agentBesideHost := fakeProcess{"4711", "0::/", "100", agent.line}
	theirs := []string{"--dcgm.host-engine=engine:5555", "--no-device.processes", "--device.profiling", "--labels.pod=team", "--labels.pod=app"}
	for name, test := range map[string]struct {
		procfs []fakeProcess
		line   string
		want   []string
	}{
		"its own pid namespace":      {[]fakeProcess{self, agent}, "check", theirs},
		"the role by name":           {[]fakeProcess{self, agent}, "check node", theirs},
		"the node's pid namespace":   {[]fakeProcess{self, host, agentBesideHost}, "check", theirs},
		"what was given stays":       {[]fakeProcess{self, agent}, "check --dcgm.host-engine=other:1 --labels.pod=x", theirs[1:3]},
		"no flags":                   {[]fakeProcess{self, {"1", "0::/", "1", "/dra-exporter node"}}, "check", []string{}},
		"another role":               {[]fakeProcess{self, agent}, "check cluster", nil},
		"the cluster role":           {[]fakeProcess{self, {"1", "0::/", "1", "/dra-exporter cluster --pending.budget=0.5"}}, "check cluster", []string{"--pending.budget=0.5"}},
		"another program":            {[]fakeProcess{self, {"1", "0::/", "1", "/bin/sh node"}}, "check", nil},
		"another container's":        {[]fakeProcess{self, {"1", "0::/../other", "1", "/dra-exporter node --x"}}, "check", nil},
		"a later process of a login": {[]fakeProcess{self, {"7", "0::/", "1", "-bash"}, agentBesideHost}, "check", nil},
		"asking an agent":            {[]fakeProcess{self, agent}, "check agent http://a", nil},
		"another command":            {[]fakeProcess{self, agent}, "node", nil},
		"Parse reports a wrong line": {[]fakeProcess{self, agent}, "check --wrong", nil},
		"no procfs":                  {nil, "check", nil},
	} {
		line := strings.Fields(test.line)
		procfs := fakeProcfs(t, test.procfs...)
		whole, inherited, err := inherit(newApp, func() []string { return check.ContainerCommand(procfs) }, line)
		if err != nil || !slices.Equal(inherited, test.want) || (inherited == nil) != (test.want == nil) || !slices.Equal(whole, append(line, test.want...)) {
			t.Errorf("%s: %v, %v, %v, want %v", name, whole, inherited, err, test.want)
		}
		if test.want == nil {
			continue
		}
		if _, err := newApp().Parse(whole); err != nil {
			t.Errorf("%s: %v cannot be parsed: %v", name, whole, err)
		}
	}
	another := func() []string { return []string{"/dra-exporter", "node", "--of-another-version"} }
	_, inherited, err := inherit(newApp, another, []string{"check"})
	if err == nil || inherited != nil {
		t.Errorf("flags of another version: %v, %v", inherited, err)
	}
}

// Without root the report states this. The test's binary is in a directory that
// other users cannot read, so a copy of it is run.
func TestCheckWithoutRoot(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can become another user")
	}
	public, err := os.MkdirTemp("/tmp", "dra-exporter-check-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(public) })
	binary := filepath.Join(public, "dra-exporter")
	closed := filepath.Join(public, "closed")
	for _, problem := range []error{os.Chmod(public, 0o755), os.Mkdir(closed, 0o700), copyFile(binary, os.Args[0])} {
		if problem != nil {
			t.Fatal(problem)
		}
	}
	command := program(t.Context(), "check", "node", "--output=json", "--kubernetes.disable", "--kubelet.pod-resources-socket="+filepath.Join(closed, "kubelet.sock"))
	command.Path = binary
	command.Dir = public
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	found := reportOf(t, command)
	found.expectFinding(t, "kubelet", "socket", check.Failure, "Run as root")
	found.expectFinding(t, "this host", "program", check.OK, "as uid 65534, without capabilities")
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// FuzzInherit reads any command line of the process that a container was
// started with. The arguments that are added to a line are flags that the line
// lacks, and the whole line can be parsed.
func FuzzInherit(f *testing.F) {
	for _, running := range []string{
		"/dra-exporter node --dcgm.host-engine=engine:5555 --no-device.processes --labels.pod team", "/dra-exporter cluster --pending.budget=0.5",
		"/dra-exporter node -- --x", "/dra-exporter node --log.level", "dra-exporter node --labels.pod=\xff= --labels.pod=--help", "/bin/sh -c x", "",
	} {
		f.Add([]byte(strings.ReplaceAll(running, " ", "\x00")), "check node --labels.pod=x")
	}
	f.Fuzz(func(t *testing.T, cmdline []byte, line string) {
		running, given := strings.Split(string(cmdline), "\x00"), strings.Fields(line)
		for _, word := range append(slices.Clone(running), given...) {
			if strings.HasPrefix(word, "@") || strings.HasPrefix(strings.TrimLeft(word, "-"), "help") || strings.Contains(word, "completion") {
				t.Skip("a file of words, or what ends the program")
			}
		}
		whole, inherited, err := inherit(newApp, func() []string { return running }, given)
		if err != nil {
			return
		}
		if len(whole) != len(given)+len(inherited) || !slices.Equal(whole[:len(given)], given) {
			t.Fatalf("%q became %q by %q", given, whole, inherited)
		}
		if len(inherited) == 0 {
			return
		}
		own, _, _ := parseFlags(newApp(), given)
		for _, word := range inherited {
			if !strings.HasPrefix(word, "--") {
				t.Errorf("%q is no flag", word)
			}
			for _, flag := range own {
				if name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "="); name == flag.name {
					t.Errorf("%q was given already: %q", word, given)
				}
			}
		}
		if all, _, err := parseFlags(newApp(), whole); err != nil || len(all) != len(own)+len(inherited) {
			t.Errorf("%q is read as %v (%v)", whole, all, err)
		}
	})
}

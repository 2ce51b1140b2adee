package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/alecthomas/kingpin/v2"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/device/simulated"
	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/role"
)

// asProgram makes the test binary run as dra-exporter: a separate process, with
// signals and an exit code.
const asProgram = "DRA_EXPORTER_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// program returns dra-exporter with the arguments, not started yet.
func program(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, os.Args[0], args...)
	command.Env = append(os.Environ(), asProgram+"=1")
	return command
}

func TestStartErrors(t *testing.T) {
	directory := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(directory, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// The command line is right, and what it names is not there or is wrong.
	absent := []string{
		"no API server", "a missing kubeconfig", "a broken kubeconfig", "a missing simulation", "a wrong simulation", "a missing price list",
		"wrong before missing", "a wrong simulated file", "an unread web config", "the cluster's likewise", "an address of the demo",
		"a negative price", "a wrong address", "a missing web config",
		"a pipe of prices", "a pipe of exporters", "a pipe of devices", "a pipe of a web config", "a pipe of a kubeconfig", "a pipe of a token", "the cluster's kubeconfig",
	}
	pipe := filepath.Join(directory, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	alone := []string{"node", "--node.name=n", "--kubernetes.disable", "--web.listen-address=127.0.0.1:0"}
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"an unknown command":       {[]string{"nod"}, []string{`"nod"`, "--help"}},
		"an unknown flag":          {[]string{"node", "--wrong"}, []string{"--wrong", "--help"}},
		"no node name":             {[]string{"node"}, []string{"--node.name", "NODE_NAME"}},
		"pods but no claims":       {append(alone, "--kubelet.pods-api=/var/lib/kubelet/pods-api/pods-api.sock"), []string{"--kubelet.pods-api", "--kubernetes.disable"}},
		"no API server":            {[]string{"node", "--node.name=n"}, []string{"--kubeconfig", "--kubernetes.disable"}},
		"a missing kubeconfig":     {[]string{"node", "--node.name=n", "--kubeconfig=/does/not/exist"}, []string{"--kubeconfig", "/does/not/exist"}},
		"a broken kubeconfig":      {[]string{"node", "--node.name=n", "--kubeconfig=" + file("kubeconfig", "{")}, []string{"--kubeconfig"}},
		"an unknown source":        {append(alone, "--device.source=gpu"), []string{"--device.source", "gpu", "nvml"}},
		"simulated without file":   {append(alone, "--device.source=simulated"), []string{"--simulated.config"}},
		"a missing simulation":     {append(alone, "--device.source=simulated", "--simulated.config=/does/not/exist"), []string{"/does/not/exist"}},
		"a wrong simulation":       {append(alone, "--device.source=simulated", "--simulated.config="+file("simulation", "devices: [{uuid: a, colour: red}]")), []string{"colour"}},
		"a wrong host engine":      {append(alone, "--dcgm.host-engine=http://engine:5555"), []string{"--dcgm.host-engine"}},
		"an unused host engine":    {append(alone, "--device.source=nvml", "--dcgm.host-engine=engine:5555"), []string{"--dcgm.host-engine", "--device.source"}},
		"a relative socket":        {append(alone, "--dcgm.host-engine=unix://engine"), []string{"--dcgm.host-engine"}},
		"a wrong interval":         {append(alone, "--device.interval=1ms"), []string{"--device.interval"}},
		"slow before fast":         {append(alone, "--device.interval=10s", "--device.slow-interval=1s"), []string{"--device.slow-interval"}},
		"a negative grace":         {append(alone, "--ledger.grace=-1s"), []string{"--ledger.grace"}},
		"not a ratio":              {append(alone, "--idle.threshold=2"), []string{"--idle.threshold"}},
		"a negative cap":           {append(alone, "--metrics.max-series=-1"), []string{"--metrics.max-series"}},
		"an unknown level":         {append(alone, "--metrics.level=all"), []string{"metrics.level", "lean,default,full"}},
		"a family's part":          {append(alone, "--metrics.include=power_watts"), []string{"--metrics.include=power_watts", ".*power_watts.*"}},
		"a family's error":         {append(alone, "--metrics.exclude=dra_claim_heldd"), []string{"--metrics.exclude=dra_claim_heldd", "is it dra_claim_held?"}},
		"another role's family":    {[]string{"cluster", "--metrics.exclude=dra_claim_held"}, []string{"--metrics.exclude=dra_claim_held", "is it "}},
		"a negative hold":          {append(alone, "--health.hold=-1s"), []string{"--health.hold"}},
		"not a share":              {append(alone, "--health.throttle-ratio=2"), []string{"--health.throttle-ratio"}},
		"a negative share":         {append(alone, "--health.throttle-ratio=-0.1"), []string{"--health.throttle-ratio"}},
		"a list of pod labels":     {append(alone, "--labels.pod=team,app"), []string{"--labels.pod=team,app", "one flag for each"}},
		"pod labels that collide":  {append(alone, "--labels.pod=a.b", "--labels.pod=a-b"), []string{"--labels.pod", "a.b", "a-b"}},
		"a missing price list":     {append(alone, "--cost.prices=/does/not/exist"), []string{"--cost.prices", "/does/not/exist"}},
		"wrong before missing":     {[]string{"node", "--cost.prices=/does/not/exist"}, []string{"--cost.prices", "/does/not/exist"}},
		"a wrong simulated file":   {[]string{"node", "--device.source=simulated", "--simulated.config=/does/not/exist"}, []string{"--simulated.config", "/does/not/exist"}},
		"an unused simulation":     {append(alone, "--simulated.config=/does/not/exist"), []string{"--simulated.config", "--device.source"}},
		"an unread web config":     {[]string{"node", "--web.config.file=/does/not/exist"}, []string{"--web.config.file", "/does/not/exist"}},
		"the cluster's likewise":   {[]string{"cluster", "--web.config.file=/does/not/exist"}, []string{"--web.config.file", "/does/not/exist"}},
		"an address of the demo":   {[]string{"demo", "--web.listen-address=127.0.0.1:0", "--cluster.listen-address=nowhere:1", "--training.listen-address="}, []string{"--cluster.listen-address", "nowhere:1"}},
		"no name of a pod":         {[]string{"explain", "pod", "a/b/c", "--kubeconfig=/does/not/exist"}, []string{"a/b/c"}},
		"a negative price":         {append(alone, "--cost.prices="+file("prices", "currency: EUR\nprices:\n- perHour: -1\n")), []string{"--cost.prices", "prices:3", "perHour"}},
		"neither copy nor split":   {append(alone, "--metrics.dcgm=both"), []string{"--metrics.dcgm", "copy", "split", "both"}},
		"a wrong address":          {append(alone, "--web.listen-address=nowhere"), []string{"nowhere"}},
		"a pipe of prices":         {append(alone, "--cost.prices="+pipe), []string{"--cost.prices", pipe, "not a regular file"}},
		"a pipe of exporters":      {append(alone, "--exporter.config="+pipe), []string{"--exporter.config", pipe, "not a regular file"}},
		"a pipe of devices":        {append(alone, "--device.source=simulated", "--simulated.config="+pipe), []string{pipe, "not a regular file"}},
		"a pipe of a web config":   {append(alone, "--web.config.file="+pipe), []string{"--web.config.file", pipe, "not a regular file"}},
		"a pipe of a kubeconfig":   {[]string{"node", "--node.name=n", "--kubeconfig=" + pipe}, []string{"--kubeconfig", pipe, "not a regular file"}},
		"a pipe of a token":        {[]string{"cluster", "--kubeconfig=" + file("token", "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\nusers: [{name: u, user: {tokenFile: "+pipe+"}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n")}, []string{"--kubeconfig", pipe, "not a regular file"}},
		"the cluster's kubeconfig": {[]string{"cluster", "--kubeconfig=" + pipe}, []string{"--kubeconfig", pipe, "not a regular file"}},
		"a missing web config":     {append(alone, "--web.config.file=/does/not/exist"), []string{"/does/not/exist"}},
		"a wrong log level":        {append(alone, "--log.level=loud"), []string{"--log.level", "loud"}},
		"no duration":              {append(alone, "--device.interval=soon"), []string{"--device.interval", "soon"}},
		"a flag above a command":   {[]string{"check", "--output=xml", "cluster"}, []string{"--output", "xml", "json"}},
		"an unknown shell":         {[]string{"completion", "tcsh"}, []string{"SHELL", "tcsh", "bash"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(context.Background(), time.Minute)
			defer stop()
			var stderr bytes.Buffer
			command := program(ctx, test.args...)
			command.Env = append(command.Env, "KUBERNETES_SERVICE_HOST=")
			command.Stderr = &stderr
			status := exitUsage
			if slices.Contains(absent, name) {
				status = exitFailure
			}
			if err := command.Run(); command.ProcessState.ExitCode() != status {
				t.Fatalf("exit status %d (%v), want %d\n%s", command.ProcessState.ExitCode(), err, status, stderr.String())
			}
			for _, want := range test.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("the message does not name %s:\n%s", want, stderr.String())
				}
			}
			if lines := strings.Count(strings.TrimSpace(stderr.String()), "\n") + 1; lines > 2 {
				t.Errorf("%d lines, want two at most:\n%s", lines, stderr.String())
			}
		})
	}
}

// A misspelt command, kind or flag is named with what is probably meant, and no other
// part of the command line is.
func TestUsageHints(t *testing.T) {
	for line, want := range map[string]string{
		"nod":                                       `there is no command "nod"; did you mean node?`,
		"exlpain pod a/b":                           `there is no command "exlpain"; did you mean explain?`,
		"xyzzy":                                     `there is no command "xyzzy"; use one of: `,
		"explain":                                   "explain needs one of: claim, pod",
		"explain gpu GPU-0":                         `explain does not know "gpu"; use one of: claim, pod, workload`,
		"explain job a/b":                           `explain does not know "job"; did you mean workload?`,
		"explain deployment a/b":                    `explain does not know "deployment"; did you mean workload?`,
		"explain PyTorchJob/a":                      `explain does not know "PyTorchJob/a"; did you mean workload a?`,
		"explain resourceclaim/a":                   `explain does not know "resourceclaim/a"; did you mean claim a?`,
		"explain pods/a":                            `explain does not know "pods/a"; did you mean pod a?`,
		"topology statefulsets a/b":                 `topology does not know "statefulsets"; did you mean workload?`,
		"explain cliam a/b":                         `explain does not know "cliam"; did you mean claim?`,
		"explain pod/a":                             `explain does not know "pod/a"; did you mean pod a?`,
		"explain pod":                               "required argument 'NAME' not provided",
		"explain pod a b":                           `explain pod does not take "b"`,
		"explain pod a/b --kubconfig=x":             "there is no flag --kubconfig of explain pod; did you mean --kubeconfig?",
		"series --node 3":                           "there is no flag --node of series; did you mean --nodes?",
		"explain pod a/b --once":                    "there is no flag --once of explain pod; it is a flag of top",
		"explain --verbose=true pod a/b":            `--verbose takes no value, such as "true": use --verbose or --no-verbose`,
		"explain pod a/b --output":                  "--output needs a value",
		"explain pod a/b --timeout=1s --timeout=2s": "--timeout is set twice",
		"explain pod a/b --output=yaml":             "--output: enum value must be one of text,json, got 'yaml'",
		"explain pod a/b -x":                        "there is no flag -x of explain pod",
		"node --loglevel=debug":                     "there is no flag --loglevel of node; did you mean --log.level?",
		"node --web.enable-pprof=false":             `--web.enable-pprof takes no value, such as "false"`,
		"node --telemetry-path=/m":                  "there is no flag --telemetry-path of node; did you mean --web.telemetry-path?",
		"node --xyzzy":                              "there is no flag --xyzzy of node",
		"check agnet http://localhost:9420":         `check does not know "agnet"; did you mean agent?`,
		"top --no-url":                              "--no-url",
		"top --url=a:1 --context=x":                 "--context is for the API server, and --url reads agents directly",
		"top --interval=1ms":                        "--interval=1ms is too short",
		"cluster --pending.budget=2":                "--pending.budget=2",
		"demo --cluster.listen-address=x":           "--cluster.listen-address=x is not HOST:PORT",
		"demo --training.listen-address=x":          "--training.listen-address=x is not HOST:PORT",
		"check cluster --timeout=-1s":               "--timeout=-1s",
		"":                                          "Usage: dra-exporter <command>",
	} {
		t.Run(line, func(t *testing.T) {
			var out, errs bytes.Buffer
			if status := run(strings.Fields(line), &out, &errs); status != exitUsage || out.Len() > 0 {
				t.Errorf("exit status %d, want %d\n%s", status, exitUsage, out.String())
			}
			first, _, _ := strings.Cut(strings.TrimPrefix(errs.String(), "dra-exporter: "), "\n")
			if line == "" {
				first = errs.String()
			}
			if !strings.Contains(first, want) {
				t.Errorf("no %q in\n%s", want, errs.String())
			}
		})
	}
}

// The help of each command begins with a sentence and examples that can be parsed, and
// shows flags as they are given.
func TestHelpHasExamples(t *testing.T) {
	app := newApp()
	if _, err := app.ParseContext(nil); err != nil {
		t.Fatal(err)
	}
	commands := [][]string{nil}
	eachCommand(app.Model().Commands, func(command *kingpin.CmdModel) {
		if command.Name != "help" {
			commands = append(commands, strings.Fields(command.FullCommand))
		}
	})
	for _, command := range commands {
		output, err := program(t.Context(), append(command, "--help")...).CombinedOutput()
		parts := strings.Split(string(output), "\n\n")
		if err != nil || len(parts) < 4 || !strings.HasPrefix(parts[1], "Examples:\n  ") || !strings.HasPrefix(parts[2], "Usage: dra-exporter") || strings.Contains(string(output), "[no-]") {
			t.Errorf("%q: %v\n%s", command, err, output)
			continue
		}
		for _, line := range strings.Split(parts[1], "\n")[1:] {
			line, _, _ = strings.Cut(line, "#")
			words := strings.Fields(line)
			if words[0] != "dra-exporter" {
				continue
			}
			if i := slices.Index(words, "|"); i >= 0 {
				words = words[:i]
			}
			if _, err := newApp().ParseContext(words[1:]); err != nil || !strings.HasPrefix(strings.Join(words[1:], " "), strings.Join(command, " ")) && command[0] != "check" {
				t.Errorf("%q: the example %q: %v", command, line, err)
			}
		}
	}
}

// An invalid value of a variable is refused by the variable's name, not by the
// flag's. This includes variables of the parent commands.
func TestRefusedVariables(t *testing.T) {
	for variable, args := range map[string][]string{
		"DRA_EXPORTER_LOG_LEVEL=loud":               {"node"},
		"DRA_EXPORTER_DEVICE_SOURCE=nvml\nabacus":   {"node"},
		"DRA_EXPORTER_OUTPUT=xml":                   {"check", "cluster"},
		"DRA_EXPORTER_DEVICE_SLOW_INTERVAL=at once": {"check"},
	} {
		name, _, _ := strings.Cut(variable, "=")
		t.Run(name, func(t *testing.T) {
			command := program(t.Context(), args...)
			command.Env = append(command.Env, variable)
			output, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(output), "dra-exporter: "+name+": ") {
				t.Errorf("%v: %s", err, output)
			}
		})
	}
}

// The help describes each command.
func TestHelpOfCommands(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {}, {"check", "--help"}, {"explain", "--help"}} {
		output, _ := program(t.Context(), args...).CombinedOutput()
		words := strings.Join(strings.Fields(string(output)), " ")
		_, list, _ := strings.Cut(words, "Commands:")
		wanted := []string{"check [node] ", "check agent <URL> ", "explain pod <NAME> Explain all claims of a pod."}
		if len(args) > 1 {
			wanted = slices.DeleteFunc(wanted, func(want string) bool { return !strings.HasPrefix(want, args[0]+" ") })
		} else {
			wanted = append(wanted, "node Run the node role", "cluster Run the cluster role", "demo Run both roles", "top Show how", "completion <SHELL> Print", "version Print")
		}
		for _, want := range wanted {
			if !strings.Contains(list, want) {
				t.Errorf("%q does not say %q:\n%s", args, want, output)
			}
		}
	}
}

// A ratio of 0 disables the finding about throttling.
func TestThrottleRatioOfZero(t *testing.T) {
	for ratio, allowed := range map[float64]bool{0: true, 0.25: true, 1: true, -0.01: false, 1.01: false} {
		flags := testFlags()
		flags.throttle = ratio
		if err := flags.check(); (err == nil) != allowed {
			t.Errorf("--health.throttle-ratio=%v: %v", ratio, err)
		}
	}
}

// Taints set by the driver are known from its slices, while those are watched.
func TestDriverTaintsNeedSlices(t *testing.T) {
	server, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	uuid, node := "GPU-0", "n"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
	slice.Spec.Driver, slice.Spec.NodeName = "gpu.nvidia.com", &node
	slice.Spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}
	slice.Spec.Devices = []resourcev1.Device{{Name: "gpu-0", Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"uuid": {StringValue: &uuid}}}}
	if err := server.Put(slice); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "simulated.yaml")
	if err := os.WriteFile(config, []byte("devices: [{uuid: GPU-0, vendor: nvidia}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := simulated.Open(config, clock.System())
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, testFlags(), role.NodeOptions{Name: node, Socket: "/does/not/exist", API: server.Config(), Sources: []device.Source{source}})
	const word = `dra_device_healthy{by="driver"`
	eventually(t, address+"/metrics", word)
	server.Stop()
	page := eventually(t, address+"/metrics", `dra_exporter_source_up{source="resourceslices"} 0`)
	for deadline := time.Now().Add(3 * time.Minute); strings.Contains(page, word); _, page = get(t, address+"/metrics") {
		if time.Now().After(deadline) {
			t.Fatal("the slices are not watched, but the taints of the driver are still used")
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"node", "--help"}, {"--version"}, {"demo", "--help"}} {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		defer stop()
		output, err := program(ctx, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(output), "dra-exporter") {
			t.Errorf("%v: %v\n%s", args, err, output)
		}
		if strings.Count(string(output), "Commands:") > 1 {
			t.Errorf("%v answers more than once:\n%s", args, output)
		}
	}
}

// SIGTERM ends a command that waits for a file for ever.
func TestSIGTERMWhileAFileHangs(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	command := program(ctx, "explain", "pod", "a/b", "--kubeconfig="+pipe)
	var output bytes.Buffer
	command.Stderr = &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// The pipe has a reader once the command waits for its text.
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); command.ProcessState.ExitCode() != exitFailure || !strings.Contains(output.String(), "has not ended within 4.5s") {
		t.Errorf("it ended with %v\n%s", err, output.String())
	}
}

// SIGTERM ends the program, also while a call to a source does not return.
func TestSIGTERMWithHungSource(t *testing.T) {
	config := filepath.Join(t.TempDir(), "simulated.yaml")
	hangs := "devices: [{uuid: GPU-0, vendor: nvidia, faults: [{kind: hang}]}]"
	if err := os.WriteFile(config, []byte(hangs), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	command := program(ctx, "node", "--node.name=n", "--kubernetes.disable", "--web.listen-address=127.0.0.1:0",
		"--device.source=simulated", "--simulated.config="+config)
	output, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	for buffer := make([]byte, 4096); !strings.Contains(log.String(), "device_timeout") && !strings.Contains(log.String(), "timeout"); {
		n, err := output.Read(buffer)
		log.Write(buffer[:n])
		if err != nil {
			t.Fatalf("ended before its source hung: %v\n%s", err, log.String())
		}
	}
	began := time.Now()
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("did not end well: %v\n%s", err, log.String())
	}
	t.Logf("ended after %s", time.Since(began).Round(time.Millisecond))
}

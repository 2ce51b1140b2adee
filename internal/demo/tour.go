package demo

import (
	"fmt"
	"io"
	"net"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Tour says what there is to look at, with commands that can be copied.
type Tour struct {
	Program, Kubeconfig string   // files
	Prometheus          string   // URL of the recorded week
	Metrics             string   // path of the roles
	Node, Cluster       net.Addr // of the first node's agent and of the cluster role
	Training            net.Addr // of the second node's agent; nil: none
}

// PrintAddresses prints where the pages are.
func (t Tour) PrintAddresses(stdout io.Writer) {
	fmt.Fprintf(stdout, `http://%s/  a node: 8 GPUs, 4 TPU chips, an Intel GPU, a network adapter, and their claims
http://%s/  its cluster: pending claims with their reasons, phases, capacity
`, localAddress(t.Node), localAddress(t.Cluster))
	if t.Training != nil {
		fmt.Fprintf(stdout, "http://%s/  another node: a training job, and GPUs that are held and not used\n", localAddress(t.Training))
	}
	fmt.Fprint(stdout, `
The hardware, the kubelets, the API server and a week of a Prometheus are simulated. Ctrl-C ends the demo.
`)
}

// Print prints the tour, once all pages are complete.
func (t Tour) Print(stdout io.Writer) {
	topic := 0
	show := func(text string, commands ...string) {
		topic++
		fmt.Fprintf(stdout, "%d. %s\n", topic, text)
		for _, command := range commands {
			fmt.Fprintf(stdout, "     %s\n", command)
		}
	}
	program, node, cluster := shellQuoted(t.Program), localAddress(t.Node), localAddress(t.Cluster)
	explain := program + " explain --kubeconfig=" + shellQuoted(t.Kubeconfig)
	nodes, pages := "--url="+node, "http://"+node+" http://"+cluster
	if t.Training != nil {
		nodes, pages = nodes+" --url="+localAddress(t.Training), pages+" http://"+localAddress(t.Training)
	}

	fmt.Fprint(stdout, "\nReady. What to look at:\n\n")
	show(`Use: gpu-3 is shared by two claims and split by process, gpu-5 and gpu-6 are cut into MIG
   devices, a notebook holds one of them without using it, and a claim of ml-training ends and
   begins again every minute or so.`,
		program+" top "+nodes+" --cluster-url="+cluster)
	show(`Pending claims: each pod of the cluster's page waits for another reason.`,
		explain+" pod hpc/mpi-0",
		explain+" -v pod hpc/mpi-0")
	show(`Jobs: one lacks a pod of its gang, one waits in a queue of Kueue; the GPUs of another are
   connected by NVLink.`,
		explain+" workload llm/post-train",
		explain+" workload batch/distill",
		program+" topology --url="+node+" workload ml-training/llama")
	if t.Training != nil {
		show(`A slow rank: of the six GPUs of the job pretraining/gpt, one is hot and clocked down.`,
			"curl -s http://"+localAddress(t.Training)+t.Metrics+` | grep 'dra_device_clock_hertz{clock="sm"'`)
	}
	show(`Waste: what claims hold and do not use now, what would have been enough in a recorded week,
   and what each team's namespaces cost.`,
		program+" top "+nodes+" --sort=idle --once",
		program+" advise --prometheus.url="+t.Prometheus,
		"curl -s http://"+node+"/api/v1/namespaces")
	show(`Metrics and JSON, as Prometheus and scripts read them.`,
		"curl -s http://"+node+t.Metrics+" | grep dra_claim_utilization_ratio",
		"curl -s http://"+cluster+t.Metrics+" | grep dra_claim_pending_reason_info",
		"curl -s http://"+node+"/api/v1/claims",
		"curl -s http://"+cluster+"/api/v1/pending")
	show(`What the exporter reports of itself.`, program+" check agent "+pages)
}

// ExplainCommand returns the explain command that the page at an address shows: a
// program, by its path, over the simulated cluster. A reader on another machine, or
// outside of the demo's container, has neither the kubeconfig nor the simulated API
// server, which listens on the loopback interface only: the command is empty unless the
// page is also served there only.
func ExplainCommand(address, program, kubeconfig string) string {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || program == "" || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	return shellQuoted(program) + " explain --kubeconfig=" + shellQuoted(kubeconfig)
}

// shellQuoted quotes an argument for a shell.
func shellQuoted(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// WriteKubeconfig writes a kubeconfig, so that users can query the simulated cluster
// with other tools, such as dra-exporter explain.
func WriteKubeconfig(path string, config *rest.Config) error {
	const name = "demo"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	kubeconfig.CurrentContext = name
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return fmt.Errorf("write a kubeconfig of the simulated cluster: %w", err)
	}
	return nil
}

// localAddress returns the address for a reader on this machine.
func localAddress(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("localhost", port)
	}
	return address.String()
}

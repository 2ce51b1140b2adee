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
	Program, Kubeconfig string // files
	Metrics             string // path of both roles
	Node, Cluster       net.Addr
}

// PrintAddresses prints where the pages are.
func (t Tour) PrintAddresses(stdout io.Writer) {
	fmt.Fprintf(stdout, `http://%s/  a node: 8 GPUs, 4 TPU chips, an Intel GPU, a network adapter, and their claims
http://%s/  its cluster: pending claims with their reasons, phases, capacity

The hardware, the kubelet and the API server are simulated. Ctrl-C ends the demo.
`, localAddress(t.Node), localAddress(t.Cluster))
}

// Print prints the tour, once both pages are complete.
func (t Tour) Print(stdout io.Writer) {
	program, kubeconfig := shellQuoted(t.Program), shellQuoted(t.Kubeconfig)
	fmt.Fprintf(stdout, `
Ready. What to look at:

1. Use: gpu-3 is shared by two claims and split by process, gpu-5 and gpu-6 are cut into MIG
   devices, a notebook holds one of them without using it, and a claim of ml-training ends and
   begins again every minute or so.
     %[1]s top --url=%[3]s --cluster-url=%[4]s
2. Pending claims: each pod of the cluster's page waits for another reason.
     %[1]s explain --kubeconfig=%[2]s pod hpc/mpi-0
     %[1]s explain --kubeconfig=%[2]s -v pod hpc/mpi-0
3. Jobs: one lacks a pod of its gang, one waits in a queue of Kueue; the GPUs of another are
   connected by NVLink.
     %[1]s explain --kubeconfig=%[2]s workload llm/post-train
     %[1]s explain --kubeconfig=%[2]s workload batch/distill
     %[1]s topology --url=%[3]s workload ml-training/llama
4. Metrics and JSON, as Prometheus and scripts read them.
     curl -s http://%[3]s%[5]s | grep dra_claim_utilization_ratio
     curl -s http://%[4]s%[5]s | grep dra_claim_pending_reason_info
     curl -s http://%[3]s/api/v1/claims
     curl -s http://%[3]s/api/v1/namespaces
     curl -s http://%[4]s/api/v1/pending
5. What the exporter reports of itself.
     %[1]s check agent http://%[3]s http://%[4]s
`, program, kubeconfig, localAddress(t.Node), localAddress(t.Cluster), t.Metrics)
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

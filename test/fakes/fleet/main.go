// Command fleet is a plain cluster for counting series: an API server with nodes that
// all have the same GPUs and claims, and what an agent on the first node reads, a
// kubelet and hardware. It prints where these are, and ends with its input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	kubelet "github.com/dra-exporter/dra-exporter/kubelet/simulated"
	"github.com/dra-exporter/dra-exporter/test/fakes/generator"
)

// size is what each node has. A claim holds one GPU, for a Job of one pod; those of a
// node are in one namespace and from one template.
type size struct{ nodes, devices, claims int }

func main() {
	var s size
	flag.IntVar(&s.nodes, "nodes", 1, "`number` of nodes")
	flag.IntVar(&s.devices, "devices", generator.DevicesPerNode, "`number` of GPUs of a node")
	flag.IntVar(&s.claims, "claims", generator.DevicesPerNode, "`number` of claims on a node")
	folder := flag.String("folder", "", "`folder` for the files")
	hardware := flag.String("hardware", "", "`file` of the demo with the template gpu")
	flag.Parse()
	if err := run(context.Background(), s, *folder, *hardware); err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s size, folder, hardware string) error {
	if s.devices > generator.DevicesPerNode || s.claims > s.devices {
		return fmt.Errorf("a node has at most %d GPUs, and a claim for each", generator.DevicesPerNode)
	}
	server, err := apiserver.Start(ctx, apiserver.Options{})
	if err != nil {
		return err
	}
	if err := fill(server, s); err != nil {
		return err
	}
	files := map[string]string{
		"kubeconfig": filepath.Join(folder, "kubeconfig"), "socket": filepath.Join(folder, "kubelet.sock"),
		"hardware": filepath.Join(folder, "hardware.yaml"), "node": generator.NodeName(0),
	}
	kubeconfig, err := json.Marshal(generator.Connection(server.Config().Host, ""))
	if err != nil {
		return err
	}
	gpus, err := firstNode(hardware, s.devices)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(files["kubeconfig"], kubeconfig, 0o600), os.WriteFile(files["hardware"], gpus, 0o600)); err != nil {
		return err
	}
	running, err := kubelet.Start(ctx, files["socket"], kubelet.Options{})
	if err != nil {
		return err
	}
	defer running.Close()
	running.Set(podsOfFirstNode(s))
	if err := json.NewEncoder(os.Stdout).Encode(files); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// firstNode is the hardware of the first node.
func firstNode(hardware string, devices int) ([]byte, error) {
	templates, err := os.ReadFile(hardware)
	if err != nil {
		return nil, err
	}
	var gpus strings.Builder
	fmt.Fprintf(&gpus, "%sdevices:\n", templates)
	for d, device := range generator.Slice(0).Spec.Devices[:devices] {
		fmt.Fprintf(&gpus, "- {template: gpu, minor: %d, uuid: %s, pciBusID: %q}\n", d,
			*device.Attributes["uuid"].StringValue, *device.Attributes["resource.kubernetes.io/pciBusID"].StringValue)
	}
	return []byte(gpus.String()), nil
}

func fill(server *apiserver.Server, s size) error {
	objects := []apiserver.Object{generator.Class()}
	created := time.Now().Add(-time.Hour)
	for n := range s.nodes {
		node, slice := generator.Node(n), generator.Slice(n)
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		slice.Spec.Devices = slice.Spec.Devices[:s.devices]
		objects = append(objects, node, slice)
		for c := range s.claims {
			objects = append(objects, claimObjects(n, c, created)...)
		}
	}
	return server.Put(objects...)
}

func names(node, claim int) (namespace, name string) {
	return fmt.Sprintf("team-%05d", node), fmt.Sprintf("train-%d", claim)
}

// claimObjects are a Job's pod and the claim that was created for it from a template.
func claimObjects(node, index int, created time.Time) []apiserver.Object {
	namespace, name := names(node, index)
	meta := func(kind string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(kind + "-" + namespace + "-" + name), CreationTimestamp: metav1.NewTime(created.Truncate(time.Second)),
		}
	}
	yes, template := true, "one-gpu"
	pod := generator.NewPod(meta("pod"))
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: name, UID: "job", Controller: &yes}}
	claim := generator.NewClaim(meta("claim"), 0)
	claim.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: "gpu"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: pod.UID, Controller: &yes}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: &template}}
	pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim.Name}}
	generator.Allocate(claim, node*generator.DevicesPerNode+index, pod)
	generator.Bind(pod, node, created.Add(time.Second))
	generator.Prepare(pod, created.Add(2*time.Second))
	generator.Run(pod, created.Add(3*time.Second))
	return []apiserver.Object{pod, claim}
}

func podsOfFirstNode(s size) (pods []kubelet.Pod) {
	for c := range s.claims {
		namespace, name := names(0, c)
		result := generator.Slice(0).Spec.Devices[c]
		pods = append(pods, kubelet.Pod{
			Namespace: namespace, Name: name,
			Claims: []kubelet.Claim{{Name: name, Devices: []kubelet.Device{{
				Request: "gpu", Driver: generator.Slice(0).Spec.Driver, Pool: generator.NodeName(0), Name: result.Name,
			}}}},
			Containers: []kubelet.Container{{Name: "main", Uses: []kubelet.Use{{Claim: name}}}},
		})
	}
	return pods
}

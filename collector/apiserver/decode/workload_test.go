package decode

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// podOf returns a pod with labels, annotations (whose keys begin with @) and the
// controller kind/name; a kind that begins with ! is an owner that is no controller.
func podOf(values map[string]string, owners ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "p"}}
	for key, value := range values {
		if annotation, is := strings.CutPrefix(key, "@"); is {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotation, value)
			continue
		}
		if key == "schedulingGroup" {
			pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &value}
			continue
		}
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	for _, owner := range owners {
		kind, name, _ := strings.Cut(owner, "/")
		other, uncontrolled := strings.CutPrefix(kind, "!")
		controls := !uncontrolled
		pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{Kind: other, Name: name, Controller: &controls})
	}
	return pod
}

type textMap = map[string]string

// job returns the labels of a pod of an indexed Job, and more.
func job(name, index string, more ...textMap) textMap {
	labels := textMap{
		"batch.kubernetes.io/job-name": name, "job-name": name, "batch.kubernetes.io/controller-uid": "u",
		"batch.kubernetes.io/job-completion-index": index,
	}
	for _, m := range more {
		maps.Copy(labels, m)
	}
	return labels
}

// The labels are those that the frameworks' controllers give to pods.
func TestWorkloads(t *testing.T) {
	jobSet := textMap{
		"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "workers", "jobset.sigs.k8s.io/replicatedjob-replicas": "2",
		"jobset.sigs.k8s.io/job-index": "1", "jobset.sigs.k8s.io/job-global-index": "3",
	}
	kubeflow := textMap{
		"training.kubeflow.org/job-name": "bert", "training.kubeflow.org/operator-name": "pytorchjob-controller",
		"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": "5",
	}
	ray := textMap{"ray.io/cluster": "tune-x7k2p", "ray.io/group": "gpu", "ray.io/node-type": "worker", "ray.io/worker-group-replica-index": "2", "ray.io/replica-host-index": "1"}
	rayJob := maps.Clone(ray)
	maps.Copy(rayJob, textMap{"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "tune"})
	lws := textMap{
		"leaderworkerset.sigs.k8s.io/name": "llama", "leaderworkerset.sigs.k8s.io/group-index": "1", "leaderworkerset.sigs.k8s.io/worker-index": "3",
		"@leaderworkerset.sigs.k8s.io/size": "4", "apps.kubernetes.io/pod-index": "2",
	}
	leader := maps.Clone(lws)
	leader["leaderworkerset.sigs.k8s.io/worker-index"] = "0"
	for name, test := range map[string]struct {
		pod    *corev1.Pod
		want   dra.Workload
		member dra.Member // without the workload
	}{
		"Job":         {podOf(textMap{"batch.kubernetes.io/job-name": "etl"}, "Job/etl"), dra.Workload{Kind: "Job", Name: "etl"}, dra.Member{}},
		"indexed Job": {podOf(job("etl", "7"), "Job/etl"), dra.Workload{Kind: "Job", Name: "etl"}, dra.Member{Rank: "7"}},
		"Job of Kueue": {
			podOf(job("etl", "7", textMap{"kueue.x-k8s.io/local-queue-name": "team-a", "kueue.x-k8s.io/cluster-queue-name": "all"}), "Job/etl"),
			dra.Workload{Kind: "Job", Name: "etl", Queue: "team-a"}, dra.Member{Rank: "7"},
		},
		"Job with a PodGroup of its controller": {
			podOf(job("etl", "7", textMap{"schedulingGroup": "etl-w-a-x"}), "Job/etl", "!PodGroup/etl-w-a-x"), dra.Workload{Kind: "Job", Name: "etl"}, dra.Member{Rank: "7"},
		},
		"PodGroup of two Jobs": {podOf(job("etl", "7", textMap{"schedulingGroup": "gang"}), "Job/etl"), dra.Workload{Kind: "PodGroup", Name: "gang"}, dra.Member{Rank: "7"}},
		"JobSet": {
			podOf(job("train-workers-1", "4", jobSet), "Job/train-workers-1"),
			dra.Workload{Kind: "JobSet", Name: "train"}, dra.Member{Role: "workers", Replica: "1", Rank: "4"},
		},
		"TrainJob": {
			podOf(job("train-workers-1", "4", jobSet, textMap{"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}), "Job/train-workers-1"),
			dra.Workload{Kind: "TrainJob", Name: "train"}, dra.Member{Role: "workers", Replica: "1", Rank: "4"},
		},
		"PyTorchJob": {podOf(kubeflow, "PyTorchJob/bert"), dra.Workload{Kind: "PyTorchJob", Name: "bert"}, dra.Member{Role: "worker", Rank: "5"}},
		"launcher of an MPIJob": {
			podOf(job("mpi-launcher", "0", textMap{"training.kubeflow.org/job-name": "mpi", "training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/replica-type": "launcher"}), "Job/mpi-launcher"),
			dra.Workload{Kind: "MPIJob", Name: "mpi"}, dra.Member{Role: "launcher", Rank: "0"},
		},
		"an operator that is not known": {
			podOf(textMap{"training.kubeflow.org/job-name": "x", "training.kubeflow.org/operator-name": "new-controller"}, "NewJob/x"), dra.Workload{Kind: "TrainingJob", Name: "x"}, dra.Member{},
		},
		"RayJob":     {podOf(rayJob, "RayCluster/tune-x7k2p"), dra.Workload{Kind: "RayJob", Name: "tune"}, dra.Member{Role: "gpu", Replica: "2", Rank: "1"}},
		"RayCluster": {podOf(ray, "RayCluster/tune-x7k2p"), dra.Workload{Kind: "RayCluster", Name: "tune-x7k2p"}, dra.Member{Role: "gpu", Replica: "2", Rank: "1"}},
		"LeaderWorkerSet": {
			podOf(lws, "StatefulSet/llama-1"), dra.Workload{Kind: "LeaderWorkerSet", Name: "llama"}, dra.Member{Role: "worker", Replica: "1", Rank: "3", Size: 4},
		},
		"leader of a LeaderWorkerSet": {
			podOf(leader, "StatefulSet/llama"), dra.Workload{Kind: "LeaderWorkerSet", Name: "llama"}, dra.Member{Role: "leader", Replica: "1", Rank: "0", Size: 4},
		},
		"Volcano": {
			podOf(textMap{"volcano.sh/job-name": "sim", "volcano.sh/task-spec": "mpi", "volcano.sh/task-index": "2", "volcano.sh/queue-name": "hpc"}, "Job/sim"),
			dra.Workload{Kind: "VolcanoJob", Name: "sim", Queue: "hpc"}, dra.Member{Role: "mpi", Rank: "2"},
		},
		"Grove": {
			podOf(textMap{
				"grove.io/podclique": "serve-0-decode", "app.kubernetes.io/part-of": "serve", "grove.io/podcliqueset-replica-index": "0",
				"grove.io/podclique-pod-index": "3",
			}, "PodClique/serve-0-decode"),
			dra.Workload{Kind: "PodCliqueSet", Name: "serve"}, dra.Member{Role: "decode", Replica: "0", Rank: "3"},
		},
		"a part of another application": {podOf(textMap{"app.kubernetes.io/part-of": "serve"}, "DaemonSet/d"), dra.Workload{Kind: "DaemonSet", Name: "d"}, dra.Member{}},
		"Argo": {
			podOf(textMap{"workflows.argoproj.io/workflow": "nightly", "@workflows.argoproj.io/node-name": "nightly.train(0)"}, "Workflow/nightly"),
			dra.Workload{Kind: "Workflow", Name: "nightly"}, dra.Member{Role: "train(0)"},
		},
		"StatefulSet": {
			podOf(textMap{"apps.kubernetes.io/pod-index": "2", "kueue.x-k8s.io/pod-group-name": "statefulset-db"}, "StatefulSet/db"),
			dra.Workload{Kind: "StatefulSet", Name: "db"}, dra.Member{Rank: "2"},
		},
		"Deployment":                      {podOf(textMap{"pod-template-hash": "7d4f"}, "ReplicaSet/chat-7d4f"), dra.Workload{Kind: "Deployment", Name: "chat"}, dra.Member{}},
		"ReplicaSet":                      {podOf(textMap{"pod-template-hash": "7d4f"}, "ReplicaSet/chat"), dra.Workload{Kind: "ReplicaSet", Name: "chat"}, dra.Member{}},
		"ReplicaSet without a Deployment": {podOf(nil, "ReplicaSet/chat-"), dra.Workload{Kind: "ReplicaSet", Name: "chat-"}, dra.Member{}},
		"group of pods of Kueue": {
			podOf(textMap{"kueue.x-k8s.io/pod-group-name": "g", "@kueue.x-k8s.io/pod-group-total-count": "8", "kueue.x-k8s.io/pod-group-pod-index": "1", "kueue.x-k8s.io/queue-name": "q"}),
			dra.Workload{Kind: "PodGroup", Name: "g", Queue: "q"}, dra.Member{Rank: "1", Size: 8},
		},
		"group of pods of KAI": {podOf(textMap{"@pod-group-name": "pg-x", "kai.scheduler/queue": "q"}), dra.Workload{Kind: "PodGroup", Name: "pg-x", Queue: "q"}, dra.Member{}},
		"custom controller":    {podOf(textMap{"kai.scheduler/queue": "q"}, "Notebook/n"), dra.Workload{Kind: "Notebook", Name: "n", Queue: "q"}, dra.Member{}},
		"static pod":           {podOf(nil, "Node/gpu-1"), dra.Workload{}, dra.Member{}},
		"pod by itself":        {podOf(nil), dra.Workload{}, dra.Member{}},
		"a size that is none":  {podOf(textMap{"kueue.x-k8s.io/pod-group-name": "g", "@kueue.x-k8s.io/pod-group-total-count": "-1"}), dra.Workload{Kind: "PodGroup", Name: "g"}, dra.Member{}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want.Name != "" {
				test.member.Workload = &test.want
			}
			fields := PodFields{Workloads: DefaultWorkloads()}
			for read, pod := range map[string]*corev1.Pod{"the pod": test.pod, "the stripped pod": StripPod(test.pod, fields)} {
				if got := Pod(pod, fields).Member; !reflect.DeepEqual(got, test.member) {
					t.Errorf("%s: %+v of %+v, want %+v of %+v", read, got, got.Workload, test.member, test.want)
				}
			}
			test.pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} // of others the cluster role reads nothing
			if got := PodLifecycle(test.pod, fields.Workloads).Member; !reflect.DeepEqual(got, test.member) {
				t.Errorf("the cluster role: %+v of %+v, want %+v of %+v", got, got.Workload, test.member, test.want)
			}
		})
	}
}

func TestWorkloadKeys(t *testing.T) {
	workloads, err := NewWorkloads("name=ml.example.com/run", "rank=ml.example.com/rank", "kind=ml.example.com/kind", "queue=ml.example.com/queue", "size=ml.example.com/size")
	if err != nil {
		t.Fatal(err)
	}
	labels := job("etl", "7", textMap{"ml.example.com/run": "r-17", "@ml.example.com/rank": "3", "ml.example.com/queue": "own", "ml.example.com/size": "64", "kueue.x-k8s.io/queue-name": "q"})
	want := dra.Member{Workload: &dra.Workload{Kind: "Workload", Name: "r-17", Queue: "own"}, Rank: "3", Size: 64}
	if got := workloads.member(podOf(labels, "Job/etl")); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v of %+v", got, got.Workload)
	}
	labels["ml.example.com/kind"] = "Run"
	if got := workloads.member(podOf(labels, "Job/etl")); got.Workload.Kind != "Run" {
		t.Errorf("%+v", got.Workload)
	}
	if got := workloads.member(podOf(job("etl", "7"), "Job/etl")); got.Workload.Kind != "Job" || got.Rank != "7" {
		t.Errorf("without the label: %+v of %+v", got, got.Workload)
	}
	for text, message := range map[string]string{
		"rank=a":              `the field name is missing: add name=KEY, the key of the workload's name`,
		"example.com/run":     `"example.com/run" is not FIELD=KEY, such as name=example.com/run`,
		"nam=example.com/run": `"nam=example.com/run": there is no field "nam"; the fields are name, kind, role, replica, rank, size and queue`,
		"name=":               `"name=": "" is not the key of a label or annotation: name part must be non-empty`,
		"name=a b":            `"name=a b": "a b" is not the key of a label or annotation: `,
		"name=a,name=b":       `"name=b": the field name has the key a already`,
	} {
		if _, err := NewWorkloads(strings.Split(text, ",")...); err == nil || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestWorkloadDocument compares the table of docs/workloads.md with that of
// frameworks.
func TestWorkloadDocument(t *testing.T) {
	code := func(keys ...string) string {
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == "" })
		for i := range keys {
			keys[i] = "`" + keys[i] + "`"
		}
		return strings.Join(keys, ", ")
	}
	table := "| framework | kind | workload | role | replica | rank |\n|---|---|---|---|---|---|\n"
	for _, row := range frameworks() {
		kind := row.kind
		switch {
		case row.kinds != nil:
			kind = strings.Join(slices.Compact(slices.Sorted(maps.Values(row.kinds))), ", ") + "; else " + kind
		case row.kindKey != "":
			kind = "value of " + code(row.kindKey)
		case kind == "":
			kind = "that of the controller"
		}
		name := code(row.name)
		if row.needs != "" {
			name += ", if the pod has " + code(row.needs)
		}
		if row.object != nil {
			name = map[string]string{
				"Kubernetes: PodGroup": "`spec.schedulingGroup`, unless the pod's controller made the group", "Kubernetes: StatefulSet": "the controller",
				"Kubernetes: Deployment": "the ReplicaSet without `pod-template-hash`", "any other controller": "the controller, unless it is the node",
			}[row.title]
		}
		table += fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", row.title, kind, name, code(row.role), code(row.replica), code(row.rank))
	}
	document, err := os.ReadFile("../../../docs/workloads.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), table) {
		t.Errorf("docs/workloads.md does not have this table:\n%s", table)
	}
}

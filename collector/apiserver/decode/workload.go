package decode

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// framework is a row of the table of frameworks: the labels and annotations by
// which their pods show the workload that they belong to. A key may be that of a
// label or of an annotation; labels come first.
type framework struct {
	title string // for the documentation
	kind  string // of its workloads; empty: the controller's
	needs string // key that its pods have, besides the one of the name; empty: no other

	kindKey string            // key of the kind; empty: it is always the one above
	kinds   map[string]string // kinds by the values of kindKey; nil: the value is the kind

	name, role, replica, rank, size string // keys; empty: it has none

	// object returns the name, where it is in no key; empty: the pod is another
	// framework's.
	object func(*corev1.Pod) string
	// roleOf returns the role in the workload of a name, where it is not the value
	// of the key.
	roleOf func(workload string, member dra.Member) string
}

// frameworks returns the table, the outermost first: RayJobs have RayClusters,
// TrainJobs have JobSets, and JobSets have Jobs. The keys are those of kuberay
// 1.7, Kubeflow's training operator 1.9 and trainer 2.3, Grove, JobSet 0.12,
// LeaderWorkerSet 0.9, Volcano 1.15, Argo Workflows, SkyPilot, Kueue 0.19, KAI and
// Kubernetes 1.37.
func frameworks() []framework {
	return []framework{
		{
			title: "Ray: RayJob, RayService, RayCluster", kind: "RayCluster", kindKey: "ray.io/originated-from-crd", name: "ray.io/originated-from-cr-name",
			role: "ray.io/group", replica: "ray.io/worker-group-replica-index", rank: "ray.io/replica-host-index",
		},
		{
			title: "Ray, without the label of its origin", kind: "RayCluster", name: "ray.io/cluster",
			role: "ray.io/group", replica: "ray.io/worker-group-replica-index", rank: "ray.io/replica-host-index",
		},
		{
			title: "Kubeflow training operator: PyTorchJob, MPIJob and others", kind: "TrainingJob",
			kindKey: "training.kubeflow.org/operator-name", kinds: trainingKinds(), name: "training.kubeflow.org/job-name",
			role: "training.kubeflow.org/replica-type", rank: "training.kubeflow.org/replica-index",
		},
		// Its JobSet has its name. The trainer labels Jobs, and pods have the label
		// only if the pod template of the runtime does.
		{title: "Kubeflow trainer: TrainJob", kind: "TrainJob", needs: "trainer.kubeflow.org/trainjob-ancestor-step", name: jobSetName},
		{
			title: "Grove: PodCliqueSet", kind: "PodCliqueSet", needs: "grove.io/podclique", name: "app.kubernetes.io/part-of",
			role: "grove.io/podclique", replica: "grove.io/podcliqueset-replica-index", rank: "grove.io/podclique-pod-index",
			roleOf: func(workload string, m dra.Member) string { // a clique is called <set>-<replica>-<clique>
				return strings.TrimPrefix(m.Role, workload+"-"+m.Replica+"-")
			},
		},
		{
			title: "LeaderWorkerSet", kind: "LeaderWorkerSet", name: "leaderworkerset.sigs.k8s.io/name",
			replica: "leaderworkerset.sigs.k8s.io/group-index", rank: "leaderworkerset.sigs.k8s.io/worker-index", size: "leaderworkerset.sigs.k8s.io/size",
			roleOf: func(_ string, m dra.Member) string {
				switch m.Rank {
				case "":
					return ""
				case "0":
					return "leader"
				default:
					return "worker"
				}
			},
		},
		{
			title: "JobSet", kind: "JobSet", name: jobSetName,
			role: "jobset.sigs.k8s.io/replicatedjob-name", replica: "jobset.sigs.k8s.io/job-index",
		},
		{
			title: "Volcano: Job", kind: "VolcanoJob", name: "volcano.sh/job-name",
			role: "volcano.sh/task-spec", rank: "volcano.sh/task-index",
		},
		{
			title: "Argo: Workflow", kind: "Workflow", name: "workflows.argoproj.io/workflow", role: "workflows.argoproj.io/node-name",
			roleOf: func(workload string, m dra.Member) string { // a node is called <workflow>.<step>, or <workflow>
				return strings.TrimPrefix(strings.TrimPrefix(m.Role, workload), ".")
			},
		},
		{title: "SkyPilot", kind: "SkyPilotCluster", name: "skypilot-cluster-name", role: "ray-node-type"},
		{title: "Kubernetes: PodGroup", kind: podGroupKind, object: podGroupName},
		{title: "Kubernetes: StatefulSet", kind: "StatefulSet", object: statefulSetName, rank: "apps.kubernetes.io/pod-index"},
		{
			title: "Kueue: group of pods", kind: podGroupKind, name: "kueue.x-k8s.io/pod-group-name",
			rank: "kueue.x-k8s.io/pod-group-pod-index", size: "kueue.x-k8s.io/pod-group-total-count",
		},
		{title: "Kubernetes: Job", kind: "Job", name: "batch.kubernetes.io/job-name", rank: "batch.kubernetes.io/job-completion-index"},
		{title: "Kubernetes: Deployment", kind: "Deployment", object: deploymentName},
		{title: "any other controller", object: controllerName},
		{title: "KAI: group of pods", kind: podGroupKind, name: "pod-group-name", role: "kai.scheduler/subgroup-name"},
	}
}

const (
	jobSetName   = "jobset.sigs.k8s.io/jobset-name"
	podGroupKind = "PodGroup"

	podTemplateHash = "pod-template-hash" // label of the pods of a ReplicaSet of a Deployment
)

// queueKeys are the keys of the queue of a pod, whatever its framework, in order:
// of Volcano, Kueue and KAI. Kueue labels pods with both of its queues; the local
// queue is the one that users submit to.
func queueKeys() []string {
	return []string{
		"volcano.sh/queue-name", "kueue.x-k8s.io/local-queue-name", "kueue.x-k8s.io/queue-name", "kai.scheduler/queue",
		"kueue.x-k8s.io/cluster-queue-name",
	}
}

// trainingKinds are the kinds by the names of the operator's controllers.
func trainingKinds() map[string]string {
	return map[string]string{
		"pytorchjob-controller": "PyTorchJob", "tfjob-controller": "TFJob", "xgboostjob-controller": "XGBoostJob", "paddlejob-controller": "PaddleJob",
		"jaxjob-controller": "JAXJob", "mpijob-controller": "MPIJob", "mpi-operator": "MPIJob",
	}
}

// podGroupName returns the PodGroup of a pod, unless the pod's controller made it,
// as the Job controller does: then the pod has an owner reference to it.
func podGroupName(pod *corev1.Pod) string {
	group := pod.Spec.SchedulingGroup
	if group == nil || group.PodGroupName == nil || slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.Kind == podGroupKind && owner.Name == *group.PodGroupName
	}) {
		return ""
	}
	return *group.PodGroupName
}

func statefulSetName(pod *corev1.Pod) string {
	if owner := controller(pod); owner.Kind == "StatefulSet" {
		return owner.Name
	}
	return ""
}

// deploymentName returns the Deployment of a pod: its ReplicaSet is called
// <deployment>-<hash>, and the pod is labelled with the hash.
func deploymentName(pod *corev1.Pod) string {
	owner, hash := controller(pod), pod.Labels[podTemplateHash]
	name, cut := strings.CutSuffix(owner.Name, "-"+hash)
	if owner.Kind != "ReplicaSet" || hash == "" || !cut {
		return ""
	}
	return name
}

// controllerName returns the controller of a pod. That of a static pod is its node.
func controllerName(pod *corev1.Pod) string {
	if owner := controller(pod); owner.Kind != "Node" {
		return owner.Name
	}
	return ""
}

// controller returns the owner that is the pod's controller; the zero value
// without one.
func controller(pod *corev1.Pod) metav1.OwnerReference {
	for _, owner := range pod.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return owner
		}
	}
	return metav1.OwnerReference{}
}

// Workloads determines the workloads of pods. It is immutable.
type Workloads struct {
	rows   []framework
	queues []string
	keys   []string // all labels and annotations that are read
}

// workloadKind is the kind of workloads that only have a name.
const workloadKind = "Workload"

// NewWorkloads returns Workloads that know the table of frameworks, and before it
// the keys of labels or annotations that are used in one cluster alone. Their texts
// are such as name=example.com/run, each with one field. The field name is required
// if there is any.
func NewWorkloads(keys ...string) (*Workloads, error) {
	row, queue := framework{kind: workloadKind}, ""
	byField := map[string]*string{
		"name": &row.name, "kind": &row.kindKey, "role": &row.role, "replica": &row.replica, "rank": &row.rank, "size": &row.size, "queue": &queue,
	}
	for _, text := range keys {
		field, key, found := strings.Cut(text, "=")
		at := byField[field]
		switch faults := validation.IsQualifiedName(key); {
		case !found:
			return nil, fmt.Errorf("%q is not FIELD=KEY, such as name=example.com/run", text)
		case at == nil:
			return nil, fmt.Errorf("%q: there is no field %q; the fields are name, kind, role, replica, rank, size and queue", text, field)
		case *at != "":
			return nil, fmt.Errorf("%q: the field %s has the key %s already", text, field, *at)
		case len(faults) > 0:
			return nil, fmt.Errorf("%q: %q is not the key of a label or annotation: %s", text, key, faults[0])
		}
		*at = key
	}
	w := &Workloads{rows: frameworks(), queues: queueKeys()}
	switch {
	case row.name != "":
		w.rows = append([]framework{row}, w.rows...)
		w.queues = append([]string{queue}, w.queues...)
	case len(keys) > 0:
		return nil, errors.New("the field name is missing: add name=KEY, the key of the workload's name")
	}
	w.keys = w.allKeys()
	return w, nil
}

// DefaultWorkloads returns Workloads that know the table of frameworks alone.
func DefaultWorkloads() *Workloads {
	w := &Workloads{rows: frameworks(), queues: queueKeys()}
	w.keys = w.allKeys()
	return w
}

func (w *Workloads) allKeys() []string {
	keys := append(slices.Clone(w.queues), podTemplateHash)
	for i := range w.rows {
		row := &w.rows[i]
		keys = append(keys, row.needs, row.kindKey, row.name, row.role, row.replica, row.rank, row.size)
	}
	slices.Sort(keys)
	return slices.Compact(slices.DeleteFunc(keys, func(key string) bool { return key == "" }))
}

// member returns the workload of a pod and the pod's place in it. It neither keeps
// nor changes anything of the pod.
func (w *Workloads) member(pod *corev1.Pod) dra.Member {
	var member dra.Member
	var workload dra.Workload
	for i := range w.rows {
		row := &w.rows[i]
		name := row.workload(pod)
		if name == "" {
			continue
		}
		if workload.Name == "" {
			workload.Name, workload.Kind = name, row.workloadKind(pod)
		}
		inner := row.member(pod, name)
		member.Role, member.Replica, member.Rank = cmp.Or(member.Role, inner.Role), cmp.Or(member.Replica, inner.Replica), cmp.Or(member.Rank, inner.Rank)
		member.Size = cmp.Or(member.Size, inner.Size)
	}
	if workload.Name == "" {
		return dra.Member{}
	}
	for _, key := range w.queues {
		workload.Queue = cmp.Or(workload.Queue, podValue(pod, key))
	}
	member.Workload = &workload
	return member
}

// workload returns the name of the pod's workload; empty if the pod is none of the
// framework's.
func (f *framework) workload(pod *corev1.Pod) string {
	switch {
	case f.needs != "" && podValue(pod, f.needs) == "":
		return ""
	case f.object != nil:
		return shortText(f.object(pod), maxName)
	default:
		return podValue(pod, f.name)
	}
}

func (f *framework) workloadKind(pod *corev1.Pod) string {
	value := podValue(pod, f.kindKey)
	if f.kinds != nil {
		value = f.kinds[value]
	}
	return cmp.Or(value, f.kind, shortText(controller(pod).Kind, maxName))
}

func (f *framework) member(pod *corev1.Pod, workload string) dra.Member {
	m := dra.Member{Role: podValue(pod, f.role), Replica: podValue(pod, f.replica), Rank: podValue(pod, f.rank)}
	if size, err := strconv.ParseInt(podValue(pod, f.size), 10, 32); err == nil && size > 0 {
		m.Size = int32(size)
	}
	if f.roleOf != nil {
		m.Role = f.roleOf(workload, m)
	}
	return m
}

// podValue returns the value of a pod's label, else that of its annotation.
func podValue(pod *corev1.Pod, key string) string {
	if key == "" {
		return ""
	}
	return shortText(cmp.Or(pod.Labels[key], pod.Annotations[key]), maxName)
}

package fit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/objectfields"
)

// Limits of a manifest. A file of a few kilobytes can describe gigabytes: by aliases,
// and by Lists in Lists.
const (
	maxManifest = 4 << 20  // bytes of a file: the API server takes no larger objects
	maxExpanded = 16 << 20 // bytes of a document with all aliases resolved, and nodeCost for each value
	nodeCost    = 16
	maxName     = 253    // bytes of a name
	maxDepth    = 100    // of values in values
	maxLists    = 4      // Lists in Lists
	maxObjects  = 10_000 // documents, and items of Lists
)

// Manifest is what a file describes: one kind of pods, and what they refer to.
type Manifest struct {
	Kind, Namespace, Name string // of the object that the pods belong to
	Pod                   corev1.PodTemplateSpec
	Count                 int // of pods; 1 if the object does not say

	// Templates and Claims are those of the file, by name: they are in the namespace of
	// the pods.
	Templates map[string]*resourcev1.ResourceClaimTemplate
	Claims    map[string]*resourcev1.ResourceClaim

	// NotConsidered is what the object has besides these pods.
	NotConsidered []string
}

// manifestObject has the fields of all kinds of objects that make pods, as far as they are
// read: Job, Deployment, StatefulSet, ReplicaSet, ReplicationController, CronJob,
// JobSet and LeaderWorkerSet.
type manifestObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Replicas    *int32                  `json:"replicas"`
		Parallelism *int32                  `json:"parallelism"`
		Completions *int32                  `json:"completions"`
		Template    *corev1.PodTemplateSpec `json:"template"`
		Volumes     []rawObject             `json:"volumeClaimTemplates"` // of a StatefulSet
		JobTemplate *struct {
			Spec jobSpec `json:"spec"`
		} `json:"jobTemplate"`
		ReplicatedJobs []struct {
			Name     string `json:"name"`
			Replicas *int32 `json:"replicas"`
			Template struct {
				Spec jobSpec `json:"spec"`
			} `json:"template"`
		} `json:"replicatedJobs"`
		LeaderWorkerTemplate *struct {
			Size           *int32                  `json:"size"`
			WorkerTemplate *corev1.PodTemplateSpec `json:"workerTemplate"`
			LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

type jobSpec struct {
	Parallelism *int32                  `json:"parallelism"`
	Completions *int32                  `json:"completions"`
	Template    *corev1.PodTemplateSpec `json:"template"`
}

// pods is one kind of pods of an object, and how many of them run at once.
type pods struct {
	template *corev1.PodTemplateSpec
	count    int
}

// Decode reads YAML or JSON with one object that is a pod or makes pods of one kind,
// and the claims and templates that they refer to; any other object is ignored.
func Decode(r io.Reader) (*Manifest, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return nil, fmt.Errorf("read the manifest: %w", err)
	}
	if len(text) > maxManifest {
		return nil, fmt.Errorf("the manifest has more than %d bytes", maxManifest)
	}
	if err := objectfields.CheckYAML(text, objectfields.Max, maxExpanded); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	reading := &decodedManifest{manifest: &Manifest{Templates: map[string]*resourcev1.ResourceClaimTemplate{}, Claims: map[string]*resourcev1.ResourceClaim{}}}
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = reading.addDocument(document)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d of the manifest: %w", number, err)
		}
	}
	if reading.manifest.Kind == "" {
		if len(reading.ignored) > 0 {
			return nil, fmt.Errorf("the manifest has no pod and nothing that makes pods: it has %s", strings.Join(reading.ignored, ", "))
		}
		return nil, errors.New("the manifest is empty: it needs a Pod, a Job or another object that makes pods")
	}
	return reading.manifest, nil
}

// decodedManifest is a manifest of which a part is decoded.
type decodedManifest struct {
	manifest *Manifest
	ignored  []string // kinds of objects, at most mostIgnored of them
	objects  int
}

const mostIgnored = 8

// addDocument adds a document of a file.
func (r *decodedManifest) addDocument(document []byte) error {
	if strings.TrimSpace(stripComments(document)) == "" {
		return nil
	}
	object, err := yaml.YAMLToJSON(document)
	if err != nil {
		return err
	}
	return r.add(object, 0)
}

// add adds an object, which may be a List in so many Lists.
func (r *decodedManifest) add(object []byte, lists int) error {
	if r.objects++; r.objects > maxObjects {
		return fmt.Errorf("the manifest has more than %d objects", maxObjects)
	}
	var kind struct {
		metav1.TypeMeta `json:",inline"`

		Items []rawObject `json:"items"`
	}
	if err := json.Unmarshal(object, &kind); err != nil {
		return err
	}
	if len(kind.Items) > 0 && lists == maxLists {
		return fmt.Errorf("it has Lists in more than %d Lists", maxLists)
	}
	for _, item := range kind.Items {
		if err := r.add(item, lists+1); err != nil {
			return err
		}
	}
	switch {
	case len(kind.Items) > 0:
		return nil
	case kind.Kind == "":
		return errors.New("it has no kind: it is no Kubernetes object")
	}
	return r.addObject(kind.Kind, object)
}

// rawObject is an object that is not decoded yet.
type rawObject []byte

// UnmarshalJSON keeps the text.
func (o *rawObject) UnmarshalJSON(text []byte) error {
	*o = bytes.Clone(text)
	return nil
}

// stripComments removes lines that are comments or separators.
func stripComments(document []byte) string {
	lines := slices.DeleteFunc(strings.Split(string(document), "\n"), func(line string) bool {
		line = strings.TrimSpace(line)
		return strings.HasPrefix(line, "#") || line == "---"
	})
	return strings.Join(lines, "\n")
}

func (r *decodedManifest) addObject(kind string, text []byte) error {
	m := r.manifest
	switch kind {
	case "ResourceClaimTemplate":
		object := &resourcev1.ResourceClaimTemplate{}
		if err := unmarshal(kind, text, object); err != nil {
			return err
		}
		decode.LimitQuantities(object)
		m.Templates[object.Name] = object
	case "ResourceClaim":
		object := &resourcev1.ResourceClaim{}
		if err := unmarshal(kind, text, object); err != nil {
			return err
		}
		decode.LimitQuantities(object)
		m.Claims[object.Name] = object
	case "Pod":
		object := &corev1.Pod{}
		if err := unmarshal(kind, text, object); err != nil {
			return err
		}
		return m.setPods(kind, object.ObjectMeta, []pods{{&corev1.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}, 1}})
	default:
		object := &manifestObject{}
		if err := unmarshal(kind, text, object); err != nil {
			return err
		}
		if all := object.pods(); len(all) > 0 {
			if kind == "DaemonSet" {
				return errors.New("a DaemonSet runs one pod on each of its nodes: how many these are is not counted; use a manifest of one such pod")
			}
			if err := m.setPods(kind, object.ObjectMeta, all); err != nil {
				return err
			}
			if len(object.Spec.Volumes) > 0 {
				m.NotConsidered = append(m.NotConsidered, "volumeClaimTemplates")
			}
			m.NotConsidered = append(m.NotConsidered, placementAnnotations(object.Annotations)...)
			return nil
		}
		if len(r.ignored) < mostIgnored {
			r.ignored = append(r.ignored, kind)
		}
	}
	return nil
}

func unmarshal(kind string, text []byte, target any) error {
	if err := json.Unmarshal(text, target); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return nil
}

// setPods takes the pods of an object: one kind of them.
func (m *Manifest) setPods(kind string, object metav1.ObjectMeta, all []pods) error {
	name := strings.TrimSuffix(cmp.Or(object.Name, object.GenerateName), "-")
	for _, text := range []string{kind, object.Namespace, name} {
		if len(text) > maxName || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
			return fmt.Errorf("%q is no name of a kind, a namespace or an object", text[:min(len(text), 40)])
		}
	}
	if m.Kind != "" {
		return fmt.Errorf("%s %s: the manifest has pods of %s %s already, and one kind of pods can be looked at", kind, name, m.Kind, m.Name)
	}
	kinds := len(all)
	matching := slices.DeleteFunc(all, func(p pods) bool {
		return len(p.template.Spec.ResourceClaims) == 0 && !requestsExtended(&p.template.Spec)
	})
	switch len(matching) {
	case 0:
		return fmt.Errorf("the pods of %s %s use no claims", kind, name)
	case 1:
	default:
		if !slices.ContainsFunc(matching[1:], func(p pods) bool { return !sameRequests(p.template, matching[0].template) }) {
			for _, more := range matching[1:] {
				matching[0].count = sum(matching[0].count, more.count)
			}
			break
		}
		return fmt.Errorf("%s %s has pods of %d kinds with claims: look at each kind by itself", kind, name, len(matching))
	}
	if kinds > len(matching) {
		m.NotConsidered = append(m.NotConsidered, "its pods without claims")
	}
	m.Kind, m.Namespace, m.Name, m.Pod, m.Count = kind, object.Namespace, name, *matching[0].template, matching[0].count
	return nil
}

// sameRequests reports whether pods of two templates are the same to a scheduler.
func sameRequests(a, b *corev1.PodTemplateSpec) bool {
	decisive := func(t *corev1.PodTemplateSpec) *corev1.PodTemplateSpec {
		kept := t.DeepCopy()
		kept.Name, kept.Annotations = "", nil
		for container := range containers(&kept.Spec) {
			*container = corev1.Container{Resources: container.Resources, RestartPolicy: container.RestartPolicy, Ports: container.Ports}
		}
		return kept
	}
	return equality.Semantic.DeepEqual(decisive(a), decisive(b))
}

// pods returns the kinds of pods that an object makes.
func (w *manifestObject) pods() []pods {
	var all []pods
	add := func(template *corev1.PodTemplateSpec, count int) {
		if template != nil && len(template.Spec.Containers) > 0 {
			all = append(all, pods{template, max(count, 1)})
		}
	}
	spec := &w.Spec
	add(spec.Template, jobSpec{Parallelism: cmp.Or(spec.Parallelism, spec.Replicas), Completions: spec.Completions}.count())
	if spec.JobTemplate != nil {
		add(spec.JobTemplate.Spec.Template, spec.JobTemplate.Spec.count())
	}
	for i := range spec.ReplicatedJobs {
		job := &spec.ReplicatedJobs[i]
		add(job.Template.Spec.Template, product(job.Template.Spec.count(), number(job.Replicas)))
	}
	if group := spec.LeaderWorkerTemplate; group != nil {
		replicas, size := number(spec.Replicas), number(group.Size)
		if group.LeaderTemplate == nil {
			add(group.WorkerTemplate, product(replicas, size))
		} else {
			add(group.LeaderTemplate, replicas)
			if size > 1 {
				add(group.WorkerTemplate, product(replicas, size-1))
			}
		}
	}
	return all
}

// count is how many pods run at once: no more than are left to complete.
func (j jobSpec) count() int {
	count := number(j.Parallelism)
	if j.Completions != nil {
		count = min(count, int(*j.Completions))
	}
	return max(count, 1)
}

func number(n *int32) int {
	if n == nil {
		return 1
	}
	return max(int(*n), 0)
}

// sum adds counts, up to the largest there is. None is negative.
func sum[number int | int64](a, b number) number {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// product multiplies counts, up to the largest there is. None is negative.
func product(a, b int) int {
	high, low := bits.Mul64(uint64(a), uint64(b))
	if high > 0 || low > math.MaxInt {
		return math.MaxInt
	}
	return int(low)
}

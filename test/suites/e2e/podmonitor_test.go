package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// monitorJob returns the scrape job that the Prometheus operator creates from
// the shipped PodMonitor of the node role, with another interval.
func monitorJob(t *testing.T, interval time.Duration) object {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/kustomize/components/podmonitor/podmonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var of monitor
	if err := yaml.UnmarshalStrict(text, &of); err != nil {
		t.Fatal(err)
	}
	return of.job(t, interval)
}

// job returns the scrape job that the Prometheus operator creates from a
// monitor with one endpoint, with another interval if one is given.
func (m monitor) job(t *testing.T, interval time.Duration) object {
	t.Helper()
	endpoint, role, targets := m.targets(t)
	if interval == 0 {
		interval = atMost(t, endpoint.Interval, time.Hour)
	}
	relabel := slices.Concat(targets, []object{{"replacement": endpoint.Port, "target_label": "endpoint"}})
	for _, own := range endpoint.Relabelings {
		relabel = append(relabel, own.job())
	}
	return object{
		"job_name":                         fmt.Sprintf("%s%s/%s/%s/0", strings.ToLower(m.Kind[:1]), m.Kind[1:], m.Metadata["namespace"], m.Metadata["name"]),
		"honor_labels":                     endpoint.HonorLabels,
		"metrics_path":                     endpoint.Path,
		"scrape_interval":                  interval.String(),
		"scrape_timeout":                   atMost(t, endpoint.ScrapeTimeout, interval).String(),
		"always_scrape_classic_histograms": m.Spec.ScrapeClassicHistograms,
		"relabel_configs":                  relabel,
		"kubernetes_sd_configs": []object{{
			"role": role, "kubeconfig_file": shared.Kubeconfig(),
			"namespaces": object{"names": []any{m.Metadata["namespace"]}},
		}},
	}
}

// targets returns the monitor's endpoint, the role of its service discovery,
// and the operator's own relabelings, which come before the monitor's.
func (m monitor) targets(t *testing.T) (endpoint monitorEndpoint, role string, relabel []object) {
	t.Helper()
	endpoints, role, labelled, port := m.Spec.PodEndpoints, "pod", "pod", "pod_container_port_name"
	if m.Kind == "ServiceMonitor" {
		endpoints, role, labelled, port = m.Spec.ServiceEndpoints, "endpointslice", "service", "endpointslice_port_name"
	}
	if len(endpoints) != 1 {
		t.Fatalf("%s %s has %d endpoints", m.Kind, m.Metadata["name"], len(endpoints))
	}
	copied := func(from, to string) object {
		return object{"source_labels": []string{"__meta_kubernetes_" + from}, "target_label": to}
	}
	keep := func(label, value string) object {
		return object{"source_labels": []string{"__meta_kubernetes_" + label}, "regex": value, "action": "keep"}
	}
	relabel = append(relabel, object{"source_labels": []string{"__meta_kubernetes_pod_phase"}, "regex": "(Failed|Succeeded)", "action": "drop"})
	for label, value := range m.Spec.Selector.MatchLabels {
		relabel = append(relabel, keep(labelled+metaLabel(label), value))
	}
	relabel = append(relabel, keep(port, endpoints[0].Port))
	if m.Kind == "ServiceMonitor" {
		relabel = append(relabel, copied("service_name", "service"), copied("service_name", "job"))
	}
	relabel = append(relabel, copied("namespace", "namespace"), copied("pod_container_name", "container"), copied("pod_name", "pod"))
	return endpoints[0], role, append(relabel, copied(labelled+metaLabel(m.Spec.JobLabel), "job"))
}

// atMost parses a duration and limits it.
func atMost(t *testing.T, text string, most time.Duration) time.Duration {
	t.Helper()
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return min(duration, most)
}

func metaLabel(label string) string {
	return "_label_" + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(label)
}

// monitor has all keys of our PodMonitors and ServiceMonitors. Other keys are
// errors, because they would be missing from the job.
type monitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   object `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		JobLabel                string            `json:"jobLabel"`
		ScrapeClassicHistograms bool              `json:"scrapeClassicHistograms"`
		PodEndpoints            []monitorEndpoint `json:"podMetricsEndpoints"`
		ServiceEndpoints        []monitorEndpoint `json:"endpoints"`
	} `json:"spec"`
}

type monitorEndpoint struct {
	Port          string       `json:"port"`
	Path          string       `json:"path"`
	Interval      string       `json:"interval"`
	ScrapeTimeout string       `json:"scrapeTimeout"`
	HonorLabels   bool         `json:"honorLabels"`
	Relabelings   []relabeling `json:"relabelings"`
}

type relabeling struct {
	SourceLabels []string `json:"sourceLabels"`
	TargetLabel  string   `json:"targetLabel"`
	Action       string   `json:"action"`
	Regex        string   `json:"regex"`
	Replacement  string   `json:"replacement"`
}

// job returns the relabeling in Prometheus' format.
func (r relabeling) job() object {
	all := object{"source_labels": r.SourceLabels, "target_label": r.TargetLabel, "action": r.Action, "regex": r.Regex, "replacement": r.Replacement}
	for key, value := range all {
		if text, isText := value.(string); isText && text == "" || !isText && len(r.SourceLabels) == 0 {
			delete(all, key)
		}
	}
	return all
}

// hostJob scrapes an agent on the host, as the PodMonitor does except for the
// address.
func hostJob(a *hostAgent, interval time.Duration) object {
	return object{
		"job_name": "dra-exporter", "honor_labels": true, "scrape_interval": interval.String(), "scrape_timeout": interval.String(),
		"static_configs": []object{{
			"targets": []string{strings.TrimSuffix(strings.TrimPrefix(a.url, "http://"), "/")},
			"labels":  object{"instance": shared.NodeName()},
		}},
	}
}

// clusterJob scrapes a cluster role on the host, as its PodMonitor does except
// for the address.
func clusterJob(url string, interval time.Duration) object {
	return object{
		"job_name": "cluster-role", "honor_labels": true, "scrape_interval": interval.String(), "scrape_timeout": interval.String(),
		"static_configs": []object{{
			"targets": []string{strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")},
			"labels":  object{"job": "dra-exporter", "instance": "cluster"},
		}},
	}
}

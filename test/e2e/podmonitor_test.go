package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// monitorJob is the scrape job that the Prometheus operator makes of the shipped
// PodMonitor of the node role, but for the interval.
func monitorJob(t *testing.T, interval time.Duration) object {
	t.Helper()
	text, err := os.ReadFile("../../deploy/kustomize/components/podmonitor/podmonitor.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var monitor podMonitor
	if err := yaml.UnmarshalStrict(text, &monitor); err != nil {
		t.Fatal(err)
	}
	endpoint := monitor.Spec.Endpoints[0]
	relabel := []object{{"source_labels": []string{"__meta_kubernetes_pod_phase"}, "regex": "(Failed|Succeeded)", "action": "drop"}}
	for label, value := range monitor.Spec.Selector.MatchLabels {
		relabel = append(relabel, object{"source_labels": []string{metaLabel(label)}, "regex": value, "action": "keep"})
	}
	relabel = append(relabel,
		object{"source_labels": []string{"__meta_kubernetes_pod_container_port_name"}, "regex": endpoint.Port, "action": "keep"},
		object{"source_labels": []string{"__meta_kubernetes_namespace"}, "target_label": "namespace"},
		object{"source_labels": []string{"__meta_kubernetes_pod_container_name"}, "target_label": "container"},
		object{"source_labels": []string{"__meta_kubernetes_pod_name"}, "target_label": "pod"},
		object{"source_labels": []string{metaLabel(monitor.Spec.JobLabel)}, "target_label": "job"},
		object{"replacement": endpoint.Port, "target_label": "endpoint"},
	)
	for _, own := range endpoint.Relabelings {
		relabel = append(relabel, own.job())
	}
	return object{
		"job_name":                         "podMonitor/" + monitor.Metadata["namespace"].(string) + "/" + monitor.Metadata["name"].(string),
		"honor_labels":                     endpoint.HonorLabels,
		"metrics_path":                     endpoint.Path,
		"scrape_interval":                  interval.String(),
		"scrape_timeout":                   noLonger(t, endpoint.ScrapeTimeout, interval).String(),
		"always_scrape_classic_histograms": monitor.Spec.ScrapeClassicHistograms,
		"relabel_configs":                  relabel,
		"kubernetes_sd_configs": []object{{
			"role": "pod", "kubeconfig_file": shared.Kubeconfig(),
			"namespaces": object{"names": []any{monitor.Metadata["namespace"]}},
		}},
	}
}

// noLonger is a duration, or another that it must not exceed.
func noLonger(t *testing.T, text string, most time.Duration) time.Duration {
	t.Helper()
	duration, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return min(duration, most)
}

func metaLabel(label string) string {
	return "__meta_kubernetes_pod_label_" + strings.NewReplacer(".", "_", "/", "_", "-", "_").Replace(label)
}

// podMonitor is what the shipped file says, and no more: a key that is not here
// would be missing from the job.
type podMonitor struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   object `json:"metadata"`
	Spec       struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		} `json:"selector"`
		JobLabel                string            `json:"jobLabel"`
		ScrapeClassicHistograms bool              `json:"scrapeClassicHistograms"`
		Endpoints               []monitorEndpoint `json:"podMetricsEndpoints"`
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
}

// job is the relabeling as Prometheus spells it.
func (r relabeling) job() object {
	all := object{"source_labels": r.SourceLabels, "target_label": r.TargetLabel, "action": r.Action, "regex": r.Regex}
	for key, value := range all {
		if text, isText := value.(string); isText && text == "" || !isText && len(r.SourceLabels) == 0 {
			delete(all, key)
		}
	}
	return all
}

// hostJob scrapes an agent on the host, as the PodMonitor does but for where it is.
func hostJob(a *hostAgent, interval time.Duration) object {
	return object{
		"job_name": "dra-exporter", "honor_labels": true, "scrape_interval": interval.String(), "scrape_timeout": interval.String(),
		"static_configs": []object{{
			"targets": []string{strings.TrimSuffix(strings.TrimPrefix(a.url, "http://"), "/")},
			"labels":  object{"instance": shared.NodeName()},
		}},
	}
}

// clusterJob scrapes a cluster role on the host, as its PodMonitor does but for
// where it is.
func clusterJob(url string, interval time.Duration) object {
	return object{
		"job_name": "cluster-role", "honor_labels": true, "scrape_interval": interval.String(), "scrape_timeout": interval.String(),
		"static_configs": []object{{
			"targets": []string{strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/")},
			"labels":  object{"job": "dra-exporter", "instance": "cluster"},
		}},
	}
}

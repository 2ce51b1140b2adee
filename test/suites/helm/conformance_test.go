package helm

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const conformance = root + "/deploy/conformance/"

// TestConformanceValues: with these values, dcgm-exporter's Service and label lead to
// agents that export its names, at its port.
func TestConformanceValues(t *testing.T) {
	for _, in := range []install{{}, {release: "metrics", namespace: "monitoring"}} {
		in.values = read(t, conformance+"values.yaml")
		out := render(t, in)
		namespace, name := or(in.namespace, "dra-exporter"), "dra-exporter"
		if in.release != "" {
			name = in.release + "-dra-exporter"
		}
		agent := out.need(t, "DaemonSet/"+namespace+"/"+name+"-node")
		if arguments := texts(agent.container(t)["args"]); !slices.Contains(arguments, "--metrics.dcgm=split") {
			t.Errorf("the agent has the arguments %q", arguments)
		}
		labels, _ := agent.at("spec", "template", "metadata", "labels").(map[string]any)
		if labels["app"] != "nvidia-dcgm-exporter" {
			t.Errorf("the agent has the labels %v", labels)
		}
		alias := out.need(t, "Service/gpu-operator/nvidia-dcgm-exporter")
		target := name + "-dcgm-names." + namespace + ".svc.cluster.local"
		if alias.text("spec", "type") != "ExternalName" || alias.text("spec", "externalName") != target {
			t.Errorf("the name leads to %v, not to %s", alias.at("spec"), target)
		}
		service := out.need(t, "Service/"+namespace+"/"+name+"-dcgm-names")
		selector, _ := service.at("spec", "selector").(map[string]any)
		for key, value := range selector {
			if labels[key] != value {
				t.Errorf("the agent has %s=%v, and the Service selects %v", key, labels[key], value)
			}
		}
		ports, _ := service.at("spec", "ports").([]any)
		if len(selector) == 0 || len(ports) != 1 || ports[0].(map[string]any)["port"] != float64(9400) || ports[0].(map[string]any)["targetPort"] != "metrics" {
			t.Errorf("the Service is %v", service.at("spec"))
		}
	}
}

// TestConformanceAdapter: the adapter's values have the metrics that the script asks for,
// and no other keys than rules have.
func TestConformanceAdapter(t *testing.T) {
	type resource struct {
		Resource string `json:"resource"`
	}
	type rule struct {
		SeriesQuery string `json:"seriesQuery"`
		Resources   struct {
			Overrides  map[string]resource `json:"overrides"`
			Namespaced *bool               `json:"namespaced"`
		} `json:"resources"`
		Name         map[string]string `json:"name"`
		MetricsQuery string            `json:"metricsQuery"`
	}
	var values struct {
		Prometheus struct {
			URL  string `json:"url"`
			Port int    `json:"port"`
		} `json:"prometheus"`
		Rules struct {
			Default  *bool  `json:"default"`
			Custom   []rule `json:"custom"`
			External []rule `json:"external"`
		} `json:"rules"`
	}
	if err := yaml.UnmarshalStrict([]byte(read(t, conformance+"prometheus-adapter.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	script := read(t, conformance+"check.sh")
	for _, rule := range append(slices.Clone(values.Rules.Custom), values.Rules.External...) {
		if !strings.Contains(script, rule.Name["as"]) || !strings.Contains(rule.SeriesQuery, "DCGM_FI_DEV_") || !strings.Contains(rule.MetricsQuery, "<<.LabelMatchers>>") {
			t.Errorf("a rule is %+v", rule)
		}
	}
	for _, rule := range values.Rules.Custom {
		if rule.Resources.Overrides["namespace"].Resource != "namespace" || rule.Resources.Overrides["pod"].Resource != "pod" {
			t.Errorf("a rule is not for pods: %+v", rule)
		}
	}
	if len(values.Rules.Custom) != 3 || len(values.Rules.External) != 1 || values.Rules.Default == nil || *values.Rules.Default {
		t.Errorf("the rules are %+v", values.Rules)
	}
}

{{/* Texts of NOTES.txt, by topic. Each sentence is printed only if it applies. */}}

{{- define "dra-exporter.notes.see" -}}
{{- $name := include "dra-exporter.fullname" . -}}
{{- $ns := include "dra-exporter.namespace" . -}}
{{- $scheme := ternary "https" "http" .Values.web.tls -}}
{{- if .Values.node.enabled }}
  kubectl -n {{ $ns }} rollout status daemonset/{{ $name }}-node
  kubectl -n {{ $ns }} port-forward daemonset/{{ $name }}-node 9420 &
  curl -s {{ $scheme }}://localhost:9420/metrics | grep ^dra_exporter_source_up   # or open {{ $scheme }}://localhost:9420
{{- end }}
{{- if .Values.cluster.enabled }}
  kubectl -n {{ $ns }} rollout status deployment/{{ $name }}-cluster
  kubectl -n {{ $ns }} port-forward deployment/{{ $name }}-cluster 9421 &
  curl -s {{ $scheme }}://localhost:9421/metrics | grep ^dra_exporter_source_up   # or open {{ $scheme }}://localhost:9421
{{- end }}
{{- if .Values.web.kubernetesAuth.enabled }}
  curl also needs a token: -H "Authorization: Bearer $(kubectl create token ACCOUNT)"; bind the account of your
  Prometheus to the ClusterRole {{ $name }}-metrics-reader.
{{- end }}
{{- if .Values.web.configSecret }}
  curl also needs the settings of web.yaml: --cacert or -k with TLS, -u with a password.
{{- else if .Values.node.enabled }}
  dra-exporter top   # with your kubeconfig: all claims and their use
{{- end }}
{{- if include "dra-exporter.tests.enabled" . }}
  helm test {{ .Release.Name }} -n {{ .Release.Namespace }}
{{- end }}
{{- end -}}

{{- define "dra-exporter.notes.monitoring" -}}
{{- $monitoring := .Values.monitoring -}}
{{- if include "dra-exporter.monitoring.enabled" . }}
  {{- if eq $monitoring.kind "ClusterPodMonitoring" }}
  The ClusterPodMonitoring is dra-exporter.
  {{- else }}
  {{ $monitoring.kind }}s are in the namespace {{ default (include "dra-exporter.namespace" .) $monitoring.namespace }}.
  {{- if eq $monitoring.kind "VMPodScrape" }}
  They are selected by a VMAgent that selects all, or whose podScrapeSelector requires their labels.
  {{- else }}
  {{- include "dra-exporter.notes.labels" (dict "labels" $monitoring.labels "key" "monitoring.labels" "selector" (ternary "podMonitorSelector" "serviceMonitorSelector" (eq $monitoring.kind "PodMonitor"))) }}
  {{- end }}
  {{- end }}
{{- else }}
  {{- if eq (toString $monitoring.enabled) "auto" }}
  There is no {{ $monitoring.kind }}: the cluster did not have the operator's kind when this was
  rendered. After its installation, helm upgrade creates them; if manifests are rendered without a cluster,
  set monitoring.enabled=true.
  {{- else }}
  There is no {{ $monitoring.kind }}: monitoring.enabled is false.
  {{- end }}
  A scrape configuration for Prometheus itself (it needs honor_labels, and instance by node):
  https://github.com/dra-exporter/dra-exporter/blob/main/deploy/helm/dra-exporter/README.md#prometheus-without-the-operator
{{- end }}
{{- end -}}

{{- define "dra-exporter.notes.rules" -}}
{{- $rules := .Values.rules -}}
{{- if include "dra-exporter.rules.enabled" . }}
  Recording rules and alerts are the {{ include "dra-exporter.rules.kind" . }} {{ include "dra-exporter.fullname" . }} in {{ default (include "dra-exporter.namespace" .) $rules.namespace }}.
  {{- if eq .Values.monitoring.kind "VMPodScrape" }}
  It is selected by a VMAlert that selects all, or whose ruleSelector requires its labels.
  {{- else }}
  {{- include "dra-exporter.notes.labels" (dict "labels" $rules.labels "key" "rules.labels" "selector" "ruleSelector") }}
  {{- end }}
{{- else if eq (toString $rules.enabled) "false" }}
  There are no rules and alerts: rules.enabled is false. Dashboards need the recording rules.
{{- else if not .Values.cluster.enabled }}
  Rules and alerts belong to the release with the cluster role.
{{- else if not .Values.monitoring.honorLabels }}
  There are no rules and alerts, because monitoring.honorLabels is false: `make exported` of the repository
  writes them for the labels of claims in this case. Dashboards need the recording rules.
{{- else }}
  There are no rules and alerts: {{ with include "dra-exporter.rules.kind" . }}the cluster did not have the operator's kind {{ . }}{{ else }}with ClusterPodMonitoring an instance is not named after its node{{ end }}. Dashboards
  need the recording rules. As files for Prometheus itself:
  https://github.com/dra-exporter/dra-exporter/tree/main/alerts
{{- end }}
{{- end -}}

{{/* dict labels, key, selector. */}}
{{- define "dra-exporter.notes.labels" -}}
{{- if .labels }}
  They are selected by a Prometheus whose {{ .selector }} requires no more than {{ range $i, $k := keys .labels | sortAlpha }}{{ if $i }}, {{ end }}{{ $k }}={{ get $.labels $k }}{{ end }}.
{{- else }}
  A Prometheus whose {{ .selector }} requires labels ignores them: kube-prometheus-stack requires
  release=<its own release>. See: kubectl get prometheus -A -o jsonpath='{.items[*].spec.{{ .selector }}}'
  and set them: --set {{ .key }}.release=kube-prometheus-stack
{{- end }}
{{- end -}}

{{- define "dra-exporter.notes.otlp" -}}
{{- if .Values.otlp.endpoint }}
  All metrics{{ if .Values.cluster.enabled }}, and a trace of each claim,{{ end }} are pushed to {{ .Values.otlp.endpoint }}. A backend that also
  gets the scrapes has all data twice.
{{- end }}
{{- end -}}

{{- define "dra-exporter.notes.dashboards" -}}
{{- $dashboards := .Values.dashboards -}}
{{- $labels := default (dict "grafana_dashboard" "1") $dashboards.labels -}}
{{- if and (include "dra-exporter.dashboards.enabled" .) (eq $dashboards.kind "GrafanaDashboard") }}
  Dashboards are GrafanaDashboards in {{ default (include "dra-exporter.namespace" .) $dashboards.namespace }}, for a Grafana that dashboards.instanceSelector selects.
{{- else if include "dra-exporter.dashboards.enabled" . }}
  Dashboards are ConfigMaps in {{ default (include "dra-exporter.namespace" .) $dashboards.namespace }}{{ with $labels }}, labelled {{ range $i, $k := keys . | sortAlpha }}{{ if $i }}, {{ end }}{{ $k }}={{ get $labels $k }}{{ end }}{{ end }}. The sidecar of Grafana's
  charts imports them if it is on (sidecar.dashboards.enabled) and sees that namespace
  (sidecar.dashboards.searchNamespace=ALL, or dashboards.namespace here).
{{- else if eq (toString $dashboards.enabled) "false" }}
  There are no dashboards: dashboards.enabled is false.
{{- else if not .Values.cluster.enabled }}
  Dashboards belong to the release with the cluster role.
{{- else if .Values.monitoring.honorLabels }}
  There are no dashboards: dashboards.labels and dashboards.namespace are not set. For the sidecar of
  Grafana's charts set dashboards.enabled=true.
{{- else }}
  There are no dashboards, because monitoring.honorLabels is false: `make exported` of the repository
  writes them for the labels of claims in this case.
{{- end }}
{{- if .Values.monitoring.honorLabels }}
  Without the sidecar import https://github.com/dra-exporter/dra-exporter/tree/main/dashboards
{{- end }}
{{- end -}}

{{/* Conditions that prevent the exporter from working, or need more privilege. */}}
{{- define "dra-exporter.notes.attention" -}}
{{- $name := include "dra-exporter.fullname" . -}}
{{- $ns := include "dra-exporter.namespace" . -}}
{{- if .Values.node.enabled }}
If DaemonSet {{ $name }}-node has no pods, or its pods stay in ContainerCreating, check the events:
  kubectl -n {{ $ns }} get daemonset {{ $name }}-node; kubectl -n {{ $ns }} get events
"violates PodSecurity": the agent mounts folders of the node, which only the level privileged allows:
  kubectl label namespace {{ $ns }} pod-security.kubernetes.io/enforce=privileged
"pod-resources is not a directory": the kubelet has another folder: set node.kubeletDir.
{{- if .Values.node.hostPID }}
node.hostPID: the agent sees the names and command lines of all processes of its node.
{{- end }}
{{- if .Values.node.podsAPI }}
node.podsAPI: an agent whose kubelet does not serve the Pods API (before Kubernetes 1.37) has no pods,
and its source "pods" is down.
{{- end }}
{{- if not .Values.node.kubernetesAPI }}
node.kubernetesAPI is false: admin access, init containers and pods' labels
are unknown.
{{- end }}
{{- with include "dra-exporter.node.capabilities" . | fromYamlArray }}
The agent has the capabilities {{ join ", " . }}.
{{- end }}
{{- if and (include "dra-exporter.openshift.enabled" .) (not .Values.node.seLinuxOptions) }}
OpenShift: if SELinux denies the agent the kubelet's socket (check reports "permission denied"), set
node.seLinuxOptions.type=spc_t.
{{- end }}
{{- end }}
{{- if and (not .Values.rbac.create) (or .Values.cluster.enabled .Values.node.kubernetesAPI) }}
rbac.create is false: without your own ClusterRoles the API server rejects the exporter's requests.
{{- end }}
{{- if and .Values.web.tls (include "dra-exporter.monitoring.enabled" .) (not .Values.monitoring.tlsConfig) }}
web.tls: Prometheus connects to pods by their address and needs the certificate's authority and name:
set monitoring.tlsConfig (ca, serverName).
{{- end }}
{{- if and .Values.web.configSecret (eq .Values.web.probes "http") }}
web.configSecret: if web.yaml requires a password or a client certificate, the kubelet's probes fail and
the pods are restarted: set web.probes=tcp.
{{- end }}
{{- end -}}

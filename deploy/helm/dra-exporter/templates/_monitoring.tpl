{{/* Whether the operator's objects are made, and what they have in common. */}}

{{/* auto: "true" or nothing. dict value, has. */}}
{{- define "dra-exporter.auto" -}}
{{- $value := toString .value -}}
{{- if or (eq $value "true") (and (eq $value "auto") .has) -}}true{{- end -}}
{{- end -}}

{{/* The group and version of monitoring.kind. */}}
{{- define "dra-exporter.monitoring.api" -}}
{{- get (dict "VMPodScrape" "operator.victoriametrics.com/v1beta1" "ClusterPodMonitoring" "monitoring.googleapis.com/v1") .Values.monitoring.kind | default "monitoring.coreos.com/v1" -}}
{{- end -}}

{{/* The kind of rules that goes with monitoring.kind; none for Google's service, which
     does not name an instance after its node. */}}
{{- define "dra-exporter.rules.kind" -}}
{{- get (dict "PodMonitor" "PrometheusRule" "ServiceMonitor" "PrometheusRule" "VMPodScrape" "VMRule") .Values.monitoring.kind -}}
{{- end -}}

{{- define "dra-exporter.monitoring.enabled" -}}
{{- include "dra-exporter.auto" (dict "value" .Values.monitoring.enabled "has" (.Capabilities.APIVersions.Has (printf "%s/%s" (include "dra-exporter.monitoring.api" .) .Values.monitoring.kind))) -}}
{{- end -}}

{{/* Rules and dashboards are there once in a cluster: with the cluster role. Those of
     the chart are made for labels that are honoured. */}}
{{- define "dra-exporter.rules.enabled" -}}
{{- include "dra-exporter.auto" (dict "value" .Values.rules.enabled "has" (and .Values.cluster.enabled .Values.monitoring.honorLabels (include "dra-exporter.rules.kind" .) (.Capabilities.APIVersions.Has (printf "%s/%s" (include "dra-exporter.monitoring.api" .) (include "dra-exporter.rules.kind" .))))) -}}
{{- end -}}

{{- define "dra-exporter.dashboards.enabled" -}}
{{- include "dra-exporter.auto" (dict "value" .Values.dashboards.enabled "has" (and .Values.cluster.enabled .Values.monitoring.honorLabels (or .Values.dashboards.labels .Values.dashboards.namespace (eq .Values.dashboards.kind "GrafanaDashboard")))) -}}
{{- end -}}

{{- define "dra-exporter.openshift.enabled" -}}
{{- if .Values.node.enabled -}}
{{- include "dra-exporter.auto" (dict "value" .Values.openshift.scc "has" (.Capabilities.APIVersions.Has "security.openshift.io/v1/SecurityContextConstraints")) -}}
{{- end -}}
{{- end -}}

{{/* rules.file: a file of rules with the thresholds in their places, which are
     <<value ALERT NAME>> or <<seconds ALERT NAME>>. dict root, file. */}}
{{- define "dra-exporter.rules.file" -}}
{{- $text := .root.Files.Get (printf "files/rules/%s.yaml" .file) -}}
{{- range regexFindAll "<<[a-z]+ [A-Za-z]+ [A-Za-z]+>>" $text -1 | uniq -}}
{{- $words := trimPrefix "<<" . | trimSuffix ">>" | splitList " " -}}
{{- $alert := index $words 1 -}}
{{- $name := index $words 2 -}}
{{- $value := dig $alert $name "" (default dict $.root.Values.rules.thresholds) -}}
{{- if kindIs "string" $value | and (empty $value) -}}
{{- fail (printf "rules.thresholds.%s.%s is empty: set it, or leave it out for the default; rules.disabledAlerts removes an alert" $alert $name) -}}
{{- end -}}
{{- if eq (first $words) "seconds" -}}
{{- $value = div (include "dra-exporter.milliseconds" $value | int64) 1000 -}}
{{- else if not (kindIs "string" $value) -}}
{{- $value = toJson $value -}}
{{- end -}}
{{- $text = replace . (toString $value) $text -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* rules.links: sets the links in the annotations of an alert. An alert about a pod
     names it. dict root, annotations. */}}
{{- define "dra-exporter.rules.links" -}}
{{- $annotations := .annotations -}}
{{- $runbooks := .root.Values.links.runbooks -}}
{{- with .root.Values.links.cluster -}}
{{- $runbooks = $runbooks | default (printf "%s/runbooks" (trimSuffix "/" .)) -}}
{{- end -}}
{{- with $runbooks -}}
{{- $_ := set $annotations "runbook_url" (printf "%s/%s" (trimSuffix "/" .) (base $annotations.runbook_url)) -}}
{{- end -}}
{{- with .root.Values.links.cluster -}}
{{- if contains "{{ $labels.namespace }}/{{ $labels.pod }}" $annotations.summary -}}
{{- $_ := set $annotations "pod_url" (printf "%s/pod?namespace={{ $labels.namespace }}&name={{ $labels.pod }}" (trimSuffix "/" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* endpoint: what either kind of monitor says of the port. dict root, component. */}}
{{- define "dra-exporter.monitoring.endpoint" -}}
{{- $monitoring := .root.Values.monitoring -}}
{{- $relabel := ternary "relabelConfigs" "relabelings" (eq $monitoring.kind "VMPodScrape") -}}
{{- $metricRelabel := ternary "metricRelabelConfigs" "metricRelabelings" (eq $monitoring.kind "VMPodScrape") -}}
port: metrics
path: /metrics
{{- if .root.Values.web.tls }}
scheme: https
{{- end }}
interval: {{ $monitoring.interval }}
scrapeTimeout: {{ $monitoring.scrapeTimeout }}
# namespace, pod and container on the rows are those of the claim and of its
# consumers, not the exporter's.
honorLabels: {{ $monitoring.honorLabels }}
{{- with $monitoring.basicAuth }}
basicAuth:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $monitoring.authorization }}
authorization:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $monitoring.tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{ $relabel }}:
  {{- if eq .component "node" }}
  # A restarted agent keeps its instance.
  - sourceLabels: [__meta_kubernetes_pod_node_name]
    targetLabel: instance
  {{- else }}
  # It may run on any node, and keeps its instance.
  - targetLabel: instance
    replacement: cluster
  {{- end }}
  # Rows without such a label of their own would otherwise get the exporter's,
  # and joins would take it for the consumer.
  - action: labeldrop
    regex: ({{ ternary "pod|container|endpoint|service|namespace" "endpoint|service" $monitoring.honorLabels }})
  {{- with $monitoring.relabelings }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with $monitoring.metricRelabelings }}
{{ $metricRelabel }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* helm test asks over plain HTTP and has no password. */}}
{{- define "dra-exporter.tests.enabled" -}}
{{- if and .Values.tests.enabled (not .Values.web.configSecret) -}}true{{- end -}}
{{- end -}}

{{/* OpenShift gives a pod its user, and refuses others. */}}
{{- define "dra-exporter.openshift" -}}
{{- include "dra-exporter.auto" (dict "value" (ternary true "auto" (eq (toString .Values.openshift.scc) "true")) "has" (.Capabilities.APIVersions.Has "security.openshift.io/v1/SecurityContextConstraints")) -}}
{{- end -}}

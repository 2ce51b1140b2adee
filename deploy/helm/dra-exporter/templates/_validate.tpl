{{/* Combinations that the schema cannot see. Each message names the key and says
     what to do. The root. */}}
{{- define "dra-exporter.validate" -}}
{{- if not (or .Values.node.enabled .Values.cluster.enabled) -}}
{{- fail "node.enabled and cluster.enabled are both false: nothing would run; switch one of them on" -}}
{{- end -}}
{{- if and .Values.node.hostPID (not .Values.node.kubernetesAPI) -}}
{{- fail "node.hostPID needs node.kubernetesAPI: processes are split by the UIDs of their pods, which the API server tells; switch one of them" -}}
{{- end -}}
{{- if and .Values.node.podsAPI (not .Values.node.kubernetesAPI) -}}
{{- fail "node.podsAPI needs node.kubernetesAPI: the kubelet tells of pods, and the API server of their claims; switch one of them" -}}
{{- end -}}
{{- range $key := list "severity" "scope" -}}
{{- if hasKey $.Values.rules.alertLabels $key -}}
{{- fail (printf "rules.alertLabels: the label %s is each alert's own; take it out" $key) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.web.tls (not .Values.web.configSecret) -}}
{{- fail "web.tls needs web.configSecret: the certificate is named by the web.yaml of that Secret" -}}
{{- end -}}
{{- range $key := list "rules" "dashboards" -}}
{{- if and (not $.Values.monitoring.honorLabels) (eq (toString (index $.Values $key).enabled) "true") -}}
{{- fail (printf "%s.enabled is true and monitoring.honorLabels is false: those of the chart read labels that then have other names; set %s.enabled=false, and take what `make exported` of the repository writes" $key $key) -}}
{{- end -}}
{{- end -}}
{{- $labels := dict "commonLabels" .Values.commonLabels "node.podLabels" .Values.node.podLabels "cluster.podLabels" .Values.cluster.podLabels
  "monitoring.labels" .Values.monitoring.labels "rules.labels" .Values.rules.labels "dashboards.labels" .Values.dashboards.labels -}}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" -}}
{{- range $where, $map := $labels -}}
{{- if hasKey $map $key -}}
{{- fail (printf "%s: the label %s is the chart's own; take it out" $where $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.node.enabled -}}
{{- include "dra-exporter.access.validate" . -}}
{{- end -}}
{{- end -}}

{{/* What objects are called, and the labels they have. */}}

{{/* fullname: what every name begins with; 49 characters at most, for the longest ending. */}}
{{- define "dra-exporter.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 49 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 49 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 49 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* namespace: that of all objects which have no value for another. The root. */}}
{{- define "dra-exporter.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* selector: the labels that stay the same for as long as the release does. dict root, component. */}}
{{- define "dra-exporter.selector" -}}
app.kubernetes.io/name: dra-exporter
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* pods: the labels by which Services, monitors and policies find the pods of a role. Those
     of the node role may be of two DaemonSets, whose selectors exclude each other.
     dict root, component. */}}
{{- define "dra-exporter.pods" -}}
{{- if eq .component "node" -}}
app.kubernetes.io/name: dra-exporter
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
dra-exporter.github.io/role: node
{{- else -}}
{{ include "dra-exporter.selector" . }}
{{- end -}}
{{- end -}}

{{/* labels: those of an object. dict root, component, labels (more of them, optional). */}}
{{- define "dra-exporter.labels" -}}
{{ include "dra-exporter.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with merge (dict) (default dict .labels) (default dict .root.Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* podLabels: those of a pod. Without the version: a chart that changes nothing else
     restarts nothing. dict root, component, role (optional), labels. */}}
{{- define "dra-exporter.podLabels" -}}
{{ include "dra-exporter.selector" . }}
{{- with .role }}
dra-exporter.github.io/role: {{ . }}
{{- end }}
{{- with merge (dict) (default dict .labels) (default dict .root.Values.commonLabels) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* serviceAccount: the name of a role's own. dict root, component. */}}
{{- define "dra-exporter.serviceAccount" -}}
{{- $account := index .root.Values.serviceAccounts .component -}}
{{- if $account.name -}}
{{- $account.name -}}
{{- else -}}
{{- include "dra-exporter.fullname" .root }}-{{ .component -}}
{{- end -}}
{{- end -}}

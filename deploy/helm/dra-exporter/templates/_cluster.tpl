{{/* cluster.args: the flags of the cluster role. The root. */}}
{{- define "dra-exporter.cluster.args" -}}
{{- range .Values.cluster.topologyLabels }}
- --labels.topology={{ . }}
{{- end }}
{{- with include "dra-exporter.commonArgs" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* cluster.env: the chart's own variables of the cluster role. The root. */}}
{{- define "dra-exporter.cluster.env" -}}
{{- with .Values.cluster.goMemLimit }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- if contains "$(HOST_IP)" (printf "%s %s" (default "" .Values.otlp.endpoint) (toYaml .Values.cluster.extraArgs)) }}
- name: HOST_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- with include "dra-exporter.otlpEnv" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* cluster.env: the chart's own variables of the cluster role. The root. */}}
{{- define "dra-exporter.cluster.env" -}}
- name: GOMEMLIMIT
  value: {{ .Values.cluster.goMemLimit | quote }}
{{- if contains "$(HOST_IP)" (default "" .Values.otlp.endpoint) }}
- name: HOST_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- with include "dra-exporter.otlpEnv" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* What the containers of both roles have in common. */}}

{{- define "dra-exporter.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default (printf "v%s" $.Chart.AppVersion) .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* probe: how the kubelet asks. dict root, path. */}}
{{- define "dra-exporter.probe" -}}
{{- if eq .root.Values.web.probes "tcp" -}}
tcpSocket:
  port: metrics
{{- else -}}
httpGet:
  path: {{ .path }}
  port: metrics
  {{- if .root.Values.web.tls }}
  scheme: HTTPS
  {{- end }}
{{- end -}}
{{- end -}}

{{/* probes: both of them. The root. */}}
{{- define "dra-exporter.probes" -}}
livenessProbe:
  {{- include "dra-exporter.probe" (dict "root" . "path" "/-/healthy") | nindent 2 }}
  initialDelaySeconds: 10
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  {{- include "dra-exporter.probe" (dict "root" . "path" "/-/ready") | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{/* commonArgs: flags of both roles. The root. */}}
{{- define "dra-exporter.commonArgs" -}}
{{- if ne .Values.log.level "info" }}
- --log.level={{ .Values.log.level }}
{{- end }}
{{- if ne .Values.log.format "logfmt" }}
- --log.format={{ .Values.log.format }}
{{- end }}
{{- if .Values.web.configSecret }}
- --web.config.file=/etc/dra-exporter-web/web.yaml
{{- end }}
{{- end -}}

{{/* extraArgs: what the user adds. A flag that is there already would be refused by
     the exporter at its start, which nobody sees before the rollout hangs.
     dict args (the chart's, as YAML), extra, key. */}}
{{- define "dra-exporter.extraArgs" -}}
{{- $own := dict -}}
{{- range (default "[]" .args | fromYamlArray) -}}
{{- $_ := set $own (splitList "=" . | first) true -}}
{{- end -}}
{{- $repeatable := list "--device.source" "--labels.pod" "--cdi.dir" -}}
{{- range .extra -}}
{{- $flag := splitList "=" . | first -}}
{{- if and (hasKey $own $flag) (not (has $flag $repeatable)) -}}
{{- fail (printf "%s: %s is set by a value of the chart already: %s" $.key $flag (include "dra-exporter.flagValue" $flag)) -}}
{{- end }}
- {{ . | quote }}
{{- end -}}
{{- end -}}

{{/* flagValue: the value that sets a flag. */}}
{{- define "dra-exporter.flagValue" -}}
{{- $values := dict
  "--log.level" "log.level" "--log.format" "log.format" "--web.config.file" "web.configSecret"
  "--kubernetes.disable" "node.kubernetesAPI" "--kubelet.pods-api" "node.podsAPI"
  "--device.profiling" "node.profiling" "--device.nvlink-links" "node.nvlinkLinks"
  "--metrics.dcgm" "node.dcgmNames" "--cost.prices" "node.prices"
  "--cdi.dir" "node.cdiDirs" "--device.source" "node.deviceSources" "--labels.pod" "node.showPodLabels"
  "--dcgm.host-engine" "node.access.dcgm.hostEngine" -}}
{{- default "see node.access" (get $values .) -}}
{{- end -}}

{{/* env: the chart's variables and then the user's, which replace those of their
     name. dict own (YAML list), extra (list). */}}
{{- define "dra-exporter.env" -}}
{{- $names := list -}}
{{- range .extra }}{{ $names = append $names .name }}{{ end -}}
{{- range (fromYamlArray .own) }}
{{- if not (has .name $names) }}
{{ toYaml (list .) }}
{{- end }}
{{- end }}
{{- with .extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* otlpEnv: where to push. The variables are OpenTelemetry's own where it has one. The root. */}}
{{- define "dra-exporter.otlpEnv" -}}
{{- if .Values.clusterName }}
- name: DRA_EXPORTER_OTLP_CLUSTER_NAME
  value: {{ .Values.clusterName | quote }}
{{- end }}
{{- with .Values.otlp }}
{{- if .endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ .endpoint | quote }}
- name: OTEL_METRIC_EXPORT_INTERVAL
  value: {{ include "dra-exporter.milliseconds" .interval | quote }}
{{- if .protocol }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ .protocol | quote }}
{{- end }}
{{- if ne .naming "prometheus" }}
- name: DRA_EXPORTER_OTLP_NAMING
  value: {{ .naming | quote }}
{{- end }}
{{- if .headersSecret.name }}
- name: OTEL_EXPORTER_OTLP_HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .headersSecret.name }}
      key: {{ .headersSecret.key }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* milliseconds: of 30s or 1m, as OpenTelemetry's variables want them. */}}
{{- define "dra-exporter.milliseconds" -}}
{{- if hasSuffix "m" . -}}
{{- mul (trimSuffix "m" . | int) 60000 -}}
{{- else -}}
{{- mul (trimSuffix "s" . | int) 1000 -}}
{{- end -}}
{{- end -}}

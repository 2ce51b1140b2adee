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

{{/* probes: both of a role, with its timings. dict root, component. */}}
{{- define "dra-exporter.probes" -}}
{{- $role := index .root.Values .component -}}
livenessProbe:
  {{- include "dra-exporter.probe" (dict "root" .root "path" "/-/healthy") | nindent 2 }}
  {{- with $role.livenessProbe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
readinessProbe:
  {{- include "dra-exporter.probe" (dict "root" .root "path" "/-/ready") | nindent 2 }}
  {{- with $role.readinessProbe }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* commonArgs: flags of both roles. The root. */}}
{{- define "dra-exporter.commonArgs" -}}
{{- if ne .Values.log.level "info" }}
- --log.level={{ .Values.log.level }}
{{- end }}
{{- if ne .Values.log.format "logfmt" }}
- --log.format={{ .Values.log.format }}
{{- end }}
{{- range .Values.workloadLabels }}
- --labels.workload={{ . }}
{{- end }}
{{- if .Values.web.configSecret }}
- --web.config.file=/etc/dra-exporter-web/web.yaml
{{- end }}
{{- if .Values.web.kubernetesAuth.enabled }}
- --web.kubernetes-auth
{{- range .Values.web.kubernetesAuth.audiences }}
- --web.kubernetes-audience={{ . }}
{{- end }}
{{- end }}
{{- with .Values.links.grafana }}
- --web.grafana-url={{ . }}
{{- end }}
{{- with .Values.links.runbooks }}
- --web.runbook-url={{ . }}
{{- end }}
{{- end -}}

{{/* extraArgs: what the user adds. A flag that is there already would be refused by
     the exporter at its start, which shows only when the rollout hangs.
     dict args (the chart's, as YAML), extra, key. */}}
{{- define "dra-exporter.extraArgs" -}}
{{- $own := dict -}}
{{- range (default "[]" .args | fromYamlArray) -}}
{{- $_ := set $own (splitList "=" . | first) true -}}
{{- end -}}
{{- $repeatable := list "--device.source" "--labels.pod" "--labels.workload" "--cdi.dir" "--exporter.preset" "--exporter.driver" "--exporter.extensions" "--tpu.metrics" "--device.release-label" "--web.kubernetes-audience" -}}
{{- $fixed := list "--web.listen-address" "--web.telemetry-path" -}}
{{- $more := list "--kubernetes.disable" "--kubelet.pods-api" "--web.kubernetes-auth" "--device.release-file" -}}
{{- range .extra -}}
{{- $flag := splitList "=" . | first -}}
{{- if has $flag $fixed -}}
{{- fail (printf "%s: %s would lead probes, Services and monitors to where nothing answers; take it out" $.key $flag) -}}
{{- end -}}
{{- if has $flag $more -}}
{{- fail (printf "%s: %s takes more than the flag (rights, a token, a folder): set %s" $.key $flag (include "dra-exporter.flagValue" $flag)) -}}
{{- end -}}
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
  "--web.kubernetes-auth" "web.kubernetesAuth.enabled=true" "--web.kubernetes-audience" "web.kubernetesAuth.audiences"
  "--web.grafana-url" "links.grafana" "--web.runbook-url" "links.runbooks" "--web.cluster-url" "links.cluster"
  "--kubernetes.disable" "node.kubernetesAPI=false" "--kubelet.pods-api" "node.podsAPI=true"
  "--device.nvlink-links" "node.nvlinkLinks" "--no-device.serial" "node.serialNumbers=false"
  "--device.nvlink-links" "node.nvlinkLinks" "--device.release-file" "node.release.file" "--device.release-label" "node.release.label"
  "--metrics.dcgm" "node.dcgmNames" "--cost.prices" "node.prices" "--exporter.config" "node.exporters"
  "--cdi.dir" "node.cdiDirs" "--exporter.dir" "node.exporterDir" "--device.source" "node.deviceSources" "--labels.pod" "node.showPodLabels"
  "--labels.workload" "workloadLabels" "--labels.topology" "cluster.topologyLabels" -}}
{{- get $values . -}}
{{- end -}}

{{/* env: the chart's variables, each in its place the user's of its name, and then
     the user's others. In its place: a variable can only refer to one before it.
     dict own (YAML list), extra (list). */}}
{{- define "dra-exporter.env" -}}
{{- $extra := dict -}}
{{- range .extra }}{{ $_ := set $extra .name . }}{{ end -}}
{{- $placed := list -}}
{{- range (fromYamlArray .own) }}
{{- $placed = append $placed .name }}
{{ toYaml (list (default . (get $extra .name))) }}
{{- end }}
{{- range .extra }}
{{- if not (has .name $placed) }}
{{ toYaml (list .) }}
{{- end }}
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

{{/* milliseconds: of a duration as the schema has it: 30s, 1m30s, 500ms, 1d. */}}
{{- define "dra-exporter.milliseconds" -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 "d" 86400000 -}}
{{- $sum := 0 -}}
{{- range regexFindAll "[0-9]+(ms|s|m|h|d)" . -1 -}}
{{- $unit := regexFind "[a-z]+$" . -}}
{{- $sum = add $sum (mul (trimSuffix $unit . | int64) (get $units $unit)) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}

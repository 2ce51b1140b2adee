{{/* Arguments and variables of the node role. */}}

{{/* node.args: the chart's own flags. The root. */}}
{{- define "dra-exporter.node.args" -}}
{{- with .Values.node }}
{{- if not .kubernetesAPI }}
- --kubernetes.disable
{{- end }}
{{- if ne (join "," .cdiDirs) "/var/run/cdi,/etc/cdi" }}
{{- range .cdiDirs }}
- --cdi.dir={{ . }}
{{- end }}
{{- end }}
{{- if and .exporterDir (ne .exporterDir "/var/run/dra-exporter/plugins") }}
- --exporter.dir={{ .exporterDir }}
{{- end }}
{{- range .deviceSources }}
- --device.source={{ . }}
{{- end }}
{{- if .nvlinkLinks }}
- --device.nvlink-links
{{- end }}
{{- if not .serialNumbers }}
- --no-device.serial
{{- end }}
{{- if .dcgmNames }}
- --metrics.dcgm={{ .dcgmNames }}
{{- end }}
{{- range .showPodLabels }}
- --labels.pod={{ . }}
{{- end }}
{{- if include "dra-exporter.node.exporters" $ | fromYamlArray }}
- --exporter.config=/etc/dra-exporter-exporters/exporters.yaml
{{- end }}
{{- if .prices }}
- --cost.prices=/etc/dra-exporter-prices/prices.yaml
{{- end }}
{{- end }}
{{- with include "dra-exporter.release.args" . | trim }}
{{ . }}
{{- end }}
{{- with .Values.links.cluster }}
- --web.cluster-url={{ . }}
{{- end }}
{{- with include "dra-exporter.commonArgs" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* node.env: the chart's own variables. HOST_IP first: others refer to it. The root. */}}
{{- define "dra-exporter.node.env" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
{{- with .Values.node.goMemLimit }}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{- end }}
{{- $addresses := printf "%s %s %s" (default "" .Values.otlp.endpoint) (include "dra-exporter.node.exporters" .) (toYaml .Values.node.extraArgs) -}}
{{- if or (contains "$(HOST_IP)" $addresses) (eq (include "dra-exporter.access.mode" .) "dcgm") }}
- name: HOST_IP
  valueFrom:
    fieldRef:
      fieldPath: status.hostIP
{{- end }}
{{- if .Values.node.podsAPI }}
- name: DRA_EXPORTER_KUBELET_PODS_API
  value: /var/lib/kubelet/pods-api/pods-api.sock
{{- end }}
{{- if .Values.node.profiling }}
- name: DRA_EXPORTER_DEVICE_PROFILING
  value: "true"
{{- end }}
{{- with include "dra-exporter.otlpEnv" . | trim }}
{{ . }}
{{- end }}
{{- with include "dra-exporter.release.env" . | trim }}
{{ . }}
{{- end }}
{{- with include "dra-exporter.access.env" . | trim }}
{{ . }}
{{- end }}
{{- end -}}

{{/* node.resources: with the claims of the access mode. The root. */}}
{{- define "dra-exporter.node.resources" -}}
{{- $resources := deepCopy (default dict .Values.node.resources) -}}
{{- with include "dra-exporter.access.claims" . | trim -}}
{{- $_ := set $resources "claims" (concat (default list $resources.claims) (fromYamlArray .)) -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* node.annotations: of the pod. The checksums replace the pods when prices or
     exporters change: the files are read once. The root. */}}
{{- define "dra-exporter.node.annotations" -}}
{{- $own := dict "kubectl.kubernetes.io/default-container" "dra-exporter" -}}
{{- with .Values.node.prices -}}
{{- $_ := set $own "checksum/prices" (toYaml . | sha256sum) -}}
{{- end -}}
{{- with include "dra-exporter.node.exporters" . | fromYamlArray -}}
{{- $_ := set $own "checksum/exporters" (toYaml . | sha256sum) -}}
{{- end -}}
{{- toYaml (merge (dict) (default dict .Values.node.podAnnotations) (include "dra-exporter.access.annotations" . | fromYaml) $own) -}}
{{- end -}}

{{/* node.capabilities: those of the access mode and the user's. The root. */}}
{{- define "dra-exporter.node.capabilities" -}}
{{- $access := default "[]" (include "dra-exporter.access.capabilities" . | trim) | fromYamlArray -}}
{{- concat $access (default list (default dict .Values.node.capabilities).add) | uniq | toYaml -}}
{{- end -}}

{{/* node.exporters: the user's, and that of the access mode. The root. */}}
{{- define "dra-exporter.node.exporters" -}}
{{- $exporters := default list .Values.node.exporters -}}
{{- $choice := include "dra-exporter.access.choice" . | fromYaml -}}
{{- $preset := "nvidia-dcgm-exporter" -}}
{{- range $exporters -}}
{{- if eq (default "" .preset) $preset -}}
{{- $preset = "" -}}
{{- end -}}
{{- end -}}
{{- if and $preset (eq $choice.mode "exporter") -}}
{{- $exporters = append $exporters (dict "preset" $preset "url" $choice.exporter) -}}
{{- end -}}
{{- toYaml $exporters -}}
{{- end -}}

{{/* node.affinity: the user's, or else that of the access mode. Terms are alternatives,
     so each gets two conditions more. No node without a kubelet of its own: on AWS Fargate
     and on virtual kubelets the pod of a DaemonSet with host paths stays Pending for ever.
     A term that names the label itself is left as it is. No node of the other DaemonSet
     (_release.tpl). dict root, set. */}}
{{- define "dra-exporter.node.affinity" -}}
{{- $set := .set -}}
{{- $affinity := deepCopy (default (include "dra-exporter.access.affinity" .root | fromYaml) .root.Values.node.affinity) -}}
{{- $node := default dict $affinity.nodeAffinity -}}
{{- $required := default dict $node.requiredDuringSchedulingIgnoredDuringExecution -}}
{{- $terms := list -}}
{{- range $term := default (list (dict "matchExpressions" list)) $required.nodeSelectorTerms -}}
{{- $expressions := default list $term.matchExpressions -}}
{{- $empty := and $required.nodeSelectorTerms (not $expressions) (not $term.matchFields) -}}{{/* matches no node */}}
{{- range $exclusion := list (dict "key" "eks.amazonaws.com/compute-type" "value" "fargate") (dict "key" "type" "value" "virtual-kubelet") -}}
{{- $named := false -}}
{{- range $expressions -}}
{{- $named = or $named (eq .key $exclusion.key) -}}
{{- end -}}
{{- if not (or $named $empty) -}}
{{- $expressions = append $expressions (dict "key" $exclusion.key "operator" "NotIn" "values" (list $exclusion.value)) -}}
{{- end -}}
{{- end -}}
{{- if and $set.label (not $set.present) (not $empty) -}}
{{- $expressions = append $expressions (dict "key" $set.label "operator" "DoesNotExist") -}}
{{- end -}}
{{- $terms = append $terms (merge (dict "matchExpressions" $expressions) (omit $term "matchExpressions")) -}}
{{- end -}}
{{- $required = merge (dict "nodeSelectorTerms" $terms) (omit $required "nodeSelectorTerms") -}}
{{- $node = merge (dict "requiredDuringSchedulingIgnoredDuringExecution" $required) (omit $node "requiredDuringSchedulingIgnoredDuringExecution") -}}
{{- toYaml (merge (dict "nodeAffinity" $node) (omit $affinity "nodeAffinity")) -}}
{{- end -}}

{{/* node.cdiVolume: the name of a folder's volume. dict index, dir. */}}
{{- define "dra-exporter.node.cdiVolume" -}}
{{- get (dict "/var/run/cdi" "cdi-run" "/etc/cdi" "cdi-etc") .dir | default (printf "cdi-%d" .index) -}}
{{- end -}}

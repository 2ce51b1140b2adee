{{/* Egress of the NetworkPolicies. Ports are those of the pods behind a Service where
     the network plugin looks at them after the translation of addresses, as most do. */}}

{{/* networkPolicy.egress: the rules of a role. dict root, component. */}}
{{- define "dra-exporter.networkPolicy.egress" -}}
{{- $values := .root.Values -}}
{{- $egress := $values.networkPolicy.egress -}}
{{- $node := eq .component "node" -}}
{{- if or (not $node) $values.node.kubernetesAPI }}
{{ include "dra-exporter.networkPolicy.rule" (dict "ports" $egress.apiServer.ports "to" $egress.apiServer.to) }}
{{- end }}
{{ include "dra-exporter.networkPolicy.rule" (dict "ports" $egress.dns.ports "to" $egress.dns.to "protocols" (list "UDP" "TCP")) }}
{{- if and $node (eq (include "dra-exporter.access.mode" .root) "dcgm") }}
{{- $ports := default (include "dra-exporter.networkPolicy.ports" (include "dra-exporter.access.hostEngine" .root) | fromYamlArray) $egress.hostEngine.ports }}
{{- with $ports }}
{{ include "dra-exporter.networkPolicy.rule" (dict "ports" . "to" $egress.hostEngine.to) }}
{{- end }}
{{- end }}
{{- $ports := list }}
{{- range include "dra-exporter.node.exporters" .root | fromYamlArray }}
{{- with .url }}
{{- $ports = concat $ports (include "dra-exporter.networkPolicy.ports" . | fromYamlArray) }}
{{- end }}
{{- end }}
{{- if and $node $ports }}
{{ include "dra-exporter.networkPolicy.rule" (dict "ports" ($ports | uniq) "to" $egress.exporters.to) }}
{{- end }}
{{- if $values.otlp.endpoint }}
{{- $ports := default (include "dra-exporter.networkPolicy.ports" $values.otlp.endpoint | fromYamlArray) $egress.collector.ports }}
{{- with $ports }}
{{ include "dra-exporter.networkPolicy.rule" (dict "ports" . "to" $egress.collector.to) }}
{{- end }}
{{- end }}
{{- with $egress.extra }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* networkPolicy.rule: one rule. dict ports, to (empty: any address), protocols. */}}
{{- define "dra-exporter.networkPolicy.rule" -}}
- ports:
    {{- range $protocol := default (list "TCP") .protocols }}
    {{- range $.ports }}
    - port: {{ . }}
      protocol: {{ $protocol }}
    {{- end }}
    {{- end }}
  {{- with .to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* networkPolicy.ports: the port of an address, as a list; of a socket of the node
     there is none. HOST:PORT, or a URL, whose scheme says it where no port does. */}}
{{- define "dra-exporter.networkPolicy.ports" -}}
{{- $address := regexReplaceAll "^[a-zA-Z]+://" . "" -}}
{{- $port := regexFind ":[0-9]+(/|$)" $address | trimPrefix ":" | trimSuffix "/" -}}
{{- if hasPrefix "unix:" . -}}
[]
{{- else if $port -}}
[{{ $port }}]
{{- else if hasPrefix "http://" . -}}
[80]
{{- else -}}
[443]
{{- end -}}
{{- end -}}

{{/* How the agent lets go of GPUs (docs/access.md): a label of the nodes, and a file. */}}

{{/* release.label: the key that is "true" on nodes whose GPUs may be in use, and that
     NVIDIA's operator changes before it reloads the driver. GPUCluster does not set the
     key of ClusterPolicy. Empty: the nodes have no such label. The root. */}}
{{- define "dra-exporter.release.label" -}}
{{- $label := .Values.node.release.label -}}
{{- if ne $label "auto" -}}
{{- $label -}}
{{- else if (include "dra-exporter.access.choice" . | fromYaml).gpuCluster -}}
nvidia.com/gpu.deploy.dcgm-exporter-dra
{{- else -}}
nvidia.com/gpu.deploy.client
{{- end -}}
{{- end -}}

{{/* release.sets: the DaemonSets. name is the ending of the name and the component,
     and label the key; present says that the nodes of the set have it.

     NVIDIA's operator waits for the pods of a DaemonSet only if its nodeSelector has the
     key: an affinity is not seen. So an agent that holds GPUs is in one set for the nodes
     where the label is true, and in another for nodes without the label. A node with
     another value has no agent. An agent that holds no GPU stays. The root. */}}
{{- define "dra-exporter.release.sets" -}}
{{- $label := include "dra-exporter.release.label" . -}}
{{- if and $label (has (include "dra-exporter.access.mode" .) (list "runtimeClass" "cdi" "claim")) -}}
- {name: node, label: {{ $label | quote }}}
- {name: node-managed, label: {{ $label | quote }}, present: true}
{{- else -}}
- {name: node}
{{- end -}}
{{- end -}}

{{/* release.nodeSelector: the user's, and the label. dict root, set. */}}
{{- define "dra-exporter.release.nodeSelector" -}}
{{- $selector := deepCopy (default dict .root.Values.node.nodeSelector) -}}
{{- if .set.present -}}
{{- $_ := set $selector .set.label "true" -}}
{{- end -}}
{{- toYaml $selector -}}
{{- end -}}

{{/* release.args: keys that the agent itself watches. It knows NVIDIA's two. The root. */}}
{{- define "dra-exporter.release.args" -}}
{{- $label := include "dra-exporter.release.label" . -}}
{{- if and $label .Values.node.kubernetesAPI (not (has $label (list "nvidia.com/gpu.deploy.client" "nvidia.com/gpu.deploy.dcgm-exporter-dra"))) -}}
- --device.release-label={{ $label }}
{{- end -}}
{{- end -}}

{{/* The folder of the file, not the file: it comes and goes. It has a place of its own in
     the container, because exporterDir may be below the same folder of the node. */}}
{{- define "dra-exporter.release.env" -}}
{{- with .Values.node.release.file -}}
- name: DRA_EXPORTER_DEVICE_RELEASE_FILE
  value: /run/dra-exporter-release/{{ base . }}
{{- end -}}
{{- end -}}

{{- define "dra-exporter.release.volumeMounts" -}}
{{- with .Values.node.release.file -}}
- name: release
  mountPath: /run/dra-exporter-release
  readOnly: true
{{- end -}}
{{- end -}}

{{- define "dra-exporter.release.volumes" -}}
{{- with .Values.node.release.file -}}
- name: release
  hostPath:
    path: {{ dir . }}
    type: ""
{{- end -}}
{{- end -}}

{{/* Fails where the values leave no node for the agent. The root. */}}
{{- define "dra-exporter.release.validate" -}}
{{- range $set := include "dra-exporter.release.sets" . | fromYamlArray -}}
{{- if $set.present -}}
{{- with get (default dict $.Values.node.nodeSelector) $set.label -}}
{{- if ne . "true" -}}
{{- fail (printf "node.nodeSelector has %s=%s: no agent runs where this label is not true, because it says that GPUs are let go of; remove it, or set node.release.label to another key, or to nothing" $set.label .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* release.notes: on which nodes the agents are. The root. */}}
{{- define "dra-exporter.release.notes" -}}
{{- with include "dra-exporter.release.label" . }}
  Nodes with the label {{ . }}=true have the agent of DaemonSet {{ include "dra-exporter.fullname" $ }}-node-managed,
  nodes without the label that of {{ include "dra-exporter.fullname" $ }}-node. Any other value removes the agent, so that
  the driver can be replaced.
{{- end }}
{{- end -}}

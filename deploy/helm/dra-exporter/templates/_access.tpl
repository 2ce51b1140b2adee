{{/*
How the node agent sees the devices (docs/access.md): node.access.mode, and what
each mode puts into the DaemonSet. Each helper wants the root context, and may
render to nothing.
*/}}

{{/*
The mode. "auto" is "dcgm" where a host engine is named. Else it decides once, at the first installation, by what is in the
cluster, and is written on the DaemonSet (dra-exporter.access.annotation); later
upgrades of the release keep what is written there, so that nothing flips
because an operator was installed or removed meanwhile. `helm template` sees no
cluster: "auto" is "none" there.
*/}}
{{- define "dra-exporter.access.mode" -}}
{{- $mode := .Values.node.access.mode | default "auto" -}}
{{- if ne $mode "auto" -}}
{{- $mode -}}
{{- else if .Values.node.access.dcgm.hostEngine -}}
dcgm
{{- else -}}
{{- include "dra-exporter.access.recorded" . | default (include "dra-exporter.access.found" .) -}}
{{- end -}}
{{- end -}}

{{/* The annotation of the DaemonSet that remembers what auto decided. */}}
{{- define "dra-exporter.access.annotation" -}}
dra-exporter.github.io/access
{{- end -}}

{{/* What auto decided when the release was installed; nothing if there is none. */}}
{{- define "dra-exporter.access.recorded" -}}
{{- $name := printf "%s-node" (include "dra-exporter.fullname" .) -}}
{{- with lookup "apps/v1" "DaemonSet" (include "dra-exporter.namespace" .) $name -}}
{{- with .metadata.annotations -}}
{{- get . (include "dra-exporter.access.annotation" $) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What is in the cluster. The Service must keep to its own node: through any other
the agent would read the GPUs of some other node, and call them its own.
*/}}
{{- define "dra-exporter.access.found" -}}
{{- $dcgm := lookup "v1" "Service" "gpu-operator" "nvidia-dcgm" -}}
{{- $runtime := lookup "node.k8s.io/v1" "RuntimeClass" "" .Values.node.access.runtimeClass.name -}}
{{- if and $dcgm (eq (dig "spec" "internalTrafficPolicy" "" $dcgm) "Local") -}}
dcgm
{{- else if and $runtime .Values.node.access.runtimeClass.name -}}
runtimeClass
{{- else -}}
none
{{- end -}}
{{- end -}}

{{/* The host engine: as given, and in mode auto the GPU operator's. */}}
{{- define "dra-exporter.access.hostEngine" -}}
{{- $given := .Values.node.access.dcgm.hostEngine -}}
{{- if and (not $given) (eq (.Values.node.access.mode | default "auto") "auto") -}}
nvidia-dcgm.gpu-operator.svc:5555
{{- else -}}
{{- $given -}}
{{- end -}}
{{- end -}}

{{/* Fails, with the key and what to do, where a mode lacks what it needs. */}}
{{- define "dra-exporter.access.validate" -}}
{{- $access := .Values.node.access -}}
{{- $mode := include "dra-exporter.access.mode" . -}}
{{- if and (ne $mode "none") (hasSuffix "-static" .Values.image.tag) (not .Values.image.digest) -}}
{{- fail (printf "image.tag is %s, which has neither NVML nor DCGM, and the access to GPUs is %s: take the tag without -static, or set node.access.mode=none" .Values.image.tag $mode) -}}
{{- end -}}
{{- if and (eq $mode "dcgm") (not (include "dra-exporter.access.hostEngine" .)) -}}
{{- fail "node.access.dcgm.hostEngine is empty: mode dcgm wants the address of a host engine, such as nvidia-dcgm.gpu-operator.svc:5555 or $(HOST_IP):5555" -}}
{{- end -}}
{{- if and (eq $mode "runtimeClass") (not $access.runtimeClass.name) -}}
{{- fail "node.access.runtimeClass.name is empty: mode runtimeClass wants the name of a RuntimeClass, such as nvidia" -}}
{{- end -}}
{{- if and (eq $mode "runtimeClass") .Values.node.runtimeClassName (ne .Values.node.runtimeClassName $access.runtimeClass.name) -}}
{{- fail (printf "node.runtimeClassName is %s and node.access.runtimeClass.name is %s: a pod has one RuntimeClass; leave node.runtimeClassName empty" .Values.node.runtimeClassName $access.runtimeClass.name) -}}
{{- end -}}
{{- if and (eq $mode "cdi") (not $access.cdi.devices) -}}
{{- fail "node.access.cdi.devices is empty: mode cdi wants the CDI devices to inject, such as management.nvidia.com/gpu=all" -}}
{{- end -}}
{{- if and (eq $mode "cdi") (not $access.cdi.annotation) -}}
{{- fail "node.access.cdi.annotation is empty: mode cdi wants the annotation that a plugin of the container runtime reads, such as nvidia.cdi.k8s.io/container.dra-exporter" -}}
{{- end -}}
{{- if and (eq $mode "claim") (not $access.claim.deviceClassName) -}}
{{- fail "node.access.claim.deviceClassName is empty: mode claim wants the DeviceClass whose devices the agent is to see, such as gpu.nvidia.com" -}}
{{- end -}}
{{- if and (eq $mode "claim") (eq .Values.node.kubernetesAPI false) -}}
{{- fail "node.access.mode is claim and node.kubernetesAPI is false: only the API server shows which claim is the agent's own admin-access claim; set node.kubernetesAPI=true, or choose another mode" -}}
{{- end -}}
{{- end -}}

{{/* Flags: none in any mode. */}}
{{- define "dra-exporter.access.args" -}}
{{- end -}}

{{/*
Variables. NVIDIA's container runtime looks at the two that begin with its name;
LD_LIBRARY_PATH is where it and NVIDIA's CDI specs put the library, for images
whose linker cache they cannot renew.
*/}}
{{- define "dra-exporter.access.env" -}}
{{- $mode := include "dra-exporter.access.mode" . -}}
{{- if eq $mode "dcgm" -}}
- name: DRA_EXPORTER_DCGM_HOST_ENGINE
  value: {{ include "dra-exporter.access.hostEngine" . | quote }}
{{- end -}}
{{- if eq $mode "runtimeClass" -}}
- name: NVIDIA_VISIBLE_DEVICES
  value: {{ .Values.node.access.runtimeClass.visibleDevices | quote }}
- name: NVIDIA_DRIVER_CAPABILITIES
  value: utility
{{ end -}}
{{- if has $mode (list "runtimeClass" "cdi" "claim") -}}
- name: LD_LIBRARY_PATH
  value: /usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64
{{- end -}}
{{- end -}}

{{/*
Annotations of the pod. NVIDIA's plugin wants the devices with commas between
them, that of the NRI project as a YAML list.
*/}}
{{- define "dra-exporter.access.annotations" -}}
{{- if eq (include "dra-exporter.access.mode" .) "cdi" -}}
{{- $cdi := .Values.node.access.cdi -}}
{{- $value := join "," $cdi.devices -}}
{{- if hasPrefix "cdi-devices." $cdi.annotation -}}
{{- $value = toYaml $cdi.devices -}}
{{- end -}}
{{ $cdi.annotation }}: {{ $value | quote }}
{{- end -}}
{{- end -}}

{{/* Fields of the pod. */}}
{{- define "dra-exporter.access.pod" -}}
{{- $mode := include "dra-exporter.access.mode" . -}}
{{- if eq $mode "runtimeClass" -}}
runtimeClassName: {{ .Values.node.access.runtimeClass.name }}
{{- else if eq $mode "claim" -}}
resourceClaims:
  - name: devices
    resourceClaimTemplateName: {{ include "dra-exporter.access.claimTemplate" . }}
{{- end -}}
{{- end -}}

{{/*
The name of the claim's template. The API server lets no template be changed: one
that asks for something else is another object, under another name, and an
upgrade makes it and removes the old one.
*/}}
{{- define "dra-exporter.access.claimTemplate" -}}
{{- include "dra-exporter.fullname" . }}-node-{{ include "dra-exporter.access.claimSpec" . | fromYaml | toYaml | sha256sum | trunc 8 }}
{{- end -}}

{{/* What the claim asks for. */}}
{{- define "dra-exporter.access.claimSpec" -}}
{{- $claim := .Values.node.access.claim -}}
devices:
  requests:
    - name: devices
      exactly:
        deviceClassName: {{ $claim.deviceClassName | quote }}
        adminAccess: true
        allocationMode: All
        {{- with $claim.selectors }}
        selectors:
          {{- range . }}
          - cel:
              expression: {{ . | quote }}
          {{- end }}
        {{- end }}
        # The agent must also read unhealthy devices: it tolerates all
        # taints, and no taint evicts it. Each effect is named, because
        # Kubernetes evicts pods whose toleration does not name NoExecute.
        tolerations:
          - operator: Exists
            effect: NoSchedule
          - operator: Exists
            effect: NoExecute
{{- end -}}

{{/* Claims of the container. */}}
{{- define "dra-exporter.access.claims" -}}
{{- if eq (include "dra-exporter.access.mode" .) "claim" -}}
- name: devices
{{- end -}}
{{- end -}}

{{/*
Where the pod can run: a node without the host engine, the runtime or the
devices has nothing for it, and could not even start it in two of the modes.
Either label will do. A claim for another vendor's devices is for node.affinity.
*/}}
{{- define "dra-exporter.access.affinity" -}}
{{- $mode := include "dra-exporter.access.mode" . -}}
{{- $ofNVIDIA := or (has $mode (list "dcgm" "runtimeClass" "cdi")) (and (eq $mode "claim") (hasSuffix ".nvidia.com" .Values.node.access.claim.deviceClassName)) -}}
{{- if and $ofNVIDIA (not (omit (default dict .Values.node.nodeSelector) "kubernetes.io/os")) -}}
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
      - matchExpressions:
          - key: nvidia.com/gpu.present
            operator: In
            values: ["true"]
      - matchExpressions:
          - key: feature.node.kubernetes.io/pci-10de.present
            operator: In
            values: ["true"]
{{- end -}}
{{- end -}}

{{/*
Capabilities to add: none in any mode. Profiling may want CAP_SYS_ADMIN of who
reads the GPUs itself (node.capabilities.add); docs/access.md says when, and how
to do without.
*/}}
{{- define "dra-exporter.access.capabilities" -}}
{{- end -}}

{{/* Volumes of the pod and of the container: none in any mode. */}}
{{- define "dra-exporter.access.volumes" -}}
{{- end -}}
{{- define "dra-exporter.access.volumeMounts" -}}
{{- end -}}

{{/* Text of NOTES.txt: the mode, the reason, missing prerequisites, and how to check it. */}}
{{- define "dra-exporter.access.notes" -}}
{{- $mode := include "dra-exporter.access.mode" . -}}
{{- $access := .Values.node.access -}}
{{- $auto := eq ($access.mode | default "auto") "auto" -}}
Access to the devices: {{ $mode }}
{{- if and $auto $access.dcgm.hostEngine }} (node.access.dcgm.hostEngine is set)
{{- else if and $auto (include "dra-exporter.access.recorded" .) }} (chosen when this release was installed, and kept; set node.access.mode to change it)
{{- else if and $auto (eq $mode "none") }} (no Service nvidia-dcgm in gpu-operator and no RuntimeClass {{ $access.runtimeClass.name }} was found; later upgrades keep this: set node.access.mode to change it)
{{- else if $auto }} (selected from the cluster's resources; later upgrades keep this: set node.access.mode to change it)
{{- end }}
{{- if eq $mode "none" }}
  The agents read AMD GPUs and RDMA devices from sysfs, and no NVIDIA GPUs.
  For NVIDIA GPUs set node.access.mode to dcgm, runtimeClass, cdi or claim.
{{- else if eq $mode "dcgm" }}
  GPUs are read from the host engine {{ include "dra-exporter.access.hostEngine" . }}: no device, no privilege.
  It must be the engine of the agent's own node. Shared GPUs are not split by process.
{{- else if eq $mode "runtimeClass" }}
  RuntimeClass {{ $access.runtimeClass.name }} gives the agent NVIDIA's library and the GPUs.
  The RuntimeClass must exist: without it the DaemonSet has events "pod rejected", and
  there is no pod. A node without that runtime cannot start the pod: it stays in ContainerCreating.
{{- else if eq $mode "cdi" }}
  The annotation {{ $access.cdi.annotation }} requests {{ join ", " $access.cdi.devices }}.
  A plugin of the container runtime must read it: Kubernetes does not.
{{- if and (hasPrefix "nvidia.cdi.k8s.io/" $access.cdi.annotation) }}
  NVIDIA's plugin reads it in the GPU operator's own namespace only; this is {{ include "dra-exporter.namespace" . }}.
{{- end }}
{{- else if eq $mode "claim" }}
  Each agent has an admin-access claim on all devices of class {{ $access.claim.deviceClassName }}.
  The namespace needs the label resource.kubernetes.io/admin-access=true. On a node
  without such devices the pod stays Pending.
{{- end }}
{{- if and (not .Values.node.affinity) (include "dra-exporter.access.affinity" .) }}
  Agents run on nodes labelled nvidia.com/gpu.present=true or
  feature.node.kubernetes.io/pci-10de.present=true, and nowhere else. Check that there are such nodes:
  kubectl get nodes -l nvidia.com/gpu.present=true   # and -l feature.node.kubernetes.io/pci-10de.present=true
  Then label the nodes with GPUs (kubectl label node NAME nvidia.com/gpu.present=true), set node.affinity, or,
  without NVIDIA GPUs, node.access.mode=none.
{{- end }}
  To check: kubectl exec -n {{ include "dra-exporter.namespace" . }} ds/{{ include "dra-exporter.fullname" . }}-node -- /dra-exporter check
{{- end -}}

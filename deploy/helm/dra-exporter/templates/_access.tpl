{{/*
How the node agent sees the devices (docs/access.md): node.access.mode, and what
each mode puts into the DaemonSet. Each helper wants the root context, and may
render to nothing.
*/}}

{{/* access.mode: the mode. The root. */}}
{{- define "dra-exporter.access.mode" -}}
{{- (include "dra-exporter.access.choice" . | fromYaml).mode -}}
{{- end -}}

{{/*
access.choice: mode, reason (docs/metrics.md lists the reasons), exporter (the URL of
dcgm-exporter, in mode exporter) and gpuCluster. Computed once: lookups are requests.

"auto" takes what a value names. Else it decides once, at the first installation, by
what is in the cluster, and is written on the DaemonSet; later upgrades of the release
keep what is written there, so that nothing flips because an operator was installed or
removed meanwhile. Only "none" is decided again: there is nothing to lose. `helm template` sees no cluster: "auto" is "none" there, unless
node.access.cluster says what the cluster is. The root.
*/}}
{{- define "dra-exporter.access.choice" -}}
{{- if not (hasKey .Values "accessChoice") -}}
{{- $access := .Values.node.access -}}
{{- $choice := dict -}}
{{- if ne (default "auto" $access.mode) "auto" -}}
{{- $choice = dict "mode" $access.mode "reason" "set" "exporter" (default "http://$(HOST_IP):9400/metrics" $access.exporter.url) -}}
{{- else if $access.dcgm.hostEngine -}}
{{- $choice = dict "mode" "dcgm" "reason" "host_engine" -}}
{{- else if $access.exporter.url -}}
{{- $choice = dict "mode" "exporter" "reason" "exporter_url" "exporter" $access.exporter.url -}}
{{- else if $access.cluster -}}
{{- $choice = dict "mode" (include "dra-exporter.access.clusterMode" $access.cluster) "reason" "cluster" -}}
{{- else -}}
{{- $choice = include "dra-exporter.access.recorded" . | fromYaml -}}
{{- if eq (default "none" $choice.mode) "none" -}}
{{- $choice = include "dra-exporter.access.found" . | fromYaml -}}
{{- end -}}
{{- $_ := set $choice "record" true -}}
{{- $_ := set $choice "gpuCluster" (not (empty (include "dra-exporter.access.gpuCluster" .))) -}}
{{- end -}}
{{- if hasPrefix "gpucluster" (default "" $access.cluster) -}}
{{- $_ := set $choice "gpuCluster" true -}}
{{- end -}}
{{- $_ := set .Values "accessChoice" $choice -}}
{{- end -}}
{{- toYaml .Values.accessChoice -}}
{{- end -}}

{{/* access.clusterMode: what auto finds in a cluster of this kind. The kind. */}}
{{- define "dra-exporter.access.clusterMode" -}}
{{- get (dict "operator" "runtimeClass" "operator-dcgm" "dcgm" "gpucluster" "none" "gpucluster-dcgm" "dcgm" "driver" "runtimeClass" "plugin" "none" "none" "none") . -}}
{{- end -}}

{{/* access.record: annotations of the DaemonSets that remember what auto found. The root. */}}
{{- define "dra-exporter.access.record" -}}
{{- $choice := include "dra-exporter.access.choice" . | fromYaml -}}
{{- if $choice.record -}}
dra-exporter.github.io/access: {{ $choice.mode }}
dra-exporter.github.io/access-reason: {{ $choice.reason }}
{{- with $choice.exporter }}
dra-exporter.github.io/access-exporter: {{ . | quote }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* access.recorded: what auto found when the release was installed; nothing if there is
     none. The first releases recorded no reason. The root. */}}
{{- define "dra-exporter.access.recorded" -}}
{{- $name := printf "%s-node" (include "dra-exporter.fullname" .) -}}
{{- with lookup "apps/v1" "DaemonSet" (include "dra-exporter.namespace" .) $name -}}
{{- $annotations := default dict .metadata.annotations -}}
{{- with get $annotations "dra-exporter.github.io/access" -}}
mode: {{ . }}
reason: {{ get $annotations "dra-exporter.github.io/access-reason" | default "recorded" }}
exporter: {{ get $annotations "dra-exporter.github.io/access-exporter" | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
access.found: what is in the cluster, the first of: a reader that already runs on the
nodes, NVIDIA's container runtime, the operator's plugin of the container runtime. A
Service must keep to its own node: through any other the agent would read the GPUs of
some other node, and call them its own. Never a claim: see docs/access.md. The root.
*/}}
{{- define "dra-exporter.access.found" -}}
{{- $class := .Values.node.access.runtimeClass.name -}}
{{- $exporter := include "dra-exporter.access.exporterFound" . | fromYaml -}}
{{- if include "dra-exporter.access.local" (lookup "v1" "Service" "gpu-operator" "nvidia-dcgm") -}}
{mode: dcgm, reason: dcgm_service}
{{- else if $exporter.url -}}
{mode: exporter, reason: dcgm_exporter, exporter: {{ $exporter.url | quote }}}
{{- else if and $class (lookup "node.k8s.io/v1" "RuntimeClass" "" $class) -}}
{mode: runtimeClass, reason: runtime_class}
{{- else if include "dra-exporter.access.plugin" . -}}
{mode: cdi, reason: cdi_plugin}
{{- else if $exporter.runs -}}
{mode: none, reason: exporter_not_local}
{{- else -}}
{mode: none, reason: nothing_found}
{{- end -}}
{{- end -}}

{{/* access.local: whether a Service leads to its own node only. The Service. */}}
{{- define "dra-exporter.access.local" -}}
{{- if eq (dig "spec" "internalTrafficPolicy" "" (default dict .)) "Local" -}}true{{- end -}}
{{- end -}}

{{/* access.exporterFound: whether the operator's dcgm-exporter runs, and the URL at which
     an agent reads that of its own node, if there is one. The root. */}}
{{- define "dra-exporter.access.exporterFound" -}}
{{- $found := dict "runs" false "url" "" -}}
{{- range $name := list "nvidia-dcgm-exporter-dra" "nvidia-dcgm-exporter" -}}
{{- $set := lookup "apps/v1" "DaemonSet" "gpu-operator" $name -}}
{{- $service := lookup "v1" "Service" "gpu-operator" $name -}}
{{- $address := dig "spec" "clusterIP" "None" (default dict $service) -}}
{{- if $set -}}
{{- $_ := set $found "runs" true -}}
{{- end -}}
{{- if not $found.url -}}
{{- if dig "spec" "template" "spec" "hostNetwork" false (default dict $set) -}}
{{- $_ := set $found "url" "http://$(HOST_IP):9400/metrics" -}}
{{- else if and (include "dra-exporter.access.local" $service) (not (has $address (list "" "None"))) -}}
{{- $_ := set $found "url" (printf "http://%s:9400/metrics" (ternary (printf "[%s]" $address) $address (contains ":" $address))) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml $found -}}
{{- end -}}

{{/* access.plugin: whether the operator's plugin of the container runtime serves this
     namespace. The root. */}}
{{- define "dra-exporter.access.plugin" -}}
{{- if and (eq (include "dra-exporter.namespace" .) "gpu-operator") (.Capabilities.APIVersions.Has "nvidia.com/v1/ClusterPolicy") -}}
{{- if dig "spec" "cdi" "nriPluginEnabled" false (lookup "nvidia.com/v1" "ClusterPolicy" "" "cluster-policy") -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* access.gpuCluster: whether the GPU operator manages GPUs for DRA. The root. */}}
{{- define "dra-exporter.access.gpuCluster" -}}
{{- if .Capabilities.APIVersions.Has "nvidia.com/v1alpha1/GPUCluster" -}}
{{- if lookup "nvidia.com/v1alpha1" "GPUCluster" "" "gpu-cluster" -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* access.hostEngine: as given, and in mode auto the GPU operator's. The root. */}}
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
{{- if and (has $mode (list "dcgm" "runtimeClass" "cdi" "claim")) (hasSuffix "-static" .Values.image.tag) (not .Values.image.digest) -}}
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

{{/*
Variables. NVIDIA's container runtime looks at the two that begin with its name;
LD_LIBRARY_PATH is where it and NVIDIA's CDI specs put the library, for images
whose linker cache they cannot renew.
*/}}
{{- define "dra-exporter.access.env" -}}
{{- $mode := include "dra-exporter.access.mode" . -}}
- name: DRA_EXPORTER_ACCESS_MODE
  value: {{ $mode }}
{{- $reason := (include "dra-exporter.access.choice" . | fromYaml).reason }}
{{- if ne $reason "set" }}
- name: DRA_EXPORTER_ACCESS_REASON
  value: {{ $reason }}
{{- end }}
{{- if eq $mode "dcgm" }}
- name: DRA_EXPORTER_DCGM_HOST_ENGINE
  value: {{ include "dra-exporter.access.hostEngine" . | quote }}
{{- end }}
{{- if eq $mode "runtimeClass" }}
- name: NVIDIA_VISIBLE_DEVICES
  value: {{ .Values.node.access.runtimeClass.visibleDevices | quote }}
- name: NVIDIA_DRIVER_CAPABILITIES
  value: utility
{{- end }}
{{- if has $mode (list "runtimeClass" "cdi" "claim") }}
- name: LD_LIBRARY_PATH
  value: /usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64
{{- end }}
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
{{- $nvidia := or (has $mode (list "dcgm" "exporter" "runtimeClass" "cdi")) (and (eq $mode "claim") (hasSuffix ".nvidia.com" .Values.node.access.claim.deviceClassName)) -}}
{{- if and $nvidia (not (omit (default dict .Values.node.nodeSelector) "kubernetes.io/os")) -}}
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

{{/* Text of NOTES.txt: the mode, the reason, missing prerequisites, and how to check it. */}}
{{- define "dra-exporter.access.notes" -}}
{{- $access := .Values.node.access -}}
{{- $choice := include "dra-exporter.access.choice" . | fromYaml -}}
{{- $mode := $choice.mode -}}
Access to the devices: {{ $mode }} ({{ include "dra-exporter.access.reason" . }})
{{- if and $choice.record (eq $mode "none") }}
  The next upgrade decides again.
{{- else if $choice.record }}
  Later upgrades keep this: set node.access.mode to change it.
{{- end }}
{{- if eq $mode "none" }}
  The agents read AMD GPUs, Intel GPUs and RDMA devices from sysfs, and no NVIDIA GPUs.
  For NVIDIA GPUs set node.access.mode to dcgm, exporter, runtimeClass, cdi or claim.
{{- else if eq $mode "dcgm" }}
  GPUs are read from the host engine {{ include "dra-exporter.access.hostEngine" . }}: no device, no privilege.
  It must be the engine of the agent's own node. Shared GPUs are not split by process.
{{- else if eq $mode "exporter" }}
  GPUs are read from dcgm-exporter at {{ $choice.exporter }}: no device, no privilege.
  It must be the exporter of the agent's own node. Shared GPUs are not split by process.
{{- else if eq $mode "runtimeClass" }}
  RuntimeClass {{ $access.runtimeClass.name }} gives the agent NVIDIA's library and the GPUs.
  The RuntimeClass must exist: without it there is no pod, and an event says "pod rejected".
  A node without that runtime cannot start the pod: it stays in ContainerCreating.
{{- else if eq $mode "cdi" }}
  The annotation {{ $access.cdi.annotation }} requests {{ join ", " $access.cdi.devices }}.
  A plugin of the container runtime must read it: Kubernetes does not.
{{- if and (hasPrefix "nvidia.cdi.k8s.io/" $access.cdi.annotation) }}
  NVIDIA's plugin reads it in the GPU operator's own namespace only; this is {{ include "dra-exporter.namespace" . }}.
{{- end }}
{{- else if eq $mode "claim" }}
  Each agent has an admin-access claim on all devices of class {{ $access.claim.deviceClassName }}.
  The namespace needs the label resource.kubernetes.io/admin-access=true. On a node
  without such devices the pod stays Pending. NVIDIA's driver manager does not reload the
  driver of a node with such a pod: docs/access.md.
{{- end }}
{{- if has $mode (list "runtimeClass" "cdi" "claim") }}
{{- include "dra-exporter.access.notes.twice" . }}
{{- include "dra-exporter.release.notes" . }}
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

{{/* access.reason: the reason of the choice in words. The root. */}}
{{- define "dra-exporter.access.reason" -}}
{{- $access := .Values.node.access -}}
{{- $choice := include "dra-exporter.access.choice" . | fromYaml -}}
{{- get (dict
  "set" "node.access.mode is set"
  "host_engine" "node.access.dcgm.hostEngine is set"
  "exporter_url" "node.access.exporter.url is set"
  "cluster" (printf "node.access.cluster is %s" $access.cluster)
  "recorded" "chosen when this release was installed"
  "dcgm_service" "the GPU operator's host engine runs, Service nvidia-dcgm in gpu-operator"
  "dcgm_exporter" "the GPU operator's dcgm-exporter runs, and can be read on its own node"
  "runtime_class" (printf "there is a RuntimeClass %s" $access.runtimeClass.name)
  "cdi_plugin" "the GPU operator runs its plugin of the container runtime"
  "exporter_not_local" (printf "dcgm-exporter runs in gpu-operator and cannot be read on its own node: set internalTrafficPolicy=Local of its Service at the operator; and there is no RuntimeClass %s" $access.runtimeClass.name)
  "nothing_found" (printf "no host engine and no dcgm-exporter in gpu-operator, and no RuntimeClass %s, was found, or the cluster was not queried" $access.runtimeClass.name)
) $choice.reason | default $choice.reason -}}
{{- end -}}

{{/* access.notes.twice: who reads the same GPUs, of what auto looks at. The root. */}}
{{- define "dra-exporter.access.notes.twice" -}}
{{- $choice := include "dra-exporter.access.choice" . | fromYaml -}}
{{- if and $choice.record (include "dra-exporter.access.exporterFound" . | fromYaml).runs }}
  The GPUs are read twice: by these agents, and by dcgm-exporter. To read them once, set
  internalTrafficPolicy=Local of its Service at the operator, and node.access.mode=exporter with
  node.access.exporter.url=http://<name of the Service>.gpu-operator.svc:9400/metrics.
{{- else if eq (default "" .Values.node.access.cluster) "operator" }}
  The GPUs are read twice: by these agents, and by the operator's dcgm-exporter, unless you turned it off.
{{- end }}
{{- end -}}

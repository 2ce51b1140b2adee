{{/* Names by which other charts call what this one calls otherwise. The schema lets
     them pass, so that the message has the right name. */}}

{{/* aliases: a table of the name and what to set instead, for each parent. */}}
{{- define "dra-exporter.aliases" -}}
"":
  affinity: node.affinity or cluster.affinity
  alerting: rules
  annotations: node.podAnnotations or cluster.podAnnotations
  args: node.extraArgs or cluster.extraArgs
  containerSecurityContext: node.appArmorProfile, node.capabilities, node.seLinuxOptions or cluster.appArmorProfile; the rest is fixed
  customLabels: commonLabels
  env: node.env or cluster.env
  extraArgs: node.extraArgs or cluster.extraArgs
  extraContainers: node.extraContainers or cluster.extraContainers
  extraDeploy: extraObjects
  extraEnv: node.env or cluster.env
  extraInitContainers: node.extraInitContainers or cluster.extraInitContainers
  extraManifests: extraObjects
  extraVolumeMounts: node.extraVolumeMounts or cluster.extraVolumeMounts
  extraVolumes: node.extraVolumes or cluster.extraVolumes
  grafana: dashboards
  hostPID: node.hostPID
  imagePullPolicy: image.pullPolicy
  imagePullSecrets: image.pullSecrets
  initContainers: node.extraInitContainers or cluster.extraInitContainers
  kubeletPath: node.kubeletDir
  labels: commonLabels
  livenessProbe: node.livenessProbe or cluster.livenessProbe
  logFormat: log.format
  logLevel: log.level
  metrics: monitoring
  namespace: namespaceOverride
  nodeSelector: node.nodeSelector or cluster.nodeSelector
  podAnnotations: node.podAnnotations or cluster.podAnnotations
  podDisruptionBudget: cluster.podDisruptionBudget
  podLabels: node.podLabels or cluster.podLabels
  podMonitor: monitoring, whose kind is PodMonitor by default
  podSecurityContext: node.appArmorProfile or cluster.appArmorProfile; the rest is fixed
  priorityClassName: node.priorityClassName or cluster.priorityClassName
  prometheus: monitoring, and rules
  prometheusRule: rules
  prometheusRules: rules
  readinessProbe: node.readinessProbe or cluster.readinessProbe
  replicaCount: cluster.enabled alone; a second pod would count every pending claim twice
  replicas: cluster.enabled alone; a second pod would count every pending claim twice
  resources: node.resources or cluster.resources
  runtimeClassName: node.access.runtimeClass.name with node.access.mode=runtimeClass, or node.runtimeClassName
  securityContext: node.appArmorProfile, node.capabilities, node.seLinuxOptions or cluster.appArmorProfile; the rest is fixed
  service: cluster.service or node.localService
  serviceAccount: serviceAccounts.node or serviceAccounts.cluster
  serviceMonitor: monitoring, with kind=ServiceMonitor
  sidecars: node.extraContainers or cluster.extraContainers
  tolerations: node.tolerations or cluster.tolerations
  updateStrategy: node.updateStrategy or cluster.updateStrategy
  volumeMounts: node.extraVolumeMounts or cluster.extraVolumeMounts
  volumes: node.extraVolumes or cluster.extraVolumes
image:
  imagePullPolicy: image.pullPolicy
  imagePullSecrets: image.pullSecrets
  name: image.repository
  registry: image.repository, which begins with the registry
  sha: image.digest
node: &role
  annotations: podAnnotations of the same role
  args: extraArgs of the same role
  extraEnv: env of the same role
  imagePullSecrets: image.pullSecrets
  initContainers: extraInitContainers of the same role
  labels: podLabels of the same role
  podSecurityContext: appArmorProfile of the same role; the rest is fixed
  securityContext: node.appArmorProfile, node.capabilities, node.seLinuxOptions or cluster.appArmorProfile; the rest is fixed
  serviceAccount: serviceAccounts
  sidecars: extraContainers of the same role
  volumeMounts: extraVolumeMounts of the same role
  volumes: extraVolumes of the same role
cluster:
  <<: *role
  replicaCount: cluster.enabled alone; a second pod would count every pending claim twice
  replicas: cluster.enabled alone; a second pod would count every pending claim twice
  strategy: cluster.updateStrategy
monitoring:
  additionalLabels: monitoring.labels
  selector: monitoring.labels
rules:
  additionalLabels: rules.labels
  disabled: rules.disabledAlerts
{{- end -}}

{{/* aliases.validate: fails at the first of them. The root. */}}
{{- define "dra-exporter.aliases.validate" -}}
{{- range $parent, $names := include "dra-exporter.aliases" . | fromYaml -}}
{{- $values := ternary $.Values (index $.Values (default "image" $parent)) (empty $parent) -}}
{{- range $name, $instead := $names -}}
{{- if hasKey $values $name -}}
{{- fail (printf "%s is not a value of this chart: set %s" (list $parent $name | compact | join ".") $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

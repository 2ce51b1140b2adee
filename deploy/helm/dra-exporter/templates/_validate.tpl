{{/* Combinations that the schema cannot see. Each message names the key and says
     what to do. The root. */}}
{{- define "dra-exporter.validate" -}}
{{- if not (and (.Files.Glob "files/dashboards/*/*.json") (.Files.Get "files/rules/alerts.yaml") (.Files.Get "files/rules/recording.yaml") (.Files.Get "files/rules/sets.yaml")) -}}
{{- fail "the chart has no dashboards and rules in its folder files, which is not in git: run `make chart-files` in the clone, or install the packaged chart (oci://ghcr.io/dra-exporter/charts/dra-exporter)" -}}
{{- end -}}
{{- include "dra-exporter.aliases.validate" . -}}
{{- if not (has "core" .Values.sets) -}}
{{- fail "sets lacks core: the dashboards and alerts of other sets lead to those of core; add it, or set rules.enabled and dashboards.enabled to false" -}}
{{- end -}}
{{- if not (or .Values.node.enabled .Values.cluster.enabled) -}}
{{- fail "node.enabled and cluster.enabled are both false: nothing would run; enable one of them" -}}
{{- end -}}
{{- if and .Values.node.hostPID (not .Values.node.kubernetesAPI) -}}
{{- fail "node.hostPID needs node.kubernetesAPI: processes are split by the UIDs of their pods, which the API server reports; change one of them" -}}
{{- end -}}
{{- if and .Values.node.podsAPI (not .Values.node.kubernetesAPI) -}}
{{- fail "node.podsAPI needs node.kubernetesAPI: the kubelet reports pods, and the API server their claims; change one of them" -}}
{{- end -}}
{{- if and .Values.node.showPodLabels (not .Values.node.kubernetesAPI) -}}
{{- fail "node.showPodLabels needs node.kubernetesAPI: the kubelet does not report labels of pods; change one of them" -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" (include "dra-exporter.fullname" .)) -}}
{{- fail (printf "the name %s cannot be that of a Service, which begins with a letter and has no dot: set fullnameOverride" (include "dra-exporter.fullname" .)) -}}
{{- end -}}
{{- include "dra-exporter.validate.accounts" . -}}
{{- if and (include "dra-exporter.monitoring.enabled" .) (gt (include "dra-exporter.milliseconds" .Values.monitoring.scrapeTimeout | int64) (include "dra-exporter.milliseconds" .Values.monitoring.interval | int64)) -}}
{{- fail (printf "monitoring.scrapeTimeout (%s) is longer than monitoring.interval (%s): the operator ignores such a monitor, and nothing is scraped; shorten it" .Values.monitoring.scrapeTimeout .Values.monitoring.interval) -}}
{{- end -}}
{{- if and (include "dra-exporter.monitoring.enabled" .) .Values.node.enabled (gt (include "dra-exporter.milliseconds" .Values.monitoring.interval | int64) 150000) (not (regexMatch "--ledger\\.grace|DRA_EXPORTER_LEDGER_GRACE" (printf "%s %s" (toYaml .Values.node.extraArgs) (toYaml .Values.node.env)))) -}}
{{- fail (printf "monitoring.interval (%s) is longer than 2m30s, half of --ledger.grace (5m): the last values of an ended claim would not be scraped; shorten it, or set --ledger.grace in node.extraArgs to twice the interval" .Values.monitoring.interval) -}}
{{- end -}}
{{- range $key := list "severity" "scope" -}}
{{- if hasKey (default dict $.Values.rules.alertLabels) $key -}}
{{- fail (printf "rules.alertLabels: the label %s is set by each alert; remove it" $key) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.web.tls (not .Values.web.configSecret) -}}
{{- fail "web.tls needs web.configSecret: the web.yaml of that Secret names the certificate" -}}
{{- end -}}
{{- if and .Values.web.kubernetesAuth.enabled .Values.node.enabled (not .Values.node.kubernetesAPI) -}}
{{- fail "web.kubernetesAuth.enabled needs node.kubernetesAPI: the API server authorizes readers of the pages; change one of them" -}}
{{- end -}}
{{- if and .Values.web.kubernetesAuth.audiences (not .Values.web.kubernetesAuth.enabled) -}}
{{- fail "web.kubernetesAuth.audiences needs web.kubernetesAuth.enabled=true" -}}
{{- end -}}
{{- range $key := list "rules" "dashboards" -}}
{{- if and (not $.Values.monitoring.honorLabels) (eq (toString (index $.Values $key).enabled) "true") -}}
{{- fail (printf "%s.enabled is true and monitoring.honorLabels is false: those of the chart use labels that then have other names; set %s.enabled=false, and use the files that `make exported` of the repository writes" $key $key) -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.dashboards.kind "GrafanaDashboard") (not .Values.dashboards.instanceSelector) -}}
{{- fail "dashboards.instanceSelector is empty: a GrafanaDashboard selects Grafanas by their labels; set matchLabels" -}}
{{- end -}}
{{- if eq .Values.monitoring.kind "ClusterPodMonitoring" -}}
{{- range $key := list "namespace" "relabelings" "metricRelabelings" "basicAuth" "authorization" "tlsConfig" -}}
{{- if index $.Values.monitoring $key -}}
{{- fail (printf "monitoring.%s is not for monitoring.kind=ClusterPodMonitoring, which the chart creates without it; remove it, or create your own object with extraObjects" $key) -}}
{{- end -}}
{{- end -}}
{{- if eq (toString .Values.rules.enabled) "true" -}}
{{- fail "rules.enabled is true and monitoring.kind is ClusterPodMonitoring, with which an instance is not named after its node, as the rules expect; set rules.enabled to auto or false" -}}
{{- end -}}
{{- end -}}
{{- include "dra-exporter.validate.strategy" . -}}
{{- include "dra-exporter.validate.services" . -}}
{{- if and .Values.networkPolicy.egress.enabled (not .Values.networkPolicy.enabled) -}}
{{- fail "networkPolicy.egress.enabled needs networkPolicy.enabled: without it there is no NetworkPolicy; set networkPolicy.enabled=true" -}}
{{- end -}}
{{- range $role := list "node" "cluster" -}}
{{- with (index $.Values $role).appArmorProfile -}}
{{- if not .type -}}
{{- fail (printf "%s.appArmorProfile has no type: set RuntimeDefault, Localhost or Unconfined" $role) -}}
{{- end -}}
{{- if ne (eq .type "Localhost") (not (empty .localhostProfile)) -}}
{{- fail (printf "%s.appArmorProfile: localhostProfile is only for the type Localhost: set both or neither" $role) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $labels := dict "commonLabels" .Values.commonLabels "node.podLabels" .Values.node.podLabels "cluster.podLabels" .Values.cluster.podLabels
  "monitoring.labels" .Values.monitoring.labels "rules.labels" .Values.rules.labels "dashboards.labels" .Values.dashboards.labels -}}
{{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" "dra-exporter.github.io/role" -}}
{{- range $where, $map := $labels -}}
{{- if hasKey (default dict $map) $key -}}
{{- fail (printf "%s: the label %s is set by the chart; remove it" $where $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if .Values.node.enabled -}}
{{- include "dra-exporter.access.validate" . -}}
{{- include "dra-exporter.release.validate" . -}}
{{- end -}}
{{- end -}}

{{/* Rights go to an account by its name: to that of a role, and not to one that every
     pod of the namespace has unless it is said. The root. */}}
{{- define "dra-exporter.validate.accounts" -}}
{{- $accounts := .Values.serviceAccounts -}}
{{- range $role := list "node" "cluster" -}}
{{- $account := index $accounts $role -}}
{{- if and (index $.Values $role).enabled (not $account.create) (not $account.name) -}}
{{- fail (printf "serviceAccounts.%s.name is empty and create is false: set the name of your account (every pod of the namespace can use the account named default, and would then have the permissions of the exporter)" $role) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.node.enabled .Values.cluster.enabled $accounts.node.create $accounts.cluster.create $accounts.node.name (eq $accounts.node.name (default "" $accounts.cluster.name)) -}}
{{- fail "serviceAccounts.node.name and serviceAccounts.cluster.name are the same, and both are created: set create to false for one of them" -}}
{{- end -}}
{{- end -}}

{{/* Two pods of the cluster role would count every pending claim twice, and a
     rolling update has two unless it says otherwise. The root. */}}
{{- define "dra-exporter.validate.strategy" -}}
{{- with .Values.cluster.updateStrategy -}}
{{- $rolling := default dict .rollingUpdate -}}
{{- if and (eq .type "RollingUpdate") (not (has (toString (dig "maxSurge" "" $rolling)) (list "0" "0%"))) -}}
{{- fail "cluster.updateStrategy: RollingUpdate needs rollingUpdate.maxSurge=0: two pods at a time would count every pending claim twice" -}}
{{- end -}}
{{- if and (eq .type "Recreate") $rolling -}}
{{- fail "cluster.updateStrategy: rollingUpdate is only for the type RollingUpdate: set it, or remove rollingUpdate" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A port of the nodes belongs to a Service that has one. The root. */}}
{{- define "dra-exporter.validate.services" -}}
{{- range $key, $service := dict "cluster.service" (default dict .Values.cluster.service) "node.localService" (default dict .Values.node.localService) -}}
{{- if and $service.nodePort (eq $service.type "ClusterIP") -}}
{{- fail (printf "%s.nodePort is set and the type is ClusterIP, which has no port of the nodes: set %s.type=NodePort" $key $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}

#!/bin/sh
# Shows on a cluster what two requirements of CNCF's AI conformance ask for,
# accelerator_metrics and pod_autoscaling, under the names that NVIDIA/aicr looks for:
# see docs/conformance.md. It needs kubectl and awk, and writes nothing.
#
#   ./check.sh
#
#   NAMESPACES  of the pods whose metrics are asked for; default: those that aicr asks for
#   PAGE        URL of an agent's metrics for curl; default: of each agent, through the
#               API server
#
# The exit status is 1 if something is missing.
set -eu
: "${NAMESPACES:=gpu-operator dynamo-system}" "${PAGE:=}"
missing=0
page=$(mktemp)
trap 'rm -f "$page"' EXIT

# report TEXT COMMAND...: whether the command succeeds, with what it prints.
report() {
	text=$1
	shift
	if output=$("$@" 2>&1); then
		echo "ok       $text${output:+: $output}"
	else
		echo "MISSING  $text${output:+: $output}"
		missing=1
	fi
}

# agents prints namespace/name of each running agent that has the labels.
agents() {
	kubectl get pods --all-namespaces --selector="$1" --field-selector=status.phase=Running \
		--output='jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}{"\n"}{end}'
}

# labeled fails if there is no agent with the labels.
labeled() {
	pods=$(agents "$1") && [ -n "$pods" ]
}

# accelerators prints how many there are, and fails if one has no utilization or no
# memory. The utilization of a GPU with partitions is that of these.
accelerators() {
	awk '
	function label(name) {
		if (!match($0, "[{,]" name "=\"[^\"]*\"")) return ""
		return substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
	}
	/^dra_device_info[{]/ && label("vendor") ~ /^(nvidia|amd)$/ { all[label("uuid")] }
	/^dra_device_memory_size_bytes[{]/ { all[label("uuid")] }
	/^dra_device_memory_used_bytes[{]/ { memory[label("uuid")] }
	/^dra_device_utilization_ratio[{]/ { use[label("uuid")]; use[label("parent_uuid")] }
	END {
		for (uuid in all) {
			n++
			if (!(uuid in use)) lacking = lacking " " uuid " (utilization)"
			if (!(uuid in memory)) lacking = lacking " " uuid " (memory)"
		}
		if (lacking) print "without:" lacking
		else print n + 0
		exit lacking != "" || n == 0
	}' "$page"
}

# named prints how many series have the name, and fails if none has.
named() {
	awk -v name="$1" 'index($0, name "{") == 1 { n++ } END { print n + 0; exit !n }' "$page"
}

check_page() {
	report "$1: accelerators with utilization and memory" accelerators
	for name in GPU_UTIL FB_USED GPU_TEMP POWER_USAGE; do
		report "$1: DCGM_FI_DEV_$name" named "DCGM_FI_DEV_$name"
	done
}

# values prints how many values the API has at one of the paths.
values() {
	for path; do
		answer=$(kubectl get --raw "$path") || continue
		n=$(echo "$answer" | tr ',{}' '\n\n\n' | grep -c '^ *"value":') || continue
		echo "$n in $path"
		return
	done
	return 1
}

echo "accelerator_metrics"
if [ -n "$PAGE" ]; then
	curl --silent --show-error --fail --output "$page" "$PAGE"
	check_page "$PAGE"
else
	pods=$(agents dra-exporter.github.io/role=node)
	report "agents" [ -n "$pods" ]
	for pod in $pods; do
		kubectl get --raw "/api/v1/namespaces/${pod%/*}/pods/${pod#*/}:9420/proxy/metrics" >"$page"
		check_page "$pod"
	done
fi
report "Service nvidia-dcgm-exporter in gpu-operator" \
	kubectl get service nvidia-dcgm-exporter --namespace=gpu-operator --output=name

echo "pod_autoscaling"
report "agents with the label app=nvidia-dcgm-exporter" labeled app=nvidia-dcgm-exporter,dra-exporter.github.io/role=node
for metric in gpu_utilization gpu_memory_used gpu_power_usage; do
	paths=
	for namespace in $NAMESPACES; do
		paths="$paths /apis/custom.metrics.k8s.io/v1beta1/namespaces/$namespace/pods/*/$metric"
	done
	set -f # the paths have a *
	# shellcheck disable=SC2086 # several paths
	report "$metric of pods" values $paths
	set +f
done
report "external metric dcgm_gpu_power_usage" values /apis/external.metrics.k8s.io/v1beta1/namespaces/default/dcgm_gpu_power_usage
exit $missing

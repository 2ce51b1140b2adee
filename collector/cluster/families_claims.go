package cluster

import (
	"time"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// durationFamilies are histograms, of which there are no rows.
func durationFamilies() definitions {
	return definitions{
		{Family: metric.Family{
			Name: metric.AllocationDurationSeconds, Unit: "seconds", Type: metric.Histogram, Labels: []string{"deviceclass", "phase"},
			Help: "Duration of a phase: allocation, binding, scheduling, preparation, start, preparation_start (kubelets before 1.36)",
		}},
		{Family: metric.Family{
			Name: metric.ClaimReadyDurationSeconds, Unit: "seconds", Type: metric.Histogram, Labels: []string{"deviceclass"},
			Help: "Time from when a pod's claim became pending until the pod's first container, of any kind, started",
		}},
	}
}

// pendingFamilies have the oldest reference first: a limit keeps those.
func pendingFamilies() definitions {
	reference := func(more ...string) []string { return append([]string{"namespace", "pod", "pod_claim"}, more...) }
	return definitions{
		{
			Family: metric.Family{
				Name: metric.ClaimPendingSinceTimestampSeconds, Unit: "seconds", Labels: reference("resourceclaim", "deviceclass"),
				Help: "Unix time since which a claim is pending, gated pods included; resourceclaim is empty until the claim exists",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pending.labels {
					ref := labels.ref
					if labels.since == nil {
						labels.since = metric.NewLabels(b.Family().Labels, ref.Pod.Namespace, ref.Pod.Name, ref.PodClaim, ref.Claim, ref.DeviceClass)
					}
					b.Add(labels.since, float64(ref.Since.Unix()))
				}
			},
		},
		{
			Family: metric.Family{
				Name: metric.ClaimPendingReasonInfo, Labels: reference("reason", "workload_kind", "workload"),
				Help: "Reason for which the claim is pending: the first of docs/pending.md that applies; and the pod's workload, empty without one",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pending.labels {
					if ref := labels.ref; labels.reason == nil {
						var workload dra.Workload
						if ref.Workload != nil {
							workload = *ref.Workload
						}
						labels.reason = metric.NewLabels(b.Family().Labels, ref.Pod.Namespace, ref.Pod.Name, ref.PodClaim, string(ref.Reason), workload.Kind, workload.Name)
					}
					b.Add(labels.reason, 1)
				}
			},
		},
		{
			Family: metric.Family{
				Name: metric.ClaimPendingRequestedDevices, Labels: reference("request"),
				Help: "Number of devices that the request asks for; absent if it asks for all that match",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pending.labels {
					labels.requestedRows(b)
				}
			},
		},
		{
			Family: metric.Family{
				Name: metric.ClaimPendingCandidates, Labels: reference("request", "stage"),
				Help: "Devices that remain for the request after each stage: published, class, selectors, untainted, free, best_node",
			},
			Fill: func(m *labelled, b *metric.Builder) {
				for _, labels := range m.pending.labels {
					labels.candidateRows(b, m.NodesKnown)
				}
			},
		},
		listed(
			metric.Family{
				Name: "dra_autoscaler_pending_pods", Labels: []string{"autoscaler", "state"},
				Help: "Pods with pending claims by what the autoscaler last reported of them: scale_up (a node for it), declined (none)",
			},
			func(m *labelled) []model.AutoscalerPods { return m.Autoscalers },
			func(a model.AutoscalerPods) rowValues { return rowValues{string(a.Autoscaler), string(a.State)} },
			func(a model.AutoscalerPods) (float64, time.Time) { return number(a.Pods) },
		),
	}
}

func (l *pendingLabels) requestedRows(b *metric.Builder) {
	for asked, labels := range l.distinct {
		if asked.Count > 0 {
			b.Add(cached(&labels.requested, b, l.ref.Pod.Namespace, l.ref.Pod.Name, l.ref.PodClaim, asked.Request), float64(asked.Count))
		}
	}
}

// candidateRows adds what each stage leaves; that of the best node needs the nodes.
func (l *pendingLabels) candidateRows(b *metric.Builder, nodes bool) {
	for asked, labels := range l.distinct {
		for stage, left := range asked.Left {
			if nodes || dra.Stage(stage) != dra.StageBestNode {
				b.Add(cached(&labels.candidates[stage], b, l.ref.Pod.Namespace, l.ref.Pod.Name, l.ref.PodClaim, asked.Request, dra.Stage(stage).String()), float64(left))
			}
		}
	}
}

func phaseFamilies() definitions {
	return definitions{
		keyed(
			metric.Family{
				Name: metric.ClaimPhaseSinceTimestampSeconds, Unit: "seconds", Labels: []string{"namespace", "pod", "resourceclaim", "phase"},
				Help: "Unix time at which the pod entered its phase: binding, scheduling, preparation, start, preparation_start",
			},
			func(m *labelled) []*model.Phase { return m.Phases },
			func(p *model.Phase) *model.Phase { return p },
			func(p *model.Phase) rowValues { return rowValues{p.Pod.Namespace, p.Pod.Name, p.Claim, p.Name} },
			func(p *model.Phase) (float64, time.Time) { return unixSeconds(p.Since) },
		),
	}
}

func failureFamilies() definitions {
	var rows labelList[*model.FailureCount, string, []*metric.Labels]
	return definitions{{
		Family: metric.Family{
			Name: "dra_allocation_failures_total", Type: metric.Counter, Labels: []string{"deviceclass", "reason"},
			Help: "Problems of claims that began after the exporter started: pending reasons, and binding, preparation or creation failures",
		},
		Fill: func(m *labelled, b *metric.Builder) {
			rows.take(m.Failures, func(f *model.FailureCount) string { return f.Class })
			for i, failures := range m.Failures {
				labels := rows.labels[i]
				if *labels == nil {
					*labels = make([]*metric.Labels, len(failures.Reasons))
				}
				for j := range failures.Reasons {
					counter := &failures.Reasons[j]
					b.AddFrom(cached(&(*labels)[j], b, failures.Class, counter.Name), counter.Count, counter.Since)
				}
			}
		},
	}}
}

func claimFamilies() definitions {
	return definitions{
		claimCountFamily(),
		listed(
			metric.Family{
				Name: metric.ClaimTerminatingSinceTimestampSeconds, Unit: "seconds", Labels: []string{"namespace", "resourceclaim"},
				Help: "Unix time since which the claim is terminating, kept by finalizers",
			},
			func(m *labelled) []model.TerminatingClaim { return m.TerminatingClaims },
			func(c model.TerminatingClaim) rowValues { return rowValues{c.Ref.Namespace, c.Ref.Name} },
			func(c model.TerminatingClaim) (float64, time.Time) { return unixSeconds(c.Since) },
		),
		listed(
			metric.Family{
				Name: metric.ClaimOrphaned, Labels: []string{"namespace", "resourceclaim"},
				Help: "1 if the claim is reserved only for pods that no longer exist",
			},
			func(m *labelled) []dra.ClaimRef { return m.OrphanedClaims },
			func(c dra.ClaimRef) rowValues { return rowValues{c.Namespace, c.Name} },
			constant,
		),
		listed(
			metric.Family{
				Name: metric.PodDeletionTimestampSeconds, Unit: "seconds", Labels: []string{"namespace", "pod", "node"},
				Help: "Unix time at which the grace period of a deleted pod that uses claims ends: its deletionTimestamp",
			},
			func(m *labelled) []model.DeletedPod { return m.DeletedPods },
			func(p model.DeletedPod) rowValues { return rowValues{p.Pod.Namespace, p.Pod.Name, p.Node} },
			func(p model.DeletedPod) (float64, time.Time) { return unixSeconds(p.Due) },
		),
	}
}

func claimCountFamily() definition {
	var rows labelList[*model.ClaimCount, [2]string, [model.ClaimStates]*metric.Labels]
	return definition{
		Family: metric.Family{
			Name: metric.Claims, Labels: []string{"namespace", "deviceclass", "state"},
			Help: "ResourceClaims by state: unused (no pod refers to it), pending, allocated (not reserved), reserved, terminating",
		},
		Fill: func(m *labelled, b *metric.Builder) {
			rows.take(m.Claims, func(c *model.ClaimCount) [2]string { return [2]string{c.Namespace, c.Class} })
			for i, count := range m.Claims {
				labels := rows.labels[i]
				for state := range count.States {
					if claims := &count.States[state]; claims.Known {
						b.Add(cached(&labels[state], b, count.Namespace, count.Class, model.ClaimState(state).String()), claims.Value)
					}
				}
			}
		},
	}
}

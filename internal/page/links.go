package page

import (
	"net/url"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// Links are the base URLs of what the pages link to; there are no links to what is empty.
type Links struct {
	Grafana  string // of Grafana, which has the project's dashboards
	Runbooks string // of the folder with the runbooks
	Cluster  string // of the cluster role's page
}

// link is one link.
type link struct{ Title, Address string }

// dashboard returns the link to one of the project's dashboards with variables, names and
// values in turn; none without Grafana.
func (l Links) dashboard(title, uid string, variables ...string) []link {
	if l.Grafana == "" {
		return nil
	}
	query := url.Values{}
	for i := 0; i < len(variables); i += 2 {
		query.Set("var-"+variables[i], variables[i+1])
	}
	address := strings.TrimSuffix(l.Grafana, "/") + "/d/" + uid
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	return []link{{title, address}}
}

// runbook returns the link to the runbook of an alert.
func (l Links) runbook(alert string) []link {
	if l.Runbooks == "" || alert == "" {
		return nil
	}
	return []link{{"Runbook " + alert, strings.TrimSuffix(l.Runbooks, "/") + "/" + alert + ".md"}}
}

// overview returns the link to the cluster role's page.
func (l Links) overview() []link {
	if l.Cluster == "" {
		return nil
	}
	return []link{{"Cluster", strings.TrimSuffix(l.Cluster, "/") + "/"}}
}

// pod returns the address of a pod's page of the cluster role; empty without one.
func (l Links) pod(namespace, pod string) string {
	if l.Cluster == "" {
		return ""
	}
	return strings.TrimSuffix(l.Cluster, "/") + "/pod?" + url.Values{"namespace": {namespace}, "name": {pod}}.Encode()
}

// healthAlert returns the alert that fires for a device in this state; empty if none does.
func healthAlert(health Health) string {
	return map[Severity]string{Recovering: "DRADeviceXIDFatal", Unhealthy: "DRADeviceUnhealthy"}[health.Severity()]
}

// pendingAlert returns the alert that fires for claims that are pending for long for this
// reason; none fires for gated ones.
func pendingAlert(reason string) string {
	if dra.PendingReason(reason).Gated() {
		return ""
	}
	return "DRAClaimPendingTooLong"
}

// phaseAlert returns the alert that fires for a phase that takes long.
func phaseAlert(phase string) string {
	return map[string]string{
		"binding": "DRABindingStuck", "preparation": "DRAPreparationStuck", "preparation_start": "DRAPreparationStuck", "start": "DRAStartStuck",
	}[phase]
}

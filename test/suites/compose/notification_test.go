package compose

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNotification runs Alertmanager with the configuration and the template
// of docs/alerts.md. The receivers get the right alerts, with the text of the
// template.
func TestNotification(t *testing.T) { eachAlertmanager(t, testNotification) }

func testNotification(t *testing.T, manager alertmanager) {
	received := make(chan message, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		received <- message{request.URL.Path, body}
		fmt.Fprint(w, "ok") // as Slack answers
	}))
	t.Cleanup(server.Close)
	file := documentedAlertmanager(t, server.URL)
	manager.check(t, file)
	url := manager.start(t, file)
	xid := alert("alertname=DRADeviceXIDFatal", "severity=critical", "node=gpu-node-1", "uuid=GPU-1", "xid=79")
	xid["annotations"] = map[string]string{
		"summary":       `GPU-1 of gpu-node-1: Xid 79 "fell off the bus" <&>`,
		"description":   "Claim ml/train holds it.",
		"runbook_url":   "https://github.com/dra-exporter/dra-exporter/blob/main/docs/runbooks/DRADeviceXIDFatal.md",
		"dashboard_url": "/d/dra-health?var-node=gpu-node-1&var-cluster=a%2Fb",
	}
	send(t, url, []map[string]any{
		xid,
		alert("alertname=DRAClaimIdle", "severity=warning", "namespace=team-a", "resourceclaim=train"),
		alert("alertname=DRAClaimIdle", "severity=warning", "namespace=team-b", "resourceclaim=train"),
	})
	got := map[string][]byte{}
	eventually(t, "a notification for each receiver", func() error {
		for {
			select {
			case m := <-received:
				got[m.path] = m.body
			default:
				if len(got) < 3 {
					return fmt.Errorf("there are %d", len(got))
				}
				return nil
			}
		}
	})
	checkSlack(t, got["/on-call"])
	for _, team := range []string{"team-a", "team-b"} {
		path := map[string]string{"team-a": "/team-a", "team-b": "/tickets"}[team]
		var webhook struct {
			Alerts []struct{ Labels map[string]string }
		}
		if err := json.Unmarshal(got[path], &webhook); err != nil || len(webhook.Alerts) != 1 || webhook.Alerts[0].Labels["namespace"] != team {
			t.Errorf("%s has received %s (%v)", path, got[path], err)
		}
	}
}

// message is what a receiver has got.
type message struct {
	path string
	body []byte
}

// checkSlack compares a message to Slack with what the documented templates
// make of the alert.
func checkSlack(t *testing.T, body []byte) {
	t.Helper()
	var slack struct {
		Channel     string
		Attachments []struct{ Title, Text string }
	}
	if err := json.Unmarshal(body, &slack); err != nil || len(slack.Attachments) != 1 {
		t.Fatalf("%s: %v", body, err)
	}
	const (
		title = `GPU-1 of gpu-node-1: Xid 79 "fell off the bus" <&>`
		text  = title + `
Claim ml/train holds it.
Runbook: https://github.com/dra-exporter/dra-exporter/blob/main/docs/runbooks/DRADeviceXIDFatal.md
Dashboard: https://grafana.example.com/d/dra-health?var-node=gpu-node-1&var-cluster=a%2Fb`
	)
	if got := slack.Attachments[0]; slack.Channel != "#gpu-on-call" || got.Title != title || strings.TrimSpace(got.Text) != text {
		t.Errorf("%s gets %q and\n%s\nwant %q and\n%s", slack.Channel, got.Title, got.Text, title, text)
	}
}

// documentedAlertmanager writes the configuration and the template of
// docs/alerts.md, and returns the configuration's file. Notifications are sent
// at once, to paths of the URL: to Slack's address, and to webhooks of the
// receivers that have no integration.
func documentedAlertmanager(t *testing.T, url string) string {
	t.Helper()
	_, section, found := strings.Cut(read(t, repository, "docs/alerts.md"), "\n## Alertmanager\n")
	_, config, opened := strings.Cut(section, "```yaml\n")
	config, rest, closed := strings.Cut(config, "```\n")
	template := regexp.MustCompile(`(?s)    (\{\{ define .*?\{\{ end \}\}\{\{ end \}\})\n`).FindStringSubmatch(rest)
	if !found || !opened || !closed || template == nil {
		t.Fatal("docs/alerts.md has no configuration of Alertmanager, or no template")
	}
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config = regexp.MustCompile(`group_wait: \w+`).ReplaceAllString(config, "group_wait: 100ms")
	file := write("alertmanager.yaml", config)
	webhook := func(name string) string {
		return fmt.Sprintf("  - name: %s\n    webhook_configs: [{url: %q}]\n", name, url+"/"+name)
	}
	move(t, file, map[string]string{
		"/etc/alertmanager/slack-url": write("slack-url", url+"/on-call"),
		"/etc/alertmanager/dra.tmpl":  write("dra.tmpl", strings.ReplaceAll(template[1], "\n    ", "\n")),
		"  - name: tickets\n":         webhook("tickets"),
		"  - name: team-a\n":          webhook("team-a"),
	})
	return file
}

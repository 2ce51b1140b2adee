package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// alertmanager is Debian's Alertmanager, of one test. It notifies the test's
// webhook of each alert separately and immediately.
type alertmanager struct {
	address string // HOST:PORT
	began   time.Time
	webhook *webhookReceiver
}

// notification is an alert as a webhook receives it, or as Alertmanager's API
// reports it.
type notification struct {
	Status       any // at a webhook: firing, resolved
	Labels       map[string]string
	Annotations  map[string]string
	StartsAt     time.Time
	EndsAt       time.Time
	GeneratorURL string
	Fingerprint  string

	at time.Time // when it was received
}

func (n notification) String() string {
	return fmt.Sprintf("%v %v since %s: %s", n.Status, n.Labels, n.StartsAt.Format(time.TimeOnly), n.Annotations["summary"])
}

// startAlertmanager runs one until the test ends.
func startAlertmanager(t *testing.T, name string) *alertmanager {
	t.Helper()
	a := &alertmanager{address: porttest.OneAddress(t), webhook: &webhookReceiver{}}
	webhook := httptest.NewServer(a.webhook)
	folder := t.TempDir()
	file := filepath.Join(folder, "alertmanager.yaml")
	config, err := yaml.Marshal(object{
		"route": object{
			"receiver": "test", "group_by": []string{"..."},
			"group_wait": "100ms", "group_interval": "1s", "repeat_interval": "1h",
		},
		"receivers": []object{{"name": "test", "webhook_configs": []object{{"url": webhook.URL, "send_resolved": true}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.EndProgram(name); err != nil {
			t.Error(err)
		}
		webhook.Close()
	})
	_, err = shared.StartProgram(t.Context(), name, filepath.Join(os.Getenv("DRA_E2E_BIN"), "alertmanager", "prometheus-alertmanager"), []string{
		"--config.file=" + file, "--storage.path=" + folder, "--web.listen-address=" + a.address, "--cluster.listen-address=",
	}, "http://"+a.address+"/-/ready")
	if err != nil {
		t.Fatal(err)
	}
	a.began = time.Now()
	return a
}

// firing returns the alerts of that name that are firing in Alertmanager now,
// with the latest annotations of Prometheus.
func (a *alertmanager) firing(ctx context.Context, alert string) ([]notification, error) {
	filter := url.QueryEscape(fmt.Sprintf("alertname=%q", alert))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.address+"/api/v2/alerts?filter="+filter, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var found []notification
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, fmt.Errorf("read Alertmanager's alerts (%s): %w", response.Status, err)
	}
	return found, nil
}

// waitNotified waits until the webhook has received a notification for which
// is returns true.
func (a *alertmanager) waitNotified(t *testing.T, what string, is func(notification) bool) (found notification) {
	t.Helper()
	err := cluster.Eventually(t.Context(), what, func(context.Context) error {
		all := a.webhook.all()
		i := slices.IndexFunc(all, is)
		if i < 0 {
			return fmt.Errorf("the webhook received %v", all)
		}
		found = all[i]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// webhookReceiver is a webhook that keeps the notifications that it receives.
type webhookReceiver struct {
	lock    sync.Mutex
	notices []notification
}

func (i *webhookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message struct{ Alerts []notification }
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	i.lock.Lock()
	defer i.lock.Unlock()
	for _, n := range message.Alerts {
		n.at = time.Now()
		i.notices = append(i.notices, n)
	}
}

// all returns the notifications in the order in which they were received.
func (i *webhookReceiver) all() []notification {
	i.lock.Lock()
	defer i.lock.Unlock()
	return slices.Clone(i.notices)
}

package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionapi "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// controller is a controller of workloads, built from its module, with its own
// definitions and webhooks. It runs as a process of the host.
type controller struct {
	name          string // of its program
	configuration string // kind and version of its configuration file, and what the test adds
	webhooks      []string
}

const (
	jobSetConfiguration = `
apiVersion: config.jobset.x-k8s.io/v1alpha1
kind: Configuration
`
	lwsConfiguration = `
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
`
	// A claim of class gpu.example.com counts as so many of the resource gpus.
	kueueConfiguration = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
featureGates: {VisibilityOnDemand: false}
integrations: {frameworks: [batch/job, jobset.x-k8s.io/jobset, pod]}
resources: {deviceClassMappings: [{name: example.com/gpus, deviceClassNames: [gpu.example.com]}]}
`
)

// startControllers runs controllers until the test ends. Their webhooks are called for
// objects of one namespace, and for those without one.
func startControllers(t *testing.T, namespace string, all ...controller) {
	t.Helper()
	host := shared.GatewayIP()
	chain, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	certificates := t.TempDir()
	for file, content := range map[string][]byte{"tls.crt": chain, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(certificates, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range all {
		of.install(t)
		ports, err := porttest.Unused("", 2)
		if err != nil {
			t.Fatal(err)
		}
		probes, webhooks := ports[0], ports[1]
		file := written(t, of.configuration+fmt.Sprintf(`
health: {healthProbeBindAddress: "127.0.0.1:%d"}
metrics: {bindAddress: "0"}
webhook: {host: %s, port: %d, certDir: /certificates}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
`, probes, host, webhooks))
		files := map[string]string{"/" + of.name: of.file(""), "/kubeconfig": shared.Kubeconfig(), "/configuration": file}
		for _, name := range []string{"tls.crt", "tls.key"} {
			files["/certificates/"+name] = filepath.Join(certificates, name)
			files["/etc/kueue/metrics/certs/"+name] = filepath.Join(certificates, name)
		}
		startInRoot(t, of.name, files, []string{"--config=/configuration", "--kubeconfig=/kubeconfig"}, fmt.Sprintf("http://127.0.0.1:%d/readyz", probes))
		of.registerWebhooks(t, namespace, fmt.Sprintf("https://%s:%d", host, webhooks), chain)
	}
}

// startInRoot runs a program until the test ends, as a process with a root folder of its
// own: it reads files from fixed places, as in its image. files are the files here, by
// their place there; the program is /name.
func startInRoot(t *testing.T, name string, files map[string]string, args []string, url string) {
	t.Helper()
	root := t.TempDir()
	for path, from := range files {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(root+path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+path, content, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := shared.EndProgram(name); err != nil {
			t.Error(err)
		}
	})
	if _, err := shared.StartProgram(t.Context(), name, "/usr/sbin/chroot", append([]string{root, "/" + name}, args...), url); err != nil {
		t.Fatal(err)
	}
}

// file returns the path of a file of the controller.
func (c controller) file(suffix string) string {
	return filepath.Join(os.Getenv("DRA_E2E_BIN"), "controllers", c.name+suffix)
}

// install installs the controller's kinds until the test ends.
func (c controller) install(t *testing.T) {
	t.Helper()
	definitions, err := os.ReadFile(c.file("-definitions.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	withDefinitions(t, string(definitions))
}

// withDefinitions installs kinds until the test ends. It then waits until they are gone.
func withDefinitions(t *testing.T, definitions string) {
	t.Helper()
	for _, text := range strings.Split(definitions, "\n---\n") {
		var definition metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(text), &definition); err != nil {
			t.Fatal(err)
		}
		if definition.Name != "" {
			withDefinition(t, definition.Name, text)
		}
	}
}

// registerWebhooks registers the mutating webhooks that the tests need.
func (c controller) registerWebhooks(t *testing.T, namespace, url string, authority []byte) {
	t.Helper()
	text, err := os.ReadFile(c.file("-webhooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var registration admissionapi.MutatingWebhookConfiguration
	for _, document := range strings.Split(string(text), "\n---\n") {
		var found admissionapi.MutatingWebhookConfiguration
		if err := yaml.Unmarshal([]byte(document), &found); err != nil {
			t.Fatal(err)
		}
		if found.Kind == "MutatingWebhookConfiguration" {
			registration = found
		}
	}
	registration.Webhooks = slices.DeleteFunc(registration.Webhooks, func(hook admissionapi.MutatingWebhook) bool { return !slices.Contains(c.webhooks, hook.Name) })
	if len(registration.Webhooks) != len(c.webhooks) {
		t.Fatalf("%s has only these webhooks of %q: %+v", c.name, c.webhooks, registration.Webhooks)
	}
	registration.Name = "e2e-" + c.name
	for i := range registration.Webhooks {
		hook := &registration.Webhooks[i]
		path := url + *hook.ClientConfig.Service.Path
		hook.ClientConfig = admissionapi.WebhookClientConfig{URL: &path, CABundle: authority}
		hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}}
	}
	client := shared.Client().AdmissionregistrationV1().MutatingWebhookConfigurations()
	if _, err := client.Create(t.Context(), &registration, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(t.Context()), registration.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// applyEventually applies objects until the API server accepts them: webhooks and kinds
// may have been registered just now.
func applyEventually(t *testing.T, manifests string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.Eventually(ctx, "the objects to be accepted", func(ctx context.Context) error { return shared.Apply(ctx, manifests) }); err != nil {
		t.Fatal(err)
	}
}

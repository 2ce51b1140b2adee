// Package compose tests deploy/compose: its files with Compose's own loader,
// and its configurations with Prometheus, Alertmanager and the demo. The tests
// do not need Docker. `make -C test compose` builds what they need.
package compose

import (
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

const (
	repository = "../../.."
	folder     = repository + "/deploy/compose"
)

// project decodes compose.yaml as `docker compose` does. A key that its schema
// does not have is an error.
func project(t *testing.T) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(folder, "compose.yaml")}, cli.WithDiscardEnvFile)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestServices: services listen on the loopback only, images are pinned, and
// the contexts of builds are complete.
func TestServices(t *testing.T) {
	pinned := regexp.MustCompile(`^[a-z/]+:v?\d+\.\d+\.\d+$`)
	services := project(t).Services
	for _, name := range []string{"demo", "prometheus", "alertmanager", "grafana"} {
		service, there := services[name]
		if !there {
			t.Fatalf("there is no service %s", name)
		}
		if len(service.Ports) == 0 {
			t.Errorf("%s has no port", name)
		}
		for _, port := range service.Ports {
			if address, err := netip.ParseAddr(port.HostIP); err != nil || !address.IsLoopback() {
				t.Errorf("%s listens on %q: it is to listen on the loopback", name, port.HostIP)
			}
		}
		if service.Build == nil && !pinned.MatchString(service.Image) {
			t.Errorf("%s has the image %q, which says no version", name, service.Image)
		}
		if service.Privileged || service.NetworkMode == "host" || service.Pid != "" {
			t.Errorf("%s asks for what it does not need", name)
		}
	}
	build := services["demo"].Build
	dockerfile, err := os.ReadFile(filepath.Join(build.Context, build.Dockerfile))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^FROM .* AS ` + build.Target + `$`).Match(dockerfile) {
		t.Errorf("the Dockerfile has no target %q", build.Target)
	}
}

// TestPrometheusVersion: the image has the version with which all other tests
// run. The module of Prometheus v3.15.0 is v0.315.0.
func TestPrometheusVersion(t *testing.T) {
	module := regexp.MustCompile(`github.com/prometheus/prometheus v0\.(\d)(\d\d)\.(\d+)`).
		FindStringSubmatch(read(t, repository, "test/suites/prometheus/go.mod"))
	if module == nil {
		t.Fatal("test/suites/prometheus/go.mod pins no Prometheus")
	}
	want := "prom/prometheus:v" + module[1] + "." + strings.TrimPrefix(module[2], "0") + "." + module[3]
	if image := project(t).Services["prometheus"].Image; image != want {
		t.Errorf("the image is %s, tested is %s", image, want)
	}
}

// TestAlertmanagerVersion: the image has the version that is tested.
func TestAlertmanagerVersion(t *testing.T) {
	module := regexp.MustCompile(`github.com/prometheus/alertmanager (v\S+)`).FindStringSubmatch(read(t, repository, "test/programs/sources/go.mod"))
	if module == nil {
		t.Fatal("test/programs/sources/go.mod pins no Alertmanager")
	}
	if image, want := project(t).Services["alertmanager"].Image, "prom/alertmanager:"+module[1]; image != want {
		t.Errorf("the image is %s, tested is %s", image, want)
	}
}

// TestScrapes: both jobs scrape as the shipped PodMonitors do.
func TestScrapes(t *testing.T) {
	var config struct {
		Jobs []struct {
			Name    string `yaml:"job_name"`
			Honor   bool   `yaml:"honor_labels"`
			Classic bool   `yaml:"always_scrape_classic_histograms"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, folder, "prometheus.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	monitors := map[string]string{"dra-exporter-node": "podmonitor.yaml", "dra-exporter-cluster": "podmonitor-cluster.yaml"}
	if len(config.Jobs) != len(monitors) {
		t.Errorf("there are %d jobs", len(config.Jobs))
	}
	for _, job := range config.Jobs {
		var monitor struct {
			Spec struct {
				Classic   bool `yaml:"scrapeClassicHistograms"`
				Endpoints []struct {
					Honor bool `yaml:"honorLabels"`
				} `yaml:"podMetricsEndpoints"`
			}
		}
		if err := yaml.Unmarshal([]byte(read(t, repository, "deploy/kustomize/components/podmonitor", monitors[job.Name])), &monitor); err != nil {
			t.Fatal(err)
		}
		if job.Honor != monitor.Spec.Endpoints[0].Honor || job.Classic != monitor.Spec.Classic {
			t.Errorf("%s: honor_labels is %t, always_scrape_classic_histograms %t, and the PodMonitor differs", job.Name, job.Honor, job.Classic)
		}
	}
}

// TestReadmeJob: the README's job for a cluster is valid in Prometheus.
func TestReadmeJob(t *testing.T) {
	_, job, _ := strings.Cut(read(t, folder, "README.md"), "```yaml\n")
	job, _, found := strings.Cut(job, "  ```")
	if !found || !strings.Contains(job, "honor_labels: true") {
		t.Fatalf("README.md has no job: %s", job)
	}
	file := filepath.Join(t.TempDir(), "prometheus.yaml")
	if err := os.WriteFile(file, []byte("scrape_configs:\n"+job), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, err := exec.Command(program("prometheus/promtool"), "check", "config", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestMounts: everything that is mounted from the repository exists, and is
// mounted read-only.
func TestMounts(t *testing.T) {
	for name, service := range project(t).Services {
		for _, mount := range service.Volumes {
			if mount.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(mount.Source); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if !mount.ReadOnly {
				t.Errorf("%s may write to %s", name, mount.Source)
			}
		}
	}
}

// root returns a folder with the files of a service's container that come from
// the repository: copies of its mounts, except where the container's own
// temporary folders hide them.
func root(t *testing.T, service types.ServiceConfig) string {
	t.Helper()
	top := t.TempDir()
	for _, mount := range service.Volumes {
		if mount.Type == types.VolumeTypeBind {
			copyTo(t, mount.Source, filepath.Join(top, mount.Target))
		}
	}
	for _, hidden := range service.Tmpfs {
		if err := os.RemoveAll(filepath.Join(top, hidden)); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

// copyTo copies a file, or a folder with its contents.
func copyTo(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		err = os.CopyFS(to, os.DirFS(from))
	} else {
		err = os.WriteFile(to, []byte(read(t, from)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// flag returns the value of a flag of a service's command.
func flag(t *testing.T, service types.ServiceConfig, name string) string {
	t.Helper()
	for _, argument := range service.Command {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value
		}
	}
	t.Fatalf("%v has no --%s", service.Command, name)
	return ""
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

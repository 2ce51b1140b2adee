package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationapi "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/dra-exporter/dra-exporter/test/fakes/porttest"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const (
	clusterAccount = "dra-exporter-cluster"
	clusterProcess = "exporter-cluster"

	lifeDriver    = "life.example.com"
	pendingDriver = "pending.example.com" // publishes slices only
	otherNode     = "node-b"              // a node without a kubelet
)

// The cluster role of all tests: a process with the permissions of the shipped
// ServiceAccount, which a test can kill and start again.
var (
	clusterURL     string // of its pages, with a slash at the end
	clusterWatcher *scrape.Watcher
	behaviourFile  string // path of the behaviour of life.example.com
)

// startClusterRole publishes the devices that tests of the cluster role
// request, starts the role, and waits for its first page.
func startClusterRole(ctx context.Context) error {
	classes, err := os.ReadFile("testdata/life-classes.yaml")
	if err != nil {
		return err
	}
	if err := shared.Apply(ctx, string(classes)); err != nil {
		return err
	}
	devices, err := devicesFile(shared, "life.example.com.yaml")
	if err != nil {
		return err
	}
	behaviourFile = filepath.Join(shared.Dir(), "behaviour.yaml")
	if _, err := shared.StartShapesDriver(ctx, lifeDriver, devices, "--behaviour", behaviourFile, "--health"); err != nil {
		return err
	}
	if clusterURL, err = runClusterRole(ctx, clusterProcess, clusterAccount); err != nil {
		return err
	}
	target := func(context.Context) (string, error) { return clusterURL + "metrics", nil }
	clusterWatcher = scrape.Watch(ctx, 250*time.Millisecond, target, scrape.ClusterRules()...)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err = clusterWatcher.Next(ctx)
	return err
}

// runClusterRole starts the cluster role as a process with the permissions of
// a service account, waits until it is ready, and returns the URL of its
// pages.
func runClusterRole(ctx context.Context, name, account string) (string, error) {
	kubeconfig, err := accountKubeconfig(ctx, shared.Dir(), account)
	if err != nil {
		return "", err
	}
	address, err := porttest.Address()
	if err != nil {
		return "", err
	}
	url := "http://" + address + "/"
	args := []string{"cluster", "--kubeconfig=" + kubeconfig, "--web.listen-address=" + address}
	_, err = shared.StartProgram(ctx, name, agentBinary(), args, url+"-/ready")
	return url, err
}

// accountKubeconfig writes a kubeconfig with a token of a service account of
// the agent's namespace.
func accountKubeconfig(ctx context.Context, folder, account string) (string, error) {
	hours := int64(3 * 60 * 60)
	request := &authenticationapi.TokenRequest{Spec: authenticationapi.TokenRequestSpec{ExpirationSeconds: &hours}}
	request, err := shared.Client().CoreV1().ServiceAccounts(agentNamespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("make a token of %s: %w", account, err)
	}
	admin := shared.RESTConfig()
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos["agent"] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "agent"}
	config.CurrentContext = "e2e"
	path := filepath.Join(folder, account+".kubeconfig")
	return path, clientcmd.WriteToFile(*config, path)
}

// clusterPage scrapes the cluster role's page now.
func clusterPage(t *testing.T) *scrape.Page {
	t.Helper()
	return waitClusterPage(t, "a page", func(*scrape.Page) error { return nil })
}

// waitClusterPage waits until check accepts a page of the cluster role, and
// returns that page.
func waitClusterPage(t *testing.T, what string, check func(*scrape.Page) error) (found *scrape.Page) {
	t.Helper()
	return waitClusterPageWithin(t, 30*time.Second, what, check)
}

func waitClusterPageWithin(t *testing.T, patience time.Duration, what string, check func(*scrape.Page) error) (found *scrape.Page) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	last := errors.New("there was none")
	err := cluster.Eventually(ctx, what, func(ctx context.Context) error {
		p, err := clusterWatcher.Next(ctx)
		if err != nil {
			return err
		}
		found, last = p, check(p)
		return last
	})
	if err != nil {
		t.Fatalf("%v\nthe last page: %v", err, last)
	}
	return found
}

// setBehaviour writes the behaviour of life.example.com, until the test ends.
func setBehaviour(t *testing.T, yaml string) {
	t.Helper()
	draft := behaviourFile + ".draft"
	if err := os.WriteFile(draft, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(draft, behaviourFile); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(behaviourFile) })
}

// explain runs `dra-exporter explain` with a kubeconfig, and returns its
// output without line breaks.
func explain(t *testing.T, args ...string) string {
	t.Helper()
	args = append([]string{"explain", "--verbose", "--kubeconfig=" + shared.Kubeconfig()}, args...)
	command := exec.CommandContext(t.Context(), agentBinary(), args...)
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		t.Fatalf("dra-exporter %s: %v\n%s%s", strings.Join(args, " "), err, output, complaints.String())
	}
	return strings.Join(strings.Fields(string(output)), " ")
}

// twoNodes adds the node without a kubelet and the slices without a driver,
// and removes them when the test ends.
func twoNodes(t *testing.T) {
	t.Helper()
	supply, err := os.ReadFile("testdata/supply.yaml")
	if err != nil {
		t.Fatal(err)
	}
	remove, err := shared.AddNode(t.Context(), otherNode)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(shared.Delete(ctx, string(supply)), remove(ctx)); err != nil {
			t.Error(err)
		}
	})
	if err := shared.Apply(t.Context(), string(supply)); err != nil {
		t.Fatal(err)
	}
}

// hasGauge returns an error unless there is one row with these labels, and it
// has this value.
func hasGauge(p *scrape.Page, family string, labels scrape.Labels, want float64) error {
	row, err := p.One(family, labels)
	if err == nil && row.Value != want {
		err = fmt.Errorf("%s%s is %v, not %v", family, labels, row.Value, want)
	}
	return err
}

// hasNoRow returns an error if there is a row with these labels.
func hasNoRow(p *scrape.Page, family string, labels scrape.Labels) error {
	if rows := p.Rows(family, labels); len(rows) > 0 {
		return fmt.Errorf("%s: there is %v", family, rows)
	}
	return nil
}

package page

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
	"github.com/dra-exporter/dra-exporter/collector/model"
)

// serveLimited serves the pages of both roles to a reader who may see these
// namespaces.
func serveLimited(t *testing.T, rows []metric.Row, handlers func(Config) (map[string]http.Handler, error), visible Visible) http.Handler {
	t.Helper()
	made, err := handlers(Config{
		Node: "node-a", MetricsPath: "/metrics", Log: slog.New(slog.DiscardHandler), Visible: visible,
		Cluster: func() *model.Cluster { return parseCluster(rows) },
		Now:     func() time.Time { return noon },
		Messages: func() map[string]string {
			return map[string]string{"resourceclaims": "get resourceclaim secret-team/secret-claim"}
		},
		Model: func() *model.Node {
			node := parseNode(rows)
			for i := range node.Devices {
				if d := &node.Devices[i]; d.UUID == "b" && d.ByKubelet == model.Unhealthy {
					d.KubeletMessage = "<b>fan</b> of secret-team\x1b[2J"
				}
			}
			return node
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return muxOf(made)
}

// muxOf serves handlers at their paths.
func muxOf(handlers map[string]http.Handler) http.Handler {
	mux := http.NewServeMux()
	for path, handler := range handlers {
		if path == "/" {
			path = "/{$}"
		}
		mux.Handle(path, handler)
	}
	return mux
}

func only(namespaces ...string) Visible {
	return func(_ *http.Request, given []string) (map[string]bool, bool, error) {
		visible := map[string]bool{}
		for _, namespace := range namespaces {
			visible[namespace] = true
		}
		return visible, false, nil
	}
}

// A reader of one namespace sees its objects, and no name of another namespace
// on any page. All namespaces are tested.
func TestReaderSeesOwnNamespaces(t *testing.T) {
	for _, site := range []struct {
		name     string
		rows     []metric.Row
		handlers func(Config) (map[string]http.Handler, error)
		paths    []string
	}{
		{"node", testNodeRows(t), Handlers, []string{"/", "/api/v1/claims", "/api/v1/namespaces"}},
		{"shared devices", sharing(t), Handlers, []string{"/", "/api/v1/claims", "/api/v1/namespaces"}},
		{"cluster", testClusterRows(t), ClusterHandlers, []string{"/", "/api/v1/pending"}},
	} {
		all := namespacesIn(site.rows)
		if len(all) < 2 {
			t.Fatalf("%s: the scene has the namespaces %q: too few to hide any", site.name, all)
		}
		objects := objectsByNamespace(site.rows)
		for _, own := range append(all, "no-such-namespace") {
			handler := serveLimited(t, site.rows, site.handlers, only(own))
			seen := ""
			for _, path := range site.paths {
				status, text := get(t, handler, path)
				if status != http.StatusOK {
					t.Fatalf("%s as %s: %s gives %d", site.name, own, path, status)
				}
				seen += text
			}
			for _, other := range all {
				for _, name := range objects[other] {
					shows := strings.Contains(seen, name)
					if other != own && shows && !contains(objects[own], name) {
						t.Errorf("%s: a reader of %s sees %q of %s", site.name, own, name, other)
					}
				}
			}
			if strings.Contains(seen, "secret-team") {
				t.Errorf("%s: a reader of %s sees the words about a source", site.name, own)
			}
			if shown := strings.Contains(seen, own); shown != (own != "no-such-namespace") && site.name != "cluster" {
				t.Errorf("%s: own namespace %s shown: %v", site.name, own, shown)
			}
		}
	}
}

// namespacesIn returns the sorted namespaces of the rows.
func namespacesIn(rows []metric.Row) []string {
	namespaces := map[string]bool{}
	for _, row := range rows {
		namespaces[row.Labels.Get("namespace")] = true
	}
	delete(namespaces, "")
	return slices.Sorted(maps.Keys(namespaces))
}

// objectsByNamespace returns names of claims and pods that are long enough to
// search for in a page.
func objectsByNamespace(rows []metric.Row) map[string][]string {
	found := map[string][]string{}
	for _, row := range rows {
		namespace := row.Labels.Get("namespace")
		if namespace == "" {
			continue
		}
		for _, label := range []string{"resourceclaim", "pod"} {
			if name := row.Labels.Get(label); len(name) > 5 && !contains(found[namespace], name) {
				found[namespace] = append(found[namespace], name)
			}
		}
	}
	return found
}

func contains(all []string, name string) bool {
	for _, one := range all {
		if strings.Contains(one, name) || strings.Contains(name, one) {
			return true
		}
	}
	return false
}

// Devices that none of the reader's claims uses would show the use by others.
func TestReaderSeesOwnDevices(t *testing.T) {
	rows := testNodeRows(t)
	namespace := namespacesIn(rows)[0]
	used := map[string]bool{}
	for _, row := range rows {
		if row.Labels.Get("namespace") == namespace {
			used[row.Labels.Get("uuid")] = true
		}
	}
	hidden := 0
	shown := map[string]bool{"": true}
	for _, d := range limitNode(parseNode(rows), map[string]bool{namespace: true}).Devices {
		shown[d.UUID] = true
	}
	for _, row := range rows {
		uuid := row.Labels.Get("uuid")
		switch {
		case used[uuid] && !shown[uuid]:
			t.Errorf("%s, which %s uses, is hidden", uuid, namespace)
		case !shown[uuid]:
			hidden++
		}
	}
	if hidden == 0 {
		t.Error("no device is hidden")
	}
}

// A device that a pod of the reader had through a device plugin is shown for as long as
// that is kept.
func TestReaderSeesPastDevices(t *testing.T) {
	past := row(metric.DevicePluginConsumerInfo, 1, "uuid", "part", "namespace", "lab", "pod", "p")
	past.Past = true
	node := parseNode([]metric.Row{
		row(metric.DeviceInfo, 1, "uuid", "whole"), row(metric.DeviceInfo, 1, "uuid", "part", "parent_uuid", "whole"), row(metric.DeviceInfo, 1, "uuid", "other"), past,
	})
	if got := listNamespaces(node, nil); !slices.Equal(got, []string{"lab"}) {
		t.Errorf("the namespaces are %q", got)
	}
	view := newView(limitNode(node, map[string]bool{"lab": true}), noon)
	if len(view.Devices) != 1 || view.Devices[0].UUID != "whole" || len(view.Devices[0].Partitions) != 1 || !view.Devices[0].Free() {
		t.Errorf("the devices are %+v", view.Devices)
	}
	if len(node.Devices) != 3 {
		t.Error("the model was changed")
	}
}

func TestReaderOfAllNamespaces(t *testing.T) {
	everything := func(*http.Request, []string) (map[string]bool, bool, error) { return nil, true, nil }
	_, want := get(t, handler(t, testNodeRows(t)), "/api/v1/claims")
	if _, got := get(t, serveLimited(t, testNodeRows(t), Handlers, everything), "/api/v1/claims"); got != want {
		t.Errorf("a reader of all namespaces sees\n%s", got)
	}
}

// Access is only reviewed for namespaces of the query.
func TestOnlyNamedNamespacesAreReviewed(t *testing.T) {
	rows := testNodeRows(t)
	all := namespacesIn(rows)
	var asked []string
	visible := func(_ *http.Request, given []string) (map[string]bool, bool, error) {
		asked = given
		return nil, false, nil
	}
	get(t, serveLimited(t, rows, Handlers, visible), "/api/v1/claims?namespace="+all[1])
	if fmt.Sprint(asked) != fmt.Sprint(all[1:2]) {
		t.Errorf("asked about %q", asked)
	}
}

func TestRefusedReaders(t *testing.T) {
	for _, refused := range []struct {
		err     error
		status  int
		message string
	}{
		{&Refusal{http.StatusForbidden, "name your namespaces"}, http.StatusForbidden, "name your namespaces"},
		{errors.New("dial tcp 10.0.0.1:443: refused"), http.StatusServiceUnavailable, "your permissions cannot be determined"},
	} {
		visible := func(*http.Request, []string) (map[string]bool, bool, error) { return nil, false, refused.err }
		node, cluster := serveLimited(t, testNodeRows(t), Handlers, visible), serveLimited(t, testClusterRows(t), ClusterHandlers, visible)
		for handler, paths := range map[http.Handler][]string{node: {"/", "/api/v1/claims", "/api/v1/namespaces"}, cluster: {"/", "/api/v1/pending"}} {
			for _, path := range paths {
				status, text := get(t, handler, path)
				if status != refused.status || !strings.Contains(text, refused.message) || strings.Contains(text, "10.0.0.1") {
					t.Errorf("%s gives %d %s", path, status, text)
				}
			}
		}
	}
}

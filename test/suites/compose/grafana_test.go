package compose

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/sets"
)

// TestGrafana: the provisioning files exist, and are valid data sources and
// dashboards of Grafana.
func TestGrafana(t *testing.T) {
	service := project(t).Services["grafana"]
	top := root(t, service)
	var sources struct {
		Version     int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			IsDefault                    bool           `yaml:"isDefault"`
			JSONData                     map[string]any `yaml:"jsonData"`
		}
	}
	provisioned(t, top, "datasources", &sources)
	defaults := 0
	for _, source := range sources.Datasources {
		host := strings.TrimPrefix(source.URL, "http://")
		name, port, _ := strings.Cut(host, ":")
		target, there := project(t).Services[name]
		if !there || len(target.Ports) != 1 || target.Ports[0].Published != port {
			t.Errorf("%s is at %s, where no service is", source.Name, source.URL)
		}
		if source.IsDefault {
			defaults++
		}
	}
	if defaults != 1 || len(sources.Datasources) != 2 {
		t.Errorf("there are %d data sources, %d of them what dashboards ask", len(sources.Datasources), defaults)
	}
	var dashboards struct {
		Version   int `yaml:"apiVersion"`
		Providers []struct {
			Name, Folder, Type string
			Options            struct{ Path string }
		}
	}
	provisioned(t, top, "dashboards", &dashboards)
	if len(dashboards.Providers) != 1 {
		t.Fatalf("there are %d providers of dashboards", len(dashboards.Providers))
	}
	path := dashboards.Providers[0].Options.Path
	boards := boardsIn(t, filepath.Join(top, path))
	home := *service.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
	if uid := boards[strings.TrimPrefix(home, path+"/")]; uid != "dra-claims" {
		t.Errorf("the first page is %s (%q), of %v", home, uid, boards)
	}
}

// provisioned decodes the only file of a kind. An unknown key is an error.
func provisioned(t *testing.T, top, kind string, into any) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(top, "etc/grafana/provisioning", kind, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("of %s there are %v (%v)", kind, files, err)
	}
	decoder := yaml.NewDecoder(strings.NewReader(read(t, files[0])))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
}

// boardsIn returns the UIDs of all dashboards that Grafana finds below a
// folder, by path: exactly the shipped ones. Grafana reads every JSON file, in
// subfolders too.
func boardsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	boards := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		var board struct {
			UID, Title string
			Panels     []any
		}
		if err := json.Unmarshal([]byte(read(t, folder, path)), &board); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if board.UID == "" || board.Title == "" || len(board.Panels) == 0 {
			t.Errorf("%s is no dashboard", path)
		}
		boards[path] = board.UID
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	shipped := 0
	for _, set := range sets.All() {
		for _, name := range set.Dashboards {
			shipped++
			if path := set.Name + "/" + name + ".json"; boards[path] == "" {
				t.Errorf("Grafana does not find %s", path)
			}
		}
	}
	if len(boards) != shipped {
		t.Errorf("Grafana finds %v: %d are shipped", boards, shipped)
	}
	return boards
}

package sharing

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/dashboards/gen/boards"
)

// imported is what Grafana reads when it imports a dashboard.
type imported struct {
	Inputs []struct {
		Name, Type, PluginID, PluginName, Label string
	} `json:"__inputs"`
	Requires []requirement `json:"__requires"`
	UID      string
}

// TestEveryBoard: each dashboard asks for its data source, all that it queries is of
// this one, and it requires the panels that it has.
func TestEveryBoard(t *testing.T) {
	for _, board := range boards.All() {
		t.Run(board.UID, func(t *testing.T) {
			before, err := board.JSON()
			if err != nil {
				t.Fatal(err)
			}
			text, err := Board(before)
			if err != nil {
				t.Fatal(err)
			}
			var form imported
			if err := json.Unmarshal(text, &form); err != nil {
				t.Fatal(err)
			}
			if form.UID != board.UID || len(form.Inputs) != 1 || form.Inputs[0].Name != "DS_PROMETHEUS" || form.Inputs[0].Type != "datasource" || form.Inputs[0].PluginID != "prometheus" {
				t.Errorf("the dashboard is %+v", form)
			}
			if !strings.Contains(string(text), "\n  \"id\": null,\n") {
				t.Error("its id is not null")
			}
			checkSources(t, text)
			checkRequirements(t, text, form.Requires)
			checkUnchanged(t, before, text)
		})
	}
}

// checkSources fails the test unless what Grafana puts in the place of the input is the
// data source of everything.
func checkSources(t *testing.T, text []byte) {
	t.Helper()
	const uid = "the-chosen-one"
	var board any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), "${DS_PROMETHEUS}", uid)), &board); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{} // of variables of data sources
	queried := 0
	walk(board, func(object map[string]any) {
		if current, ok := object["current"].(map[string]any); ok && object["type"] == "datasource" {
			values["${"+object["name"].(string)+"}"], _ = current["value"].(string)
		}
	})
	walk(board, func(object map[string]any) {
		source, ok := object["datasource"]
		_, hasTargets := object["targets"]
		if !ok && !hasTargets {
			return
		}
		queried++
		fields, _ := source.(map[string]any)
		name, _ := fields["uid"].(string)
		if name != uid && values[name] != uid || fields["type"] != "prometheus" {
			t.Errorf("the data source of %v is %v", object["title"], source)
		}
	})
	if queried < 5 {
		t.Errorf("only %d objects have a data source", queried)
	}
}

// checkRequirements fails the test unless the list has Grafana, its data source, and the
// types of all panels, and nothing else.
func checkRequirements(t *testing.T, text []byte, requires []requirement) {
	t.Helper()
	want := map[string]bool{"grafana grafana": true, "datasource prometheus": true}
	var board any
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	walk(board, func(object map[string]any) {
		if _, ok := object["gridPos"]; ok && object["type"] != "row" {
			want["panel "+object["type"].(string)] = true
		}
	})
	got := map[string]bool{}
	for _, required := range requires {
		got[required.Type+" "+required.ID] = true
		if required.Name == "" || required.Type != "panel" && !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(required.Version) {
			t.Errorf("it requires %+v", required)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("it requires %v, and has %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// checkUnchanged fails the test unless the rest of the dashboard is as it was.
func checkUnchanged(t *testing.T, before, after []byte) {
	t.Helper()
	plain := func(text []byte) string {
		var board map[string]any
		if err := json.Unmarshal(text, &board); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"__inputs", "__requires", "id"} {
			delete(board, key)
		}
		walk(board, func(object map[string]any) {
			if object["type"] == "datasource" {
				delete(object, "current")
			}
		})
		out, err := json.Marshal(board)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if plain(before) != plain(after) {
		t.Error("more than the form has changed")
	}
}

// walk visits all objects of a JSON value.
func walk(value any, visit func(map[string]any)) {
	switch value := value.(type) {
	case map[string]any:
		visit(value)
		for _, field := range value {
			walk(field, visit)
		}
	case []any:
		for _, item := range value {
			walk(item, visit)
		}
	}
}

func TestRefusedBoards(t *testing.T) {
	for _, wrong := range []string{
		"{", `{"panels": []}`,
		`{"templating": {"list": [{"type": "datasource", "name": "datasource"}]}, "panels": [{"type": "unknown"}]}`,
	} {
		if _, err := Board([]byte(wrong)); err == nil {
			t.Errorf("%s is rewritten without an error", wrong)
		}
	}
}

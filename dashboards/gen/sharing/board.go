// Package sharing rewrites dashboards to the form in which Grafana exports them for
// sharing, which grafana.com takes: it names what a dashboard needs, and asks for the
// data source when it is imported.
package sharing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

const (
	// input is the name of the data source that an import asks for. Grafana puts its UID
	// in the place of ${DS_PROMETHEUS}.
	input = "DS_PROMETHEUS"
	// variable is what all queries of a dashboard name. It stays: links between the
	// dashboards pass it on, and a reader can choose another data source.
	variable = "datasource"
	// grafana is the oldest version that shows the dashboards.
	grafana = "11.0.0"
)

// titles returns the names of Grafana's panels by type.
func titles() map[string]string {
	return map[string]string{
		"bargauge": "Bar gauge", "gauge": "Gauge", "heatmap": "Heatmap", "stat": "Stat", "state-timeline": "State timeline",
		"table": "Table", "text": "Text", "timeseries": "Time series",
	}
}

// requirement is an element of __requires.
type requirement struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Board returns a dashboard's JSON in the form for sharing.
func Board(text []byte) ([]byte, error) {
	var board map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&board); err != nil {
		return nil, fmt.Errorf("decode dashboard: %w", err)
	}
	if err := setSource(board); err != nil {
		return nil, err
	}
	types := map[string]bool{}
	collectTypes(board, types)
	requires := []requirement{
		{"grafana", "grafana", "Grafana", grafana},
		{"datasource", "prometheus", "Prometheus", "1.0.0"},
	}
	for _, id := range slices.Sorted(maps.Keys(types)) {
		title, ok := titles()[id]
		if !ok {
			return nil, fmt.Errorf("the name of the panel %s is not known", id)
		}
		requires = append(requires, requirement{"panel", id, title, ""})
	}
	board["__requires"] = requires
	board["__inputs"] = []map[string]string{{
		"name": input, "label": "Prometheus", "description": "With the metrics and recording rules of dra-exporter.",
		"type": "datasource", "pluginId": "prometheus", "pluginName": "Prometheus",
	}}
	board["id"] = nil
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(board); err != nil {
		return nil, fmt.Errorf("encode dashboard: %w", err)
	}
	return out.Bytes(), nil
}

// setSource makes the input the value of the variable.
func setSource(board map[string]any) error {
	templating, _ := board["templating"].(map[string]any)
	for _, declared := range objects(templating["list"]) {
		if declared["type"] == "datasource" && declared["name"] == variable {
			declared["current"] = map[string]any{"text": "${" + input + "}", "value": "${" + input + "}"}
			return nil
		}
	}
	return errors.New("the dashboard has no variable " + variable)
}

// collectTypes adds the types of all panels, also of those in folded rows.
func collectTypes(holder map[string]any, types map[string]bool) {
	for _, panel := range objects(holder["panels"]) {
		if id, ok := panel["type"].(string); ok && id != "row" {
			types[id] = true
		}
		collectTypes(panel, types)
	}
}

// objects returns the objects of a JSON list; none, if it is none.
func objects(list any) (all []map[string]any) {
	items, _ := list.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

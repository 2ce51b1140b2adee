package top

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/internal/page"
)

// docs/api.md describes every field, and docs/top.md every key and every column.
func TestTopDocument(t *testing.T) {
	document := func(name string) func(what string) {
		text, err := os.ReadFile("../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return func(what string) {
			if !strings.Contains(string(text), "`"+what+"`") {
				t.Errorf("docs/%s does not describe %s", name, what)
			}
		}
	}
	hasField, has := document("api.md"), document("top.md")
	for _, kind := range []any{Document{}, AgentFailure{}, PendingSummary{}, page.ReasonCount{}, Row{}, page.ClaimGauges{}} {
		fields := reflect.TypeOf(kind)
		for i := range fields.NumField() {
			if name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ","); !fields.Field(i).Anonymous && name != "-" { // its fields are looked for by themselves
				hasField(name)
			}
		}
	}
	for _, column := range columns() {
		has(column.title)
	}
	for _, view := range views() {
		for _, column := range view.columns {
			has(column.title)
		}
	}
	for _, key := range []string{"Tab", "1", "5", "Enter", "Esc", "/", "s", "S", "p", "?", "q", "j", "k", "g", "G", "PgUp", "Home", "Ctrl-L"} {
		has(key)
	}
}

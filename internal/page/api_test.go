package page

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The document names every field, and its example is a real answer.
func TestAPIDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for _, kind := range []any{answer{}, Claim{}, ClaimDevice{}, Allocation{}, Account{}, Health{}, Signal{}, Taint{}, XID{}, Consumer{}} {
		fields := reflect.TypeOf(kind)
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(document, "`"+name+"`") {
				t.Errorf("docs/api.md does not describe %s of %s", name, fields.Name())
			}
		}
	}
	_, example, _ := strings.Cut(document, "```console\n")
	_, example, _ = strings.Cut(example, "\n") // the command
	example, _, _ = strings.Cut(example, "```")
	if _, answer := get(t, handler(t, scene(t)), "/api/v1/claims?namespace=team-ml"); example != answer {
		t.Errorf("the example of docs/api.md is not what is answered:\n%s", answer)
	}
}

package page

import (
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The API document lists every field, and its example is a real answer.
func TestAPIDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for _, kind := range []any{ClaimsAnswer{}, Claim{}, ClaimDevice{}, ClaimGauges{}, Allocation{}, Account{}, Health{}, Signal{}, Taint{}, XID{}, Recovery{}, Consumer{}, NodeDevice{},
		PodUse{}, Use{}, Price{}, totalsAnswer{}, Totals{}, PendingAnswer{}, PendingRef{}, RequestCounts{}} {
		fields := reflect.TypeOf(kind)
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			if fields.Field(i).Anonymous || name == "-" { // its fields are looked for by themselves, or it is not in the document
				continue
			}
			if !strings.Contains(document, "`"+name+"`") {
				t.Errorf("docs/api.md does not describe %s of %s", name, fields.Name())
			}
		}
	}
	examples := strings.Split(document, "```console\n")[1:]
	if len(examples) != 3 {
		t.Fatalf("docs/api.md has %d examples", len(examples))
	}
	for i, site := range []http.Handler{handler(t, testNodeRows(t)), handler(t, sharing(t)), clusterHandler(t, testClusterRows(t))} {
		command, example, _ := strings.Cut(examples[i], "\n")
		example, _, _ = strings.Cut(example, "```")
		_, path, _ := strings.Cut(strings.Trim(command, "'"), "/api/")
		if _, answer := get(t, site, "/api/"+path); example != answer {
			t.Errorf("the example of docs/api.md is not what is answered to %s:\n%s", command, answer)
		}
	}
}

package stubs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Every key that a GPU or the node has by default is in README.md.
func TestKeysAreDocumented(t *testing.T) {
	models, err := os.ReadFile("hardware/model.c")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := regexp.MustCompile(`(?m)^    \{"([a-z0-9_.]+)", "`).FindAllSubmatch(models, -1)
	if len(keys) < 100 {
		t.Fatalf("only %d keys are found", len(keys))
	}
	for _, match := range keys {
		key := string(match[1])
		documented := strings.Contains(string(readme), "`"+key+"`") ||
			strings.Contains(string(readme), ".<l>."+key+"`") ||
			strings.HasPrefix(key, "errors.") && strings.Contains(string(readme), "`"+strings.TrimPrefix(key, "errors.")+"`")
		if !documented {
			t.Errorf("%s is missing in README.md", key)
		}
	}
}

package settings

import (
	"strings"
	"testing"
)

// A header's value is never in an error or a log, whatever surrounds it.
func FuzzHeadersAreSecret(f *testing.F) {
	for _, value := range []string{"%s", "a=%s", "a=%s,%s", "%s=%s", "a=b,%s=", "a=%s%%", "a=%s%%00", "content-type=%s"} {
		f.Add(strings.ReplaceAll(value, "%%", "%"))
	}
	f.Fuzz(func(t *testing.T, template string) {
		const secret = "Zq7hush"
		settings, err := Load(Flags{Endpoint: "https://c"}, environment("OTEL_EXPORTER_OTLP_HEADERS="+strings.ReplaceAll(template, "%s", secret)))
		for _, text := range []string{settings.String(), settings.LogValue().String()} {
			if strings.Contains(text, secret) {
				t.Fatal(text)
			}
		}
		// What stands where a protocol's header is expected is its name.
		if err != nil && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(secret)) && !strings.Contains(err.Error(), "is set by the protocol") {
			t.Fatal(err)
		}
	})
}

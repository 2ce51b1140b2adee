package inventory

import "strings"

// clean makes text from the API server valid UTF-8: protobuf bodies are not
// checked for it, and label values must be.
func clean(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

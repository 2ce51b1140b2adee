package metric

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// MaxValue is how long a label value may be, in bytes. Kubernetes bounds names
// at 253 bytes and attributes of devices at 64, vendors' libraries at about a
// hundred: legitimate values are far below. Managed services drop a target with a
// longer value than their limit, of which the least is Azure's 1,023 bytes.
const MaxValue = 512

// Bounded makes a foreign string fit to be a label value. Bytes that are not
// UTF-8 become U+FFFD, since one such byte would fail every protobuf scrape of
// the page. What is too long is cut, and a digest of all of it takes the place
// of its end, so that two that differ stay two series.
//
// Labels are bounded already; those of histograms are not.
func Bounded(value string) string {
	valid := strings.ToValidUTF8(value, "\uFFFD")
	if len(valid) <= MaxValue {
		return valid
	}
	digest := sha256.Sum256([]byte(value))
	end := "…" + hex.EncodeToString(digest[:8])
	return cut(valid, MaxValue-len(end)) + end
}

// cut returns as much of the beginning as there is room for, without half a
// character at its end.
func cut(text string, room int) string {
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	return text[:room]
}

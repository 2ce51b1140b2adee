package web

import "testing"

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"":                             false,
		"identity":                     false,
		"gzip":                         true,
		"GZIP":                         true,
		"deflate, gzip;q=1.0, *;q=0.5": true,
		"gzip;q=0":                     false,
		"gzip; q=0.000":                false,
		"gzip;q=0, *":                  false,
		"*":                            true,
		"*;q=0":                        false,
		"gzip;q=often":                 false,
		"x-gzip":                       false,
	} {
		if got := acceptsGzip(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

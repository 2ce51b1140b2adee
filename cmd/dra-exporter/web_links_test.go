package main

import (
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/hostport"
	"github.com/dra-exporter/dra-exporter/internal/page"
)

// A base URL that no page could link to is refused, with the flag that has it.
func TestLinksOfPages(t *testing.T) {
	for address, allowed := range map[string]bool{
		"": true, "https://grafana.example.com": true, "http://grafana:3000/sub/path/": true,
		"grafana.example.com": false, "javascript:alert(1)": false, "/grafana": false, "https://": false,
		"https://grafana.example.com?orgId=1": false, "https://grafana.example.com#top": false, "ftp://grafana": false,
		"https://me:secret@grafana": false, "https://me:sec%zz@grafana": false, "https://me:sec/ret@grafana": false, "https://me@grafana": false,
		"http://fd00::1:3000": true, "https://runbooks.example.com/@gpus": true,
	} {
		for flag, links := range map[string]page.Links{
			"--web.grafana-url": {Grafana: address}, "--web.runbook-url": {Runbooks: address}, "--web.cluster-url": {Cluster: address},
		} {
			err := (&webFlags{links: links}).checkLinks()
			if (err == nil) != allowed || err != nil && (usageStatus(err) != exitUsage || strings.Contains(err.Error(), "sec")) || err != nil && !strings.Contains(err.Error(), flag+"="+hostport.Redacted(address)) {
				t.Errorf("%s=%s: %v", flag, address, err)
			}
		}
	}
}

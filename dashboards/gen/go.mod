// What writes ../*/*.json, and, in chart/, their copies in the Helm chart. Grafana's
// types belong here and not to the exporter.
module github.com/dra-exporter/dra-exporter/dashboards/gen

go 1.26.0

require github.com/grafana/grafana-foundation-sdk/go v0.0.11

require go.yaml.in/yaml/v3 v3.0.5

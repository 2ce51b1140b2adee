// Package exporter reads devices from pages of Prometheus text on the node: those of
// exporters, and those of DRA drivers. Rules, which are data, map the series of an
// exporter's page to quantities of devices: those of a preset, or those of a file that
// the user writes. The page of a driver needs none: its series are the project's own
// families, of the driver's own devices.
//
// A page is foreign: it is bounded in size, series and time, a page that cannot be
// read gives no devices, and an exporter that hangs delays nothing but itself. The
// way of the data is config.go and units.go (rules), sockets.go (which drivers there
// are), page.go (one scrape), reading.go (several series to one reading), mapping.go
// (series of an exporter to observations) or families.go (those of a driver), and
// source.go (when to scrape). examine.go compares a driver's page with
// specification.go, the sentences of docs/plugins.md.
package exporter

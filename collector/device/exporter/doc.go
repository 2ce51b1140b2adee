// Package exporter reads devices from Prometheus exporters that already run on the
// node. Rules, which are data, map the series of an exporter's page to quantities
// of devices: those of a preset, or those of a file that the user writes.
//
// A page is foreign: it is bounded in size, series and time, a page that cannot be
// read gives no devices, and an exporter that hangs delays nothing but itself. The
// way of the data is config.go and units.go (rules), page.go (one scrape), reading.go
// (several series to one reading), mapping.go (series of a page to observations) and
// source.go (when to scrape).
package exporter

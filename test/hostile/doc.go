// Package hostile attacks the exporter as tenants, neighbours, scrapers and broken servers might.
package hostile

// Package hostile tests the exporter against hostile tenants, other pods,
// scrapers and broken servers.
package hostile

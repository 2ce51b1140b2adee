// Package runbook shows the runbooks of the alerts where the program runs, without the
// internet: as pages, and as text for a terminal.
package runbook

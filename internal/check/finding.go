// Package check makes the report of `dra-exporter check`: findings, each with a
// remedy. It reads the host, the API server's version and permissions, and
// running exporters. The command passes on the values that the parts of a role
// have read.
//
// A failure is something that the exporter needs to do what its flags say, a warning
// something that it can do without. Skipped is what could not be read, or what is not
// wanted here. Nothing is reported about what is unknown.
package check

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/source"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
	"github.com/dra-exporter/dra-exporter/internal/words"
)

// Outcome is the result of one check.
type Outcome string

// The outcomes.
const (
	OK      Outcome = "ok"
	Warning Outcome = "warning"
	Failure Outcome = "failure"
	Skipped Outcome = "skipped"
)

// Finding is the result of one check. Its texts may contain foreign bytes:
// Report.Text and Report.Document make them printable.
type Finding struct {
	Area    string  `json:"area"`    // its heading in the report
	Subject string  `json:"subject"` // what was looked at
	Outcome Outcome `json:"outcome"`
	Text    string  `json:"text"`             // what was found
	Remedy  string  `json:"remedy,omitempty"` // what to do; there for each warning and failure
	Page    string  `json:"page,omitempty"`   // address of its documentation
}

// Report is the findings of one run, in reading order.
type Report struct {
	Findings []Finding
}

// Add appends findings.
func (r *Report) Add(findings ...Finding) { r.Findings = append(r.Findings, findings...) }

// Count is how many findings have the outcome.
func (r *Report) Count(outcome Outcome) int {
	count := 0
	for _, finding := range r.Findings {
		if finding.Outcome == outcome {
			count++
		}
	}
	return count
}

// Err is nil unless there is a failure.
func (r *Report) Err() error {
	failures := r.Count(Failure)
	if failures == 0 {
		return nil
	}
	return errors.New(words.Count(failures, "check failed", "checks failed"))
}

// Document is a Report as JSON.
type Document struct {
	APIVersion string    `json:"apiVersion"`
	OK         int       `json:"ok"`
	Warnings   int       `json:"warnings"`
	Failures   int       `json:"failures"`
	Skipped    int       `json:"skipped"`
	Findings   []Finding `json:"findings"`
}

// Document returns the report for programs, without control characters.
func (r *Report) Document() Document {
	findings := make([]Finding, 0, len(r.Findings))
	for _, f := range r.Findings {
		f.Area, f.Subject, f.Text, f.Remedy = terminal.Printable(f.Area), terminal.Printable(f.Subject), terminal.Printable(f.Text), terminal.Printable(f.Remedy)
		findings = append(findings, f)
	}
	return Document{
		APIVersion: "v1", OK: r.Count(OK), Warnings: r.Count(Warning), Failures: r.Count(Failure), Skipped: r.Count(Skipped),
		Findings: findings,
	}
}

// area makes the findings of one area.
type area struct {
	name string
	page string // documentation of its findings; without the address of the repository
}

// repository is where pages are.
const repository = "https://github.com/dra-exporter/dra-exporter/blob/main/"

func (a area) ok(subject, text string, args ...any) Finding {
	return Finding{Area: a.name, Subject: subject, Outcome: OK, Text: written(text, args)}
}

func (a area) skipped(subject, text string, args ...any) Finding {
	return Finding{Area: a.name, Subject: subject, Outcome: Skipped, Text: written(text, args)}
}

// warning and failure take the remedy first, so that none is forgotten.
func (a area) warning(remedy, subject, text string, args ...any) Finding {
	return Finding{Area: a.name, Subject: subject, Outcome: Warning, Text: written(text, args), Remedy: remedy, Page: repository + a.page}
}

func (a area) failure(remedy, subject, text string, args ...any) Finding {
	finding := a.warning(remedy, subject, text, args...)
	finding.Outcome = Failure
	return finding
}

// written formats a text. An error may have what a server has answered: it is cut.
func written(format string, args []any) string {
	for i, arg := range args {
		if err, ok := arg.(error); ok {
			args[i] = source.Text(err.Error())
		}
	}
	return fmt.Sprintf(format, args...)
}

// about is the same with another page.
func about(page string, finding Finding) Finding {
	finding.Page = repository + page
	return finding
}

// runbooksFolder has the runbooks of the alerts.
const runbooksFolder = "docs/runbooks/"

// byRunbook is the same with the runbook of an alert.
func byRunbook(alert string, finding Finding) Finding {
	return about(runbooksFolder+alert+".md", finding)
}

// reference returns where the finding's page is to be read: a runbook is in this program.
func (f Finding) reference() string {
	alert, ok := strings.CutPrefix(f.Page, repository+runbooksFolder)
	if !ok {
		return f.Page
	}
	return "dra-exporter runbook " + strings.TrimSuffix(alert, ".md")
}

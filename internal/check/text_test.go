package check

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

func sample() *Report {
	in := area{"kubelet", "docs/check.md"}
	report := &Report{}
	report.Add(in.ok("socket", "%s", "answers"), in.failure("Do this.", "claims", "a \x1b[31mforeign\nword %s", strings.Repeat("long ", 40)),
		area{"http://x", ""}.skipped("subject that is longer than the column", "not now"))
	return report
}

func TestText(t *testing.T) {
	plain := sample().Text(Style{})
	want := []string{"Kubelet\n  ok   socket  answers\n  FAIL claims  a �[31mforeign word long", "               -> Do this.\n                  " + repository + "docs/check.md\n",
		"\nhttp://x\n  skip subject that is longer than the column  not now\n", "\n1 check passed, 1 failure, 1 skipped.\n"}
	for _, part := range want {
		if !strings.Contains(plain, part) {
			t.Errorf("no %q in:\n%s", part, plain)
		}
	}
	for line := range strings.Lines(plain) {
		if len([]rune(line)) > 101 && !strings.Contains(line, repository) {
			t.Errorf("a line is too long: %q", line)
		}
	}
	if strings.Contains(plain, "\x1b") {
		t.Error("plain text has escapes")
	}
	styled := sample().Text(Style{Colour: true})
	if !strings.Contains(styled, "\x1b[32m✓\x1b[0m socket") || strings.Contains(styled, "\x1b[31mforeign") {
		t.Errorf("styled:\n%s", styled)
	}
}

// A remedy for several findings in a row is printed once, below the last of them.
func TestTextHasEachRemedyOnce(t *testing.T) {
	in := area{"API server", "docs/check.md"}
	report := &Report{}
	report.Add(in.failure("Give the role.", "list pods", "denied"), in.failure("Give the role.", "watch pods", "denied"), in.failure("Look.", "nodes", "down"), in.failure("Give the role.", "list nodes", "denied"))
	text := report.Text(Style{})
	want := []string{"list pods   denied\n  FAIL watch pods  denied\n", "watch pods  denied\n                   -> Give the role.\n", "nodes       down\n                   -> Look.\n", "list nodes  denied\n                   -> Give the role.\n"}
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
	if n := strings.Count(text, "Give the role."); n != 2 {
		t.Errorf("the remedy is printed %d times:\n%s", n, text)
	}
}

func TestJSONAndErr(t *testing.T) {
	report := sample()
	var text bytes.Buffer
	if err := encode(&text, report); err != nil {
		t.Fatal(err)
	}
	var read Document
	if err := json.Unmarshal(text.Bytes(), &read); err != nil {
		t.Fatal(err)
	}
	if read.OK != 1 || read.Failures != 1 || read.Skipped != 1 || len(read.Findings) != 3 || read.Findings[1].Remedy != "Do this." {
		t.Errorf("%+v", read)
	}
	if err := report.Err(); err == nil || err.Error() != "1 check failed" {
		t.Errorf("a failure is no error: %v", err)
	}
	if err := (&Report{Findings: []Finding{{Outcome: Warning}}}).Err(); err != nil {
		t.Errorf("a warning is an error: %v", err)
	}
	text.Reset()
	if err := encode(&text, &Report{}); err != nil || !strings.Contains(text.String(), `"findings": []`) {
		t.Errorf("an empty report: %v %s", err, text.String())
	}
}

// A terminal that shows the document obeys nothing in it, either.
func TestJSONIsPrintable(t *testing.T) {
	evil := "a\u009b31m\u007f\u202eb"
	var text bytes.Buffer
	if err := encode(&text, &Report{Findings: []Finding{{Area: evil, Subject: evil, Outcome: OK, Text: evil, Remedy: evil}}}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\u009b\u007f\u202e") {
		t.Errorf("%q", text.String())
	}
}

// encode writes the document of a report.
func encode(w io.Writer, report *Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report.Document())
}

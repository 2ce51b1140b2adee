package main

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/check"
	"github.com/dra-exporter/dra-exporter/test/fakes/metrictest"
)

// The demo's page has a command for each pod. It works in a shell, in any
// directory, and its output has the pod's name.
func TestDemoExplainCommandWorks(t *testing.T) {
	_, cluster := runningDemo(t)
	var commands []string
	for patience := 0; len(commands) == 0; patience++ {
		if patience == 300 {
			t.Fatal("the page has no command")
		}
		time.Sleep(100 * time.Millisecond)
		_, page := get(t, cluster+"/")
		for _, found := range regexp.MustCompile(`<p class="command"><code>(.*?)</code>`).FindAllStringSubmatch(page, -1) {
			commands = append(commands, html.UnescapeString(found[1]))
		}
	}
	command := exec.CommandContext(t.Context(), "sh", "-c", commands[0])
	command.Dir, command.Env = t.TempDir(), append(os.Environ(), asProgram+"=1")
	answer, err := command.CombinedOutput()
	pod := commands[0][strings.LastIndex(commands[0], " ")+1:]
	if err != nil || !strings.Contains(strings.Join(strings.Fields(string(answer)), " "), "Pod "+pod+" is pending since") {
		t.Errorf("%s\n%v\n%s", commands[0], err, answer)
	}
}

// The page of a pending pod has the whole report that explain -v prints. Ages differ, and
// the cluster may change between the two.
func TestPodPagesShowTheReportOfExplain(t *testing.T) {
	_, cluster, tour := touringDemo(t)
	kubeconfig := ""
	for kubeconfig == "" && tour.Scan() {
		if found := regexp.MustCompile(`--kubeconfig=(\S+)`).FindStringSubmatch(tour.Text()); found != nil {
			kubeconfig = found[1]
		}
	}
	ages := regexp.MustCompile(`\(?[0-9]+ (s|min|h|d)\b( [0-9]+ (s|min|h)\b)?\)?`)
	plain := func(text string) string { return strings.Join(strings.Fields(ages.ReplaceAllString(text, "AGE")), " ") }
	var pending struct {
		Pending []struct{ Namespace, Pod string }
	}
	if _, text := get(t, cluster+"/api/v1/pending"); json.Unmarshal([]byte(text), &pending) != nil {
		t.Fatal(text)
	}
	for _, finding := range runCheck(t, nil, "cluster", "--kubeconfig="+kubeconfig).Findings {
		if finding.Area == "known bugs" && finding.Outcome != check.OK {
			t.Errorf("the demo has a known bug: %s: %s", finding.Subject, finding.Text)
		}
	}
	compared := 0
	for _, ref := range pending.Pending {
		shown, printed := "", "not asked"
		for try := 0; shown != printed && try < 20; try++ {
			if try > 0 {
				time.Sleep(500 * time.Millisecond) // an answer is given again for a while
			}
			_, text := get(t, cluster+"/pod?namespace="+ref.Namespace+"&name="+ref.Pod)
			_, report, _ := strings.Cut(text, `aria-label="Whole report">`)
			report, _, _ = strings.Cut(report, "</pre>")
			answer, err := program(t.Context(), "explain", "--kubeconfig="+kubeconfig, "-v", "pod", ref.Namespace+"/"+ref.Pod).Output()
			if err != nil {
				answer = nil // it has ended since
			}
			shown, printed = plain(html.UnescapeString(report)), plain(string(answer))
			if err != nil || !strings.Contains(printed, " is pending since") {
				shown = printed // what an allocated claim requested is not in memory
			}
		}
		if shown != printed {
			t.Errorf("%s/%s:\nthe page shows\n%s\nexplain prints\n%s", ref.Namespace, ref.Pod, shown, printed)
		} else if strings.Contains(shown, " is pending since") {
			compared++
		}
	}
	if compared < 10 {
		t.Errorf("%d of %d pods were compared", compared, len(pending.Pending))
	}
}

// Every command of the tour works as it is printed, in any directory, as soon as it is
// printed.
func TestDemoTour(t *testing.T) {
	node, cluster, tour := touringDemo(t)
	var commands []string
	for tour.Scan() {
		if command, is := strings.CutPrefix(tour.Text(), "     "); is {
			commands = append(commands, command)
		}
		if strings.Contains(tour.Text(), " check agent ") {
			break // the last one
		}
	}
	if len(commands) < 8 || !strings.HasPrefix(node, "http://") || !strings.HasPrefix(cluster, "http://") {
		t.Fatalf("the demo is on %q and %q, and has the commands %q", node, cluster, commands)
	}
	for _, text := range commands {
		command := exec.CommandContext(t.Context(), "sh", "-c", text)
		command.Dir, command.Env = t.TempDir(), append(os.Environ(), asProgram+"=1")
		answer, err := command.CombinedOutput()
		if err != nil || len(strings.TrimSpace(string(answer))) == 0 {
			t.Errorf("%s\n%v\n%s", text, err, answer)
		}
		if strings.Contains(text, " explain ") && !regexp.MustCompile(" (is pending|has waited) since").Match(answer) {
			t.Errorf("%s\n%s", text, answer)
		}
	}
}

// What is said of jobs of the demo: one that lacks a pod, one in a queue, one whose
// ComputeDomain is not ready, one that runs. Ages, and names that end at random, differ.
func TestExplainJobsOfTheDemo(t *testing.T) {
	_, _, tour := touringDemo(t)
	kubeconfig := ""
	for kubeconfig == "" && tour.Scan() {
		if found := regexp.MustCompile(`--kubeconfig=(\S+)`).FindStringSubmatch(tour.Text()); found != nil {
			kubeconfig = found[1]
		}
	}
	var text strings.Builder
	for _, job := range []string{"llm/post-train", "batch/distill", "llm/moe", "ml-training/llama"} {
		var answer []byte
		var err error
		for try := 0; try < 100; try++ { // the last one starts
			command := program(t.Context(), "explain", "workload", job, "--kubeconfig="+kubeconfig)
			var messages strings.Builder // on a busy machine, what it is still reading
			command.Stderr = &messages
			if answer, err = command.Output(); err != nil {
				t.Fatalf("%s: %v\n%s", job, err, messages.String())
			}
			if job != "ml-training/llama" || strings.Contains(string(answer), "1 running") {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		text.WriteString("# explain workload " + job + "\n" + string(answer) + "\n")
	}
	plain := regexp.MustCompile(`since [0-9: A-Z-]*UTC \([0-9]+ min\)`).ReplaceAllString(text.String(), "since TIME")
	metrictest.CompareGolden(t, "testdata/explain-jobs.txt", regexp.MustCompile(`(post-train|moe|distill)-[a-z0-9]{5}\b`).ReplaceAllString(plain, "$1-xxxxx"))
}

// TestReadmeShowsTheDemo: README.md begins with what explain prints of a pod of the demo,
// but for the time.
func TestReadmeShowsTheDemo(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)```console\n\\$ dra-exporter (explain pod \\S+)\n(.+?)```").FindStringSubmatch(string(readme))
	if shown == nil {
		t.Fatal("README.md has no console")
	}
	_, _, tour := touringDemo(t)
	kubeconfig := ""
	for kubeconfig == "" && tour.Scan() {
		if flag := regexp.MustCompile(`--kubeconfig=(\S+)`).FindStringSubmatch(tour.Text()); flag != nil {
			kubeconfig = flag[1]
		}
	}
	times := regexp.MustCompile(`since (?:\d{4}-\d\d-\d\d )?\d\d:\d\d UTC \(\d+ min\)`) // with a date after midnight
	want := times.ReplaceAllString(shown[2], "since TIME")
	answer := ""
	for range 240 { // devices are free while a job of the demo does not run
		output, err := program(t.Context(), append(strings.Fields(shown[1]), "--kubeconfig="+kubeconfig)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		if answer = times.ReplaceAllString(string(output), "since TIME"); strings.HasPrefix(answer, want) {
			return
		}
		time.Sleep(500 * time.Millisecond)
	}
	t.Errorf("README.md shows\n%s\nand the demo prints\n%s", want, answer)
}

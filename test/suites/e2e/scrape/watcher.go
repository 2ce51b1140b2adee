package scrape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// errNotReady is the result of a scrape before the exporter's first snapshot.
var errNotReady = errors.New("the exporter has no snapshot yet")

// Watcher scrapes a page periodically, from Watch on, and records every
// violation of a rule. Its methods may be called concurrently.
type Watcher struct {
	target func(context.Context) (string, error)
	rules  []Rule
	client *http.Client

	mu      sync.Mutex
	url     string
	updated chan struct{} // closed at the next page or failure
	page    *Page         // of the last scrape; nil if it failed
	failure error
	pages   int
	broken  []error
	checks  map[*RuleCheck]bool
}

// Watch scrapes until ctx ends. target returns the page's URL. It is called at
// the start and whenever the last URL does not answer.
func Watch(ctx context.Context, period time.Duration, target func(context.Context) (string, error), rules ...Rule) *Watcher {
	w := &Watcher{
		target: target, rules: rules, updated: make(chan struct{}), checks: map[*RuleCheck]bool{},
		client: &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
	go w.run(ctx, period)
	return w
}

func (w *Watcher) run(ctx context.Context, period time.Duration) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		page, err := w.scrape(ctx)
		if ctx.Err() != nil {
			return
		}
		w.record(page, err)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// scrape reads the page from its last URL, and calls target only if that
// fails, because a watcher of an agent must not depend on the API server.
func (w *Watcher) scrape(ctx context.Context) (*Page, error) {
	if w.url != "" {
		page, err := fetch(ctx, w.client, w.url)
		if err == nil || errors.Is(err, errNotReady) {
			return page, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	url, err := w.target(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the page: %w", err)
	}
	w.url = url
	return fetch(ctx, w.client, url)
}

// Fetch scrapes a page once.
func Fetch(ctx context.Context, url string) (*Page, error) {
	return fetch(ctx, &http.Client{Timeout: 5 * time.Second}, url)
}

func fetch(ctx context.Context, client *http.Client, url string) (*Page, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", url, err)
	}
	at := time.Now()
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", url, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("scrape %s: %s", url, response.Status)
	}
	page, err := Parse(at, response.Body)
	if err != nil {
		return nil, fmt.Errorf("scrape %s: %w", url, err)
	}
	if page.Count("dra_exporter_build_info", nil) == 0 {
		return nil, fmt.Errorf("scrape %s: %w", url, errNotReady)
	}
	return page, nil
}

func (w *Watcher) record(page *Page, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.page, w.failure = page, err
	if page != nil {
		w.pages++
		for _, rule := range w.rules {
			for _, broken := range rule(page) {
				w.broken = append(w.broken, fmt.Errorf("%s: %w", page.At.Format(time.TimeOnly), broken))
			}
		}
	}
	for check := range w.checks {
		check.record(page, err)
	}
	close(w.updated)
	w.updated = make(chan struct{})
}

// Next waits for a page that was requested after the call.
func (w *Watcher) Next(ctx context.Context) (*Page, error) {
	began := time.Now()
	for {
		w.mu.Lock()
		page, failure, updated := w.page, w.failure, w.updated
		w.mu.Unlock()
		if page != nil && page.At.After(began) {
			return page, nil
		}
		select {
		case <-updated:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a page: %w", errors.Join(failure, ctx.Err()))
		}
	}
}

// Pages returns how many pages were read.
func (w *Watcher) Pages() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pages
}

// Broken returns the violations, at most the first few of them.
func (w *Watcher) Broken() error {
	const most = 20
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.broken) > most {
		return errors.Join(append(w.broken[:most:most], fmt.Errorf("and %d more", len(w.broken)-most))...)
	}
	return errors.Join(w.broken...)
}

// RuleCheck checks every page against an additional rule, from CheckRule to
// End.
type RuleCheck struct {
	watcher           *Watcher
	rule              Rule
	toleratesFailures bool // failed scrapes are no violation
	pages             int
	broken            []error
}

// CheckRule starts a check in which a failed scrape is a violation.
func (w *Watcher) CheckRule(rule Rule) *RuleCheck {
	return w.startCheck(&RuleCheck{watcher: w, rule: rule})
}

// CheckRuleWhenUp starts a check during which scrapes may fail.
func (w *Watcher) CheckRuleWhenUp(rule Rule) *RuleCheck {
	return w.startCheck(&RuleCheck{watcher: w, rule: rule, toleratesFailures: true})
}

func (w *Watcher) startCheck(check *RuleCheck) *RuleCheck {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks[check] = true
	return check
}

// record is called with the watcher's lock held.
func (c *RuleCheck) record(page *Page, err error) {
	if err != nil && c.toleratesFailures {
		return
	}
	if err != nil {
		c.broken = append(c.broken, fmt.Errorf("%s: %w", time.Now().Format(time.TimeOnly), err))
		return
	}
	c.pages++
	for _, broken := range c.rule(page) {
		c.broken = append(c.broken, fmt.Errorf("%s: %w", page.At.Format(time.TimeOnly), broken))
	}
}

// End ends the check and returns how many pages it has read, and the first
// violations.
func (c *RuleCheck) End() (pages int, err error) {
	c.watcher.mu.Lock()
	defer c.watcher.mu.Unlock()
	delete(c.watcher.checks, c)
	return c.pages, errors.Join(c.broken[:min(len(c.broken), 10)]...)
}

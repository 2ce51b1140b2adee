package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// defaultTimeout limits every Eventually whose context has no earlier
// deadline.
const defaultTimeout = 2 * time.Minute

// permanentError marks an error for which Eventually must not retry.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks an error that ends Eventually immediately.
func Permanent(err error) error { return permanentError{err} }

// Eventually calls check every 100 ms until it returns nil. It ends after two
// minutes, or when ctx is done, with the last error of check.
func Eventually(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if errors.As(err, new(permanentError)) {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w (%w)", what, err, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// answers returns a check that a health endpoint answers 200. It does not
// verify certificates, because components create self-signed ones at their
// start.
func answers(url string) func(context.Context) error {
	client := &http.Client{
		Timeout: 2 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
			DisableKeepAlives: true,
		},
	}
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return Permanent(err)
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", url, response.Status)
		}
		return nil
	}
}

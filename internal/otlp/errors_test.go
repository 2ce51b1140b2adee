package otlp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestRefusals(t *testing.T) {
	for name, test := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		want    responseRefusal
	}{
		"words":          {400, nil, "no such\r\n\ttenant\x00 \n", responseRefusal{400, 0, "no such tenant"}},
		"none":           {502, nil, "", responseRefusal{502, 0, ""}},
		"seconds":        {429, map[string]string{"Retry-After": " 7 "}, "", responseRefusal{429, 7 * time.Second, ""}},
		"date":           {503, map[string]string{"Retry-After": "Mon, 02 Mar 2026 10:01:00 GMT", "Date": "Mon, 02 Mar 2026 10:00:00 GMT"}, "", responseRefusal{503, time.Minute, ""}},
		"past":           {503, map[string]string{"Retry-After": "Mon, 02 Mar 2026 09:00:00 GMT", "Date": "Mon, 02 Mar 2026 10:00:00 GMT"}, "", responseRefusal{503, 0, ""}},
		"nonsense":       {503, map[string]string{"Retry-After": "-1", "Date": "x"}, "", responseRefusal{503, 0, ""}},
		"endless":        {429, map[string]string{"Retry-After": "99999999999999999999"}, "", responseRefusal{429, 0, ""}},
		"redirect":       {307, map[string]string{"Location": "https://elsewhere/v1/traces"}, "gone", responseRefusal{307, 0, "redirected to https://elsewhere/v1/traces"}},
		"broken message": {400, map[string]string{"Content-Type": "application/x-protobuf"}, "\xff\xff", responseRefusal{400, 0, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for key, value := range test.headers {
					w.Header().Set(key, value)
				}
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			}))
			defer server.Close()
			client := (&connection{}).httpClient()
			_, err := client.Post(server.URL, "text/plain", strings.NewReader("x"))
			var got *responseRefusal
			if !errors.As(err, &got) || *got != test.want {
				t.Errorf("error %v with %+v, want %+v", err, got, test.want)
			}
		})
	}
}

// What succeeds is passed through, and so is what never came to an answer.
func TestAnswersOfSuccess(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		io.WriteString(w, "taken")
	}))
	client := (&connection{}).httpClient()
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if response.StatusCode != http.StatusAccepted || string(body) != "taken" {
		t.Errorf("%d %q", response.StatusCode, body)
	}
	server.Close()
	_, err = client.Get(server.URL)
	var refused *responseRefusal
	if err == nil || errors.As(err, &refused) || !retryable(err) {
		t.Errorf("a server that is gone gives %v", err)
	}
}

func TestRetryable(t *testing.T) {
	overHTTP := func(status int) error {
		return fmt.Errorf("traces export: %w", &url.Error{Op: "Post", URL: "http://x", Err: &responseRefusal{Status: status}})
	}
	overGRPC := func(code codes.Code, message string) error {
		return fmt.Errorf("traces export: %w", errors.Join(nil, status.Error(code, message)))
	}
	const large = "grpc: received message larger than max (5000000 vs. 4194304)"
	for name, test := range map[string]struct {
		err                 error
		retryable, tooLarge bool
	}{
		"429":       {overHTTP(429), true, false},
		"502":       {overHTTP(502), true, false},
		"503":       {overHTTP(503), true, false},
		"504":       {overHTTP(504), true, false},
		"302":       {overHTTP(302), false, false},
		"400":       {overHTTP(400), false, false},
		"401":       {overHTTP(401), false, false},
		"413":       {overHTTP(413), false, true},
		"500":       {overHTTP(500), false, false},
		"cancelled": {overGRPC(codes.Canceled, ""), true, false},
		"late":      {overGRPC(codes.DeadlineExceeded, ""), true, false},
		"gone":      {overGRPC(codes.Unavailable, ""), true, false},
		"exhausted": {overGRPC(codes.ResourceExhausted, "rate limit"), true, false},
		"large":     {overGRPC(codes.ResourceExhausted, large), false, true},
		"answer":    {overGRPC(codes.ResourceExhausted, "grpc: received message larger than max (5000000 vs. 65535)"), false, false},
		"unpacked":  {overGRPC(codes.ResourceExhausted, "grpc: received message after decompression larger than max 65535"), false, false},
		"invalid":   {overGRPC(codes.InvalidArgument, large), false, false},
		"unauth":    {overGRPC(codes.Unauthenticated, ""), false, false},
		"internal":  {overGRPC(codes.Internal, ""), false, false},
		"unknown":   {overGRPC(codes.Unknown, ""), false, false},
		"context":   {fmt.Errorf("%w: %w", context.DeadlineExceeded, errors.New("x")), true, false},
		"stopped":   {fmt.Errorf("export: %w", context.Canceled), true, false},
		"network":   {&url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, true, false},
		"other":     {errors.New("failed to marshal"), false, false},
	} {
		if got := retryable(test.err); got != test.retryable {
			t.Errorf("%s: retryable %v", name, got)
		}
		if got := tooLarge(test.err); got != test.tooLarge {
			t.Errorf("%s: too large %v", name, got)
		}
	}
}

// FuzzResponse has a collector say anything at all.
func FuzzResponse(f *testing.F) {
	f.Add("7", "text/plain", "words\n", "")
	f.Add("Mon, 02 Mar 2026 10:01:00 GMT", "application/x-protobuf", "\x08\x01\x12\x03abc", "/x")
	f.Fuzz(func(t *testing.T, retryAfter, contentType, body, location string) {
		header := http.Header{"Retry-After": {retryAfter}, "Content-Type": {contentType}, "Location": {location},
			"Date": {"Mon, 02 Mar 2026 10:00:00 GMT"}}
		if d := retryAfterHeader(header); d < 0 {
			t.Errorf("to wait for %v", d)
		}
		message := responseMessage(&http.Response{Header: header, Body: io.NopCloser(strings.NewReader(body))})
		if !utf8.ValidString(message) || len(message) > 220 || strings.ContainsAny(message, "\n\r\x00") {
			t.Errorf("message %q", message)
		}
	})
}

package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Client sends requests to agents. It is safe for concurrent use.
type Client struct {
	HTTP       *http.Client
	Clock      clock.Clock
	Namespaces []string      // namespaces of the requested claims; none means all
	Timeout    time.Duration // of one answer
	Parallel   int           // concurrent requests
	Devices    bool          // request all devices, those that no claim holds as well
}

// Claims requests the claims of one agent.
func (c *Client) Claims(ctx context.Context, agent Agent) (answer AgentReport, err error) {
	defer recovered(&err)
	body, at, err := c.get(ctx, agent, claimsPath)
	if err != nil {
		return AgentReport{}, c.mistaken(ctx, agent, err, pendingPath, ErrClusterRole)
	}
	return decodeClaims(body, at)
}

// Pending requests the pending claims of the cluster role.
func (c *Client) Pending(ctx context.Context, agent Agent) (pending PendingSummary, err error) {
	defer recovered(&err)
	body, _, err := c.get(ctx, agent, pendingPath)
	if err != nil {
		return PendingSummary{}, c.mistaken(ctx, agent, err, claimsPath, ErrNodeAgent)
	}
	return decodePending(body)
}

// Round requests all exporters of a listing once and reports each answer as it
// arrives; calls of report do not overlap. It returns when all have answered,
// failed or timed out.
func (c *Client) Round(ctx context.Context, listing AgentList, report func(FleetChange)) {
	var mu sync.Mutex
	reportOne := func(change FleetChange) {
		mu.Lock()
		defer mu.Unlock()
		report(change)
	}
	reportOne(func(f *Fleet) { f.Expect(listing.Agents) })
	var running sync.WaitGroup
	running.Go(func() { c.cluster(ctx, listing, reportOne) })
	c.each(ctx, listing.Agents, &running, c.slots(), func(reply Reply) { reportOne(reply.change()) })
	running.Wait()
}

// cluster requests the answer of the cluster role, if there is one.
func (c *Client) cluster(ctx context.Context, listing AgentList, report func(FleetChange)) {
	if listing.Cluster == nil {
		report(func(f *Fleet) { f.SetPending(nil, listing.Err) })
		return
	}
	pending, err := c.Pending(ctx, *listing.Cluster)
	if ctx.Err() != nil {
		return
	}
	report(func(f *Fleet) {
		if err != nil {
			f.SetPending(nil, err)
			return
		}
		f.SetPending(&pending, nil)
	})
}

// each sends requests to agents, at most one for each slot at a time, and
// reports their replies concurrently. It returns when all requests have been
// sent; the group waits for the answers.
func (c *Client) each(ctx context.Context, agents []Agent, running *sync.WaitGroup, slots chan struct{}, report func(Reply)) {
	for _, agent := range agents {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		running.Go(func() {
			defer func() { <-slots }()
			answer, err := c.Claims(ctx, agent)
			if ctx.Err() == nil {
				report(Reply{Agent: agent, Answer: answer, Err: err})
			}
		})
	}
}

// slots returns a channel with room for the concurrent requests.
func (c *Client) slots() chan struct{} { return make(chan struct{}, max(c.Parallel, 1)) }

// What each role alone serves.
const (
	claimsPath  = "api/v1/claims"
	pendingPath = "api/v1/pending"
)

// ErrClusterRole and ErrNodeAgent report that an address is the other role's.
var (
	ErrClusterRole = errors.New("this is the cluster role, not a node agent")
	ErrNodeAgent   = errors.New("this is a node agent, not the cluster role")
)

// mistaken returns an error that names the exporter's role if it lacks the
// requested path and has the one of the other role; otherwise it returns the
// error unchanged.
func (c *Client) mistaken(ctx context.Context, agent Agent, err error, path string, other error) error {
	if refused := (*StatusError)(nil); !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
		return err
	}
	body, _, failed := c.get(ctx, agent, path)
	var document struct {
		APIVersion string `json:"apiVersion"`
	}
	if failed != nil || decode(body, &document) != nil || document.APIVersion == "" {
		return err
	}
	return other
}

// recovered converts a panic to an error: no answer of an agent may end this
// program without restoring the terminal.
func recovered(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("this program failed to read its answer, which is a bug: %v", panicked)
	}
}

// errTimeout is the error after the deadline of one answer.
var errTimeout = errors.New("no answer in time")

// get reads a document and the time of the answer, by the agent's clock if it
// sends one: clocks of nodes differ, and times in documents are by them.
func (c *Client) get(ctx context.Context, agent Agent, path string) ([]byte, time.Time, error) {
	if agent.Err != nil {
		return nil, time.Time{}, agent.Err
	}
	address := agent.Base.JoinPath(path)
	query := url.Values{"namespace": c.Namespaces}
	if c.Devices && path == claimsPath {
		query.Set("devices", "all")
	}
	address.RawQuery = query.Encode()
	body, header, err := request{c.HTTP, c.Timeout, MaxBody + 1}.get(ctx, address, "no address to read")
	if err != nil {
		return nil, time.Time{}, err
	}
	at, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		at = c.Clock().Wall
	}
	return body, at, nil
}

// request is how an agent or the API server is read.
type request struct {
	client  *http.Client
	timeout time.Duration
	limit   int64 // bytes of the answer; what is longer is cut off
}

// get reads an answer of status 200. noAddress begins the error of a wrong address.
func (r request) get(ctx context.Context, address *url.URL, noAddress string) ([]byte, http.Header, error) {
	ctx, stop := context.WithTimeoutCause(ctx, r.timeout, errTimeout)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", noAddress, plain(err))
	}
	req.Header.Set("Accept", "application/json")
	response, err := r.client.Do(req)
	if err != nil {
		return nil, nil, explained(ctx, err, r.timeout)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, r.limit))
	if err != nil {
		return nil, nil, explained(ctx, err, r.timeout)
	}
	if target, err := response.Location(); err == nil && response.StatusCode < http.StatusBadRequest {
		return nil, nil, &StatusError{Code: response.StatusCode, Message: shortened("it redirects to " + target.Scheme + "://" + target.Host + ", which is not followed")}
	}
	if response.StatusCode != http.StatusOK {
		return nil, nil, refusal(response.StatusCode, body)
	}
	return body, response.Header, nil
}

// explained returns a short text for a network error. Addresses, which may
// contain a password, are left out.
func explained(ctx context.Context, err error, timeout time.Duration) error {
	if errors.Is(context.Cause(ctx), errTimeout) {
		return fmt.Errorf("%w (%s)", errTimeout, timeout)
	}
	return plain(err)
}

// plain is the error without the address that net/http puts around it.
func plain(err error) error {
	var around *url.Error
	if errors.As(err, &around) {
		return around.Err
	}
	return err
}

// StatusError is an answer that is none of the documents.
type StatusError struct {
	Code    int
	Message string // what was answered, shortened; it is foreign
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("%d %s", e.Code, http.StatusText(e.Code))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return strings.TrimSpace(text)
}

// maxMessage is the most runes of an error that are shown.
const maxMessage = 300

// refusal decodes the error of an exporter, an API server or a proxy.
func refusal(code int, body []byte) error {
	var decoded struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	message := ""
	if len(body) <= MaxBody && json.Unmarshal(body, &decoded) == nil {
		message = decoded.Error + decoded.Message
	} else if code >= http.StatusBadRequest {
		message, _, _ = strings.Cut(strings.TrimSpace(string(body[:min(len(body), maxMessage)])), "\n")
	}
	return &StatusError{Code: code, Message: shortened(message)}
}

// shortened returns foreign text as one line of at most maxMessage runes.
func shortened(text string) string {
	text = text[:min(len(text), maxMessage*utf8.UTFMax)] // a cut rune at the end goes too, or becomes a ?
	if letters := []rune(text); len(letters) > maxMessage {
		text = string(letters[:maxMessage])
	}
	return clean(text)
}

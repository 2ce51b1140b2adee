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
	"time"

	"github.com/dra-exporter/dra-exporter/collector/clock"
)

// Agent is an exporter and the way to it: its own address, or a path of an API
// server that leads to it.
type Agent struct {
	Name string   // for people
	Node string   // that it runs on, where that is known beforehand
	Base *url.URL // what the paths of its API are under

	Trouble error // why it need not be asked; nil where it must be
}

// Asker asks agents. It is safe for concurrent use.
type Asker struct {
	Client     *http.Client
	Clock      clock.Clock
	Namespaces []string      // whose claims are asked for; none means all
	Timeout    time.Duration // of one answer
	Parallel   int           // agents asked at a time
}

// Reply is what an agent answered.
type Reply struct {
	Agent  Agent
	Answer Answer
	Err    error
}

// errTimeout is what the deadline of one answer ends with.
var errTimeout = errors.New("no answer in time")

// Claims asks one agent.
func (a *Asker) Claims(ctx context.Context, agent Agent) (answer Answer, err error) {
	defer survive(&err)
	body, at, err := a.get(ctx, agent, claimsPath)
	if err != nil {
		return Answer{}, a.mistaken(ctx, agent, err, pendingPath, ErrClusterRole)
	}
	return DecodeClaims(body, at)
}

// Waiting asks the cluster role.
func (a *Asker) Waiting(ctx context.Context, agent Agent) (waiting Waiting, err error) {
	defer survive(&err)
	body, _, err := a.get(ctx, agent, pendingPath)
	if err != nil {
		return Waiting{}, a.mistaken(ctx, agent, err, claimsPath, ErrNodeAgent)
	}
	return DecodePending(body)
}

// What each role alone serves.
const (
	claimsPath  = "api/v1/claims"
	pendingPath = "api/v1/pending"
)

// ErrClusterRole and ErrNodeAgent say that an address is the other role's.
var (
	ErrClusterRole = errors.New("the cluster role answers there, and a node agent is wanted")
	ErrNodeAgent   = errors.New("a node agent answers there, and the cluster role is wanted")
)

// mistaken says whose address it is where an exporter lacks the path that was
// asked for and has the one that only the other role has; else the error stays.
func (a *Asker) mistaken(ctx context.Context, agent Agent, err error, path string, other error) error {
	if refused := (*StatusError)(nil); !errors.As(err, &refused) || refused.Code != http.StatusNotFound {
		return err
	}
	body, _, failed := a.get(ctx, agent, path)
	var document struct {
		APIVersion string `json:"apiVersion"`
	}
	if failed != nil || decode(body, &document) != nil || document.APIVersion == "" {
		return err
	}
	return other
}

// survive makes an error of a panic. What an agent answers can end this program
// in no way: the terminal would stay as it is.
func survive(err *error) {
	if panicked := recover(); panicked != nil {
		*err = fmt.Errorf("this program failed on its answer, which is a bug: %v", panicked)
	}
}

// get reads a document and the moment of the answer, by the agent's clock where
// it tells: nodes' clocks differ, and times in documents are by theirs.
func (a *Asker) get(ctx context.Context, agent Agent, path string) ([]byte, time.Time, error) {
	if agent.Trouble != nil {
		return nil, time.Time{}, agent.Trouble
	}
	ctx, stop := context.WithTimeoutCause(ctx, a.Timeout, errTimeout)
	defer stop()
	address := agent.Base.JoinPath(path)
	address.RawQuery = url.Values{"namespace": a.Namespaces}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("no address to ask: %w", plain(err))
	}
	request.Header.Set("Accept", "application/json")
	response, err := a.Client.Do(request)
	if err != nil {
		return nil, time.Time{}, explained(ctx, err, a.Timeout)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, MaxBody+1))
	if err != nil {
		return nil, time.Time{}, explained(ctx, err, a.Timeout)
	}
	if response.StatusCode != http.StatusOK {
		return nil, time.Time{}, refusal(response.StatusCode, body)
	}
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		at = a.Clock().Wall
	}
	return body, at, nil
}

// explained makes a short text of an error of the network. Addresses, which may
// hold a password, are left out.
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

// maxMessage is how much of an error somebody wants to read.
const maxMessage = 300

// refusal reads what an exporter, an API server or a proxy says of an error.
func refusal(code int, body []byte) error {
	var told struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	message := ""
	if len(body) <= MaxBody && json.Unmarshal(body, &told) == nil {
		message = told.Error + told.Message
	} else if code >= http.StatusBadRequest {
		message, _, _ = strings.Cut(strings.TrimSpace(string(body[:min(len(body), maxMessage)])), "\n")
	}
	if letters := []rune(message); len(letters) > maxMessage {
		message = string(letters[:maxMessage])
	}
	return &StatusError{Code: code, Message: Clean(message)}
}

// NoRedirects is for clients of agents: an agent that leads elsewhere would be
// sent the token that is for the API server.
func NoRedirects(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

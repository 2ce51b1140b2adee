package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// Options of a server; the zero value is valid.
type Options struct {
	Port          int           // 0: any that is free
	History       int           // changes that watches can go back by; 0: 1000
	BookmarkEvery time.Duration // 0: a minute, as in Kubernetes

	// Intercept is called before each request and may refuse it with an HTTP
	// status; 0 lets it pass. A server that does not serve the resource answers
	// with a plain 404. It is called by several goroutines at once.
	Intercept func(Request) int
}

// Server serves until it is stopped, or the context of Start ends. All
// methods may be called at any time from any goroutine.
type Server struct {
	options   Options
	kinds     []kind
	store     *store
	encodings []encoding
	address   string

	mu       sync.Mutex
	serving  *http.Server // nil while stopped
	finished chan struct{}
	watches  context.Context // ends with all present watches
	end      context.CancelFunc
}

// Start serves on the loopback interface.
func Start(ctx context.Context, options Options) (*Server, error) {
	if options.History == 0 {
		options.History = 1000
	}
	if options.BookmarkEvery == 0 {
		options.BookmarkEvery = time.Minute
	}
	bodies, err := encodings()
	if err != nil {
		return nil, err
	}
	s := &Server{
		options:   options,
		kinds:     allKinds(),
		store:     newStore(options.History),
		encodings: bodies,
		address:   fmt.Sprintf("127.0.0.1:%d", options.Port),
	}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, s.Stop)
	return s, nil
}

// Config is how to connect to the server, running or not.
func (s *Server) Config() *rest.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &rest.Config{Host: "http://" + s.address}
}

// Put adds objects, or replaces those of the same kind and name. The server
// keeps copies.
func (s *Server) Put(objects ...Object) error {
	for _, given := range objects {
		k, err := s.kindOf(given)
		if err != nil {
			return err
		}
		if err := s.store.put(k, given); err != nil {
			return err
		}
	}
	return nil
}

// Delete removes objects by kind and name; those that are not there are
// passed over.
func (s *Server) Delete(objects ...Object) error {
	for _, given := range objects {
		k, err := s.kindOf(given)
		if err != nil {
			return err
		}
		s.store.delete(k, given.GetNamespace(), given.GetName())
	}
	return nil
}

func (s *Server) kindOf(given Object) (kind, error) {
	for _, k := range s.kinds {
		if k.holds(given) {
			return k, nil
		}
	}
	return kind{}, fmt.Errorf("find the collection of %T: there is none", given)
}

// Expire forgets all changes that were made, so that watches and lists of
// earlier versions are answered with 410 Gone.
func (s *Server) Expire() { s.store.expire() }

// EndWatches ends all watches in the way that their time running out does.
func (s *Server) EndWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil {
		s.end()
		s.watches, s.end = context.WithCancel(context.Background())
	}
}

func (s *Server) watchesEnd() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

// Stop ends all connections and frees the address; the objects stay. It does
// nothing on a server that is stopped.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving == nil {
		return
	}
	s.end()
	_ = s.serving.Close() // nothing is left to save
	<-s.finished
	s.serving = nil
}

// Restart serves again after Stop, on the same address.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serving != nil {
		return errors.New("start the simulated API server: it is running")
	}
	listener, err := net.Listen("tcp4", s.address)
	if err != nil {
		return fmt.Errorf("start the simulated API server: %w", err)
	}
	s.address = listener.Addr().String()
	mux := http.NewServeMux()
	discover(mux, s.kinds)
	for _, k := range s.kinds {
		s.routes(mux, k)
	}
	s.watches, s.end = context.WithCancel(context.Background())
	serving := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		_ = serving.Serve(listener) // always ends with ErrServerClosed
	}()
	s.serving, s.finished = serving, finished
	return nil
}

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// watching is one open watch.
type watching struct {
	kind    kind
	fits    func(Object) bool
	version uint64 // version sent so far
	out     http.ResponseWriter
	as      encoding
}

// watch answers a watch until its time is over, the client leaves, or the
// server ends all watches. It sends changes after the requested version; an
// empty version, or 0, or one with sendInitialEvents, begins with all objects.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, k kind, fits func(Object) bool) {
	query := r.URL.Query()
	version, initial, err := beginning(query)
	if err != nil {
		s.fail(w, r, apierrors.NewBadRequest(err.Error()))
		return
	}
	if _, _, _, known := s.store.since(k, version, fits); !known && !initial {
		s.fail(w, r, expired())
		return
	}
	ctx, cancel := s.watchContext(r.Context(), query)
	defer cancel()
	on := &watching{kind: k, fits: fits, version: version, out: w, as: accepted(r, s.encodings)}
	w.Header().Set("Content-Type", on.as.info.MediaType+streamed(on.as))
	w.WriteHeader(http.StatusOK)
	if initial && s.sendAll(on, query.Get("sendInitialEvents") == "true") != nil {
		return
	}
	s.follow(ctx, on)
}

func streamed(as encoding) string {
	if as.info.MediaType == runtime.ContentTypeProtobuf {
		return ";stream=watch"
	}
	return ""
}

func beginning(query url.Values) (version uint64, initial bool, err error) {
	text := query.Get("resourceVersion")
	if text != "" {
		if version, err = strconv.ParseUint(text, 10, 64); err != nil {
			return 0, false, fmt.Errorf("parse resource version: %w", err)
		}
	}
	return version, version == 0 || query.Get("sendInitialEvents") == "true", nil
}

// watchContext ends with the request, the time that the client set, the
// server, or the next call of EndWatches.
func (s *Server) watchContext(ctx context.Context, query url.Values) (context.Context, context.CancelFunc) {
	ended := s.watchesEnd()
	limit := time.Hour
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		limit = time.Duration(seconds) * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(ended, cancel)
	return ctx, func() { stop(); cancel() }
}

// sendAll sends all objects as added, and then, if requested, the bookmark that
// ends the list.
func (s *Server) sendAll(on *watching, marked bool) error {
	found, version := s.store.list(on.kind, on.fits)
	for _, o := range found {
		if err := on.tell(event{watch.Added, o}); err != nil {
			return err
		}
	}
	on.version = version
	if !marked {
		return flush(on.out)
	}
	return on.bookmark(true)
}

func (s *Server) follow(ctx context.Context, on *watching) {
	bookmarks := time.NewTicker(s.options.BookmarkEvery)
	defer bookmarks.Stop()
	for {
		events, reached, more, known := s.store.since(on.kind, on.version, on.fits)
		if !known {
			_ = on.tell(event{watch.Error, statusOf(expired())}) // the watch is over either way
			return
		}
		for _, told := range events {
			if on.tell(told) != nil {
				return
			}
		}
		on.version = reached
		if flush(on.out) != nil {
			return
		}
		select {
		case <-more:
		case <-bookmarks.C:
			if on.bookmark(false) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func (on *watching) tell(told event) error { return on.as.frame(on.out, told) }

// bookmark sends the version reached in an otherwise empty object.
func (on *watching) bookmark(initialEnd bool) error {
	empty := on.kind.empty()
	empty.GetObjectKind().SetGroupVersionKind(on.kind.group.WithKind(on.kind.name))
	empty.SetResourceVersion(strconv.FormatUint(on.version, 10))
	if initialEnd {
		empty.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	if err := on.tell(event{watch.Bookmark, empty}); err != nil {
		return err
	}
	return flush(on.out)
}

func flush(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() }

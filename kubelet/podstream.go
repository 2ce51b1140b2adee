package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

var (
	errRenewal  = errors.New("the watch is opened anew")
	errPatience = errors.New("not all pods were named in time")
)

// podStream is one watch.
type podStream struct {
	watcher *PodWatcher
	began   clock.Instant
	end     func(error) // of the attempt to have all pods named; nil once they are
	faults  int         // pods that could not be read
	fault   error       // the first of them

	// ended are the pods of which the kubelet has said so. It sends from
	// several goroutines, so that an older word may come after that one.
	ended map[string]bool
}

// follow opens a watch and hands on what it tells, until it is time to open
// another (nil), ctx ends or the watch fails.
func (w *PodWatcher) follow(ctx context.Context) error {
	watch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(w.patience, func() { stop(errPatience) })
	defer late.Stop()
	s := &podStream{watcher: w, began: w.now(), end: w.tracker.Begin(), ended: make(map[string]bool)}
	err := s.read(watch, func() {
		late.Stop()
		renewal := time.AfterFunc(w.renewal, func() { stop(errRenewal) })
		context.AfterFunc(watch, func() { renewal.Stop() })
	})
	switch cause := context.Cause(watch); {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(cause, errRenewal):
		return nil
	case errors.Is(cause, errPatience):
		err = cause
	}
	err = explainPods(err, w.dialFailure(), w.socket, w.patience)
	note := w.tracker.Report
	if s.end != nil {
		note = s.end
	}
	w.fail(s.began, err, note)
	return err
}

// read hands on event after event; its error is never nil.
func (s *podStream) read(ctx context.Context, synced func()) error {
	w := s.watcher
	if w.connection == nil {
		connection, err := connect(w.socket, 2*w.patience, func(net.Conn) {})
		if err != nil {
			return err
		}
		w.connection = connection
	}
	stream, err := podsv1alpha1.NewPodsClient(w.connection.channel).WatchPods(ctx, &podsv1alpha1.WatchPodsRequest{})
	if err != nil {
		return err
	}
	w.to.Begin()
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if event.GetType() == podsv1alpha1.EventType_INITIAL_SYNC_COMPLETE {
			if s.end != nil {
				s.sync()
				synced()
			}
			continue
		}
		s.take(event)
	}
}

// take hands one event on.
func (s *podStream) take(event *podsv1alpha1.WatchPodsEvent) {
	kind, pod, err := decodeEvent(event)
	switch {
	case err != nil:
		s.faults++
		if s.fault == nil {
			s.fault = err
		}
		if s.end == nil {
			s.impair()
		}
	case kind == podEnded:
		s.ended[string(pod.UID)] = true
		s.watcher.to.Ended(string(pod.UID))
	case kind == podPresent && (!s.ended[string(pod.UID)] || isStatic(pod)):
		s.watcher.to.Pod(pod)
	}
}

// sync notes that all pods have been named.
func (s *podStream) sync() {
	w := s.watcher
	w.hungSince = clock.Instant{}
	w.tracker.Hang(w.hungSince)
	s.end(nil)
	s.end = nil
	if s.faults > 0 {
		s.impair()
	}
	w.turn(true)
}

// impair says that the pods are told of, but not all could be read.
func (s *podStream) impair() {
	s.watcher.tracker.Impair(&source.Failure{Reason: source.ReasonInvalid, Err: fmt.Errorf(
		"read %d pods that the kubelet told of over %s: they are left out; is this a kubelet newer than 1.37? %w", s.faults, s.watcher.socket, s.fault)})
}

func (w *PodWatcher) dialFailure() error {
	if w.connection == nil {
		return nil
	}
	return w.connection.dialFailure()
}

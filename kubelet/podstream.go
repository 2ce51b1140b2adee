package kubelet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"time"

	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

var (
	errRenewal  = errors.New("the watch is reopened")
	errPatience = errors.New("not all pods were reported in time")
	errTooMany  = fmt.Errorf("the watch has more than %d pods", maxPods)
)

// podStream is one watch.
type podStream struct {
	watcher *PodWatcher
	began   clock.Instant
	end     func(error) // of the attempt to have all pods named; nil once they are
	faults  int         // pods that could not be read
	fault   error       // the first of them

	// named are the pods that this watch has delivered, by UID, at most
	// maxPods, and whether the kubelet has reported that they ended. The
	// kubelet sends from several goroutines, so that an older event may arrive
	// after that report.
	named map[string]bool
}

// follow opens a watch and passes its events on, until it is time to open
// another (nil), ctx ends or the watch fails.
func (w *PodWatcher) follow(ctx context.Context) error {
	watch, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := time.AfterFunc(w.patience, func() { stop(errPatience) })
	defer late.Stop()
	s := &podStream{watcher: w, began: w.now(), end: w.tracker.Begin(), named: make(map[string]bool)}
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
		if err := s.take(event); err != nil {
			return err
		}
	}
}

// take passes one event on. Its error ends the watch.
func (s *podStream) take(event *podsv1alpha1.WatchPodsEvent) error {
	kind, pod, err := decodeEvent(event)
	if err != nil {
		s.leaveOut(err)
		return nil
	}
	if kind == podNothing {
		return nil
	}
	uid := string(pod.UID)
	ended, named := s.named[uid]
	if !named && len(s.named) >= maxPods {
		return errTooMany
	}
	switch {
	case kind == podEnded:
		s.named[uid] = true
		s.watcher.drop(uid)
	case !ended || isStatic(pod):
		s.named[uid] = ended
		s.hold(uid)
		s.watcher.to.Pod(pod)
	}
	return nil
}

// hold records that the follower has a pod. If there is no room, pods of
// earlier interrupted watches are dropped.
func (s *podStream) hold(uid string) {
	w := s.watcher
	if !w.held[uid] && len(w.held) >= maxPods {
		for other := range w.held {
			if _, named := s.named[other]; !named {
				w.drop(other)
			}
		}
	}
	w.held[uid] = true
}

// leaveOut notes a pod that could not be read.
func (s *podStream) leaveOut(fault error) {
	s.faults++
	if s.fault == nil {
		s.fault = fault
	}
	if s.end == nil {
		s.impair()
	}
}

// sync notes that all pods have been named.
func (s *podStream) sync() {
	w := s.watcher
	w.hungSince = clock.Instant{}
	w.tracker.Hang(w.hungSince)
	maps.DeleteFunc(w.held, func(uid string, _ bool) bool {
		_, named := s.named[uid]
		return !named
	})
	s.end(nil)
	s.end = nil
	if s.faults > 0 {
		s.impair()
	}
	w.turn(true)
}

// impair records that pods are reported, but not all could be decoded.
func (s *podStream) impair() {
	reason, remedy := source.ReasonInvalid, "is this a kubelet newer than 1.37?"
	if source.ReasonOf(s.fault) == source.ReasonResourceExhausted {
		reason, remedy = source.ReasonResourceExhausted, "the first:"
	}
	s.watcher.tracker.Impair(&source.Failure{Reason: reason, Err: fmt.Errorf(
		"read %d pods that the kubelet reported through %s: they are ignored; %s %w", s.faults, s.watcher.socket, remedy, s.fault)})
}

func (w *PodWatcher) dialFailure() error {
	if w.connection == nil {
		return nil
	}
	return w.connection.dialFailure()
}

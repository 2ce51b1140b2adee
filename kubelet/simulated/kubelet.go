package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	podresourcesv1 "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Options say how the kubelet starts.
type Options struct {
	Pods  []Pod
	Traps []Trap
	// EmptyFor is how long EmptyAfterRestart lasts; zero: one second, as on
	// a real node.
	EmptyFor time.Duration
}

// Calls is what clients have asked of the kubelet so far.
type Calls struct {
	Lists        uint64 // begun
	InFlight     int    // of them
	MostInFlight int    // at any one time
}

// Kubelet serves PodResources. All methods are safe for concurrent use.
type Kubelet struct {
	socket   string
	emptyFor time.Duration
	detach   func() bool // from the context that it was started with

	mu         sync.Mutex // of the model and the counts
	pods       []Pod
	traps      traps
	emptyUntil time.Time
	calls      Calls

	serving sync.Mutex // held over a change of the server
	server  *grpc.Server
	done    chan struct{} // closed when server's Serve has returned
	closed  bool
}

// Start serves on the socket until Close is called or ctx ends. A socket that
// an earlier kubelet left behind is replaced.
func Start(ctx context.Context, socket string, options Options) (*Kubelet, error) {
	k := &Kubelet{
		socket:   socket,
		emptyFor: options.EmptyFor,
		pods:     slices.Clone(options.Pods),
		traps:    traps{}.with(options.Traps),
	}
	if k.emptyFor == 0 {
		k.emptyFor = time.Second
	}
	if err := k.relaunch(); err != nil {
		return nil, err
	}
	k.detach = context.AfterFunc(ctx, k.shut)
	return k, nil
}

// Set replaces what the kubelet runs. The caller leaves the pods' slices
// alone from then on.
func (k *Kubelet) Set(pods []Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.Clone(pods)
}

// Provoke switches traps on.
func (k *Kubelet) Provoke(more ...Trap) error {
	return k.change(more, func(set traps) traps { return set.with(more) })
}

// Calm switches traps off. Calls that Hang has taken stay unanswered.
func (k *Kubelet) Calm(less ...Trap) error {
	return k.change(less, func(set traps) traps { return set.without(less) })
}

// change replaces the set of traps, and the server where one of those that
// were named is about the socket.
func (k *Kubelet) change(named []Trap, to func(traps) traps) error {
	k.mu.Lock()
	k.traps = to(k.traps)
	k.mu.Unlock()
	if slices.ContainsFunc(named, func(t Trap) bool { return t == Killed || t == SocketMissing || t == Deaf }) {
		return k.relaunch()
	}
	return nil
}

// Restart breaks all connections and serves anew, as a kubelet that was
// stopped and started.
func (k *Kubelet) Restart() error {
	k.mu.Lock()
	k.emptyUntil = time.Now().Add(k.emptyFor)
	k.mu.Unlock()
	return k.relaunch()
}

// Close stops the kubelet and removes its socket. It may be called again.
func (k *Kubelet) Close() {
	k.detach()
	k.shut()
}

func (k *Kubelet) shut() {
	k.serving.Lock()
	defer k.serving.Unlock()
	k.stop()
	if !k.closed {
		_ = removeSocket(k.socket) // it may be gone, or replaced by a file
	}
	k.closed = true
}

// Calls returns what clients have asked so far.
func (k *Kubelet) Calls() Calls {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

// relaunch stops the server and starts one as the traps would have it.
func (k *Kubelet) relaunch() error {
	k.serving.Lock()
	defer k.serving.Unlock()
	if k.closed {
		return errors.New("start the simulated kubelet: it is closed")
	}
	k.stop()
	set := k.provoked()
	if set.has(Killed) && !set.has(SocketMissing) {
		return nil // the socket of the server that was stopped stays
	}
	if err := removeSocket(k.socket); err != nil {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	if set.has(SocketMissing) {
		return nil
	}
	listening, err := net.ListenUnix("unix", &net.UnixAddr{Name: k.socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen as the simulated kubelet: %w", err)
	}
	listening.SetUnlinkOnClose(false)
	k.serve(&listener{Listener: listening, deaf: set.has(Deaf)})
	return nil
}

func (k *Kubelet) serve(on net.Listener) {
	codec := distortion{CodecV2: encoding.GetCodecV2(proto.Name), traps: k.provoked}
	server, done := grpc.NewServer(grpc.ForceServerCodecV2(codec)), make(chan struct{})
	podresourcesv1.RegisterPodResourcesListerServer(server, &service{kubelet: k})
	go func() {
		defer close(done)
		_ = server.Serve(on) // ends with an error only when it is stopped
	}()
	k.server, k.done = server, done
}

func (k *Kubelet) stop() {
	if k.server != nil {
		k.server.Stop()
		<-k.done
		k.server = nil
	}
}

func (k *Kubelet) provoked() traps {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.traps
}

func removeSocket(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s is there and no socket", path)
	}
	return os.Remove(path)
}

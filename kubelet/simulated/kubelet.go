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

// Options configure a Kubelet.
type Options struct {
	Pods   []Pod
	Faults []Fault
	// EmptyFor is the duration of EmptyAfterRestart; zero: one second, as on
	// a real node.
	EmptyFor time.Duration
}

// Calls counts the calls of clients so far.
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
	faults     faults
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
		faults:   faults{}.with(options.Faults),
	}
	if k.emptyFor == 0 {
		k.emptyFor = time.Second
	}
	if err := k.restart(); err != nil {
		return nil, err
	}
	k.detach = context.AfterFunc(ctx, k.close)
	return k, nil
}

// Set replaces the pods that the kubelet runs. The caller must not change the pods'
// slices any more.
func (k *Kubelet) Set(pods []Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.Clone(pods)
}

// AddFaults adds faults.
func (k *Kubelet) AddFaults(more ...Fault) error {
	return k.changeFaults(more, func(set faults) faults { return set.with(more) })
}

// RemoveFaults removes faults. Calls that Hang has accepted get no response.
func (k *Kubelet) RemoveFaults(less ...Fault) error {
	return k.changeFaults(less, func(set faults) faults { return set.without(less) })
}

// changeFaults replaces the set of faults, and restarts the server if one of the named
// faults affects the socket.
func (k *Kubelet) changeFaults(named []Fault, change func(faults) faults) error {
	k.mu.Lock()
	k.faults = change(k.faults)
	k.mu.Unlock()
	if slices.ContainsFunc(named, func(f Fault) bool { return f == Killed || f == SocketMissing || f == Silent }) {
		return k.restart()
	}
	return nil
}

// Restart closes all connections and serves again, as a kubelet that was stopped
// and started.
func (k *Kubelet) Restart() error {
	k.mu.Lock()
	k.emptyUntil = time.Now().Add(k.emptyFor)
	k.mu.Unlock()
	return k.restart()
}

// Close stops the kubelet and removes its socket. It may be called again.
func (k *Kubelet) Close() {
	k.detach()
	k.close()
}

func (k *Kubelet) close() {
	k.serving.Lock()
	defer k.serving.Unlock()
	k.stop()
	if !k.closed {
		_ = removeSocket(k.socket) // it may be gone, or replaced by a file
	}
	k.closed = true
}

// Calls returns the counts of calls.
func (k *Kubelet) Calls() Calls {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls
}

// restart stops the server and starts one with the present faults.
func (k *Kubelet) restart() error {
	k.serving.Lock()
	defer k.serving.Unlock()
	if k.closed {
		return errors.New("start the simulated kubelet: it is closed")
	}
	k.stop()
	set := k.active()
	if set.has(Killed) && !set.has(SocketMissing) {
		return nil // the socket of the stopped server stays
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
	k.serve(&listener{Listener: listening, silent: set.has(Silent)})
	return nil
}

func (k *Kubelet) serve(listener net.Listener) {
	codec := faultyCodec{CodecV2: encoding.GetCodecV2(proto.Name), faults: k.active}
	server, done := grpc.NewServer(grpc.ForceServerCodecV2(codec)), make(chan struct{})
	podresourcesv1.RegisterPodResourcesListerServer(server, &service{kubelet: k})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // ends with an error only when it is stopped
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

func (k *Kubelet) active() faults {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.faults
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

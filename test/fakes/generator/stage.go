package generator

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AsStage is the environment variable in which a benchmark passes the size of the
// cluster, in JSON, to the process that is its stage.
const AsStage = "DRA_EXPORTER_TEST_AS_STAGE"

// Prefix begins each line that a stage answers.
const Prefix = "stage: "

// Stage is an API server with a cluster, in a process of its own so that
// neither its memory nor its time counts as what is measured beside it.
type Stage struct {
	Size     Size
	Store    Store
	Parallel int // how many objects are put at once while the cluster is made

	// Kubeconfig defines how to connect; it becomes JSON in one line.
	Kubeconfig map[string]any
}

// SizeOf reads what AsStage holds.
func SizeOf(text string) (size Size, err error) {
	if err := json.Unmarshal([]byte(text), &size); err != nil {
		return size, fmt.Errorf("read the size of a cluster from %s: %w", AsStage, err)
	}
	return size, nil
}

// Connection is a kubeconfig for one server; the token may be empty.
func Connection(server, token string) map[string]any {
	of := func(kind string, what map[string]any) []any { return []any{map[string]any{"name": "c", kind: what}} }
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"contexts": of("context", map[string]any{"cluster": "c", "user": "c"}),
		"clusters": of("cluster", map[string]any{"server": server, "insecure-skip-tls-verify": strings.HasPrefix(server, "https:")}),
		"users":    of("user", map[string]any{"token": token}),
	}
}

// Serve makes the cluster, answers with the kubeconfig, and then obeys the
// lines that it reads, each of which it answers, until there are no more or
// something fails.
func (s Stage) Serve(ctx context.Context, orders io.Reader, answers io.Writer) error {
	if err := s.fill(); err != nil {
		return err
	}
	kubeconfig, err := json.Marshal(s.Kubeconfig)
	if err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	fmt.Fprintf(answers, "%s%s\n", Prefix, kubeconfig)
	ctx, stop := context.WithCancelCause(ctx)
	var births births
	var playing sync.WaitGroup
	defer playing.Wait()
	defer stop(nil)
	for lines := bufio.NewScanner(orders); lines.Scan() && ctx.Err() == nil; {
		play := func(rate float64) {
			playing.Go(func() {
				if _, err := Play(ctx, s.Size, s.Store, rate, births.add); err != nil {
					stop(err)
				}
			})
		}
		answer, err := s.obey(strings.Fields(lines.Text()), play, &births)
		if err != nil {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		fmt.Fprintf(answers, "%s%s\n", Prefix, answer)
	}
	return context.Cause(ctx)
}

// fill makes the cluster. What belongs together is put in its order.
func (s Stage) fill() error {
	work := make(chan []Object)
	failed := make(chan error, max(s.Parallel, 1))
	for range max(s.Parallel, 1) {
		go func() {
			var first error
			for objects := range work {
				if first == nil {
					first = s.Store.Put(objects...)
				}
			}
			failed <- first
		}()
	}
	err := s.Size.Each(time.Now().Add(-time.Hour), func(objects ...Object) error {
		work <- objects
		return nil
	})
	close(work)
	for range max(s.Parallel, 1) {
		if one := <-failed; err == nil {
			err = one
		}
	}
	return err
}

// births are the times at which the lives that are played began.
type births struct {
	mu    sync.Mutex
	times []time.Time
}

func (b *births) add(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.times = append(b.times, at)
}

// of returns when a life began, now if it has not.
func (b *births) of(life int) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if life < len(b.times) {
		return b.times[life]
	}
	return time.Now()
}

// obey carries out one order, and returns its answer: "play RATE", "taint",
// "untaint"; "born NUMBER" answers when that life began, in nanoseconds of Unix time.
func (s Stage) obey(words []string, play func(rate float64), births *births) (answer string, err error) {
	const done = "done"
	switch {
	case len(words) == 2 && words[0] == "play": // changes of claims a second
		rate, err := strconv.ParseFloat(words[1], 64)
		if err != nil {
			return "", fmt.Errorf("obey %q: %w", words, err)
		}
		play(rate)
		return done, nil
	case len(words) == 2 && words[0] == "born":
		number, err := strconv.ParseUint(words[1], 10, 31)
		if err != nil {
			return "", fmt.Errorf("obey %q: %w", words, err)
		}
		return strconv.FormatInt(births.of(int(number)).UnixNano(), 10), nil
	case len(words) == 1 && words[0] == "taint":
		return done, s.Store.Put(taintOfAll())
	case len(words) == 1 && words[0] == "untaint":
		return done, s.Store.Delete(taintOfAll())
	default:
		return "", fmt.Errorf("obey %q: unknown", words)
	}
}

// taintOfAll keeps every device from being allocated, and so changes the
// diagnosis on each reference that waits.
func taintOfAll() *resourcev1.DeviceTaintRule {
	driver := driver
	return &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Driver: &driver},
			Taint:          resourcev1.DeviceTaint{Key: "example.com/maintenance", Effect: resourcev1.DeviceTaintEffectNoSchedule},
		},
	}
}

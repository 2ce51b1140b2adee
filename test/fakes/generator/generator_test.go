package generator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// shelf is a store in memory, which counts how often each kind changed.
type shelf struct {
	mu      sync.Mutex
	objects map[string]Object
	changes map[string]int
	fail    error
}

func newShelf() *shelf {
	return &shelf{objects: make(map[string]Object), changes: make(map[string]int)}
}

func (s *shelf) Put(objects ...Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		s.objects[fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName())] = object
		s.changes[fmt.Sprintf("%T", object)]++
	}
	return s.fail
}

func (s *shelf) Delete(objects ...Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, object := range objects {
		delete(s.objects, fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName()))
		s.changes[fmt.Sprintf("%T", object)]++
	}
	return nil
}

func TestAClusterIsWhatItsSizeSays(t *testing.T) {
	if full := Of(100_000); full.Claims() != 100_000 || full.Nodes != 10_000 || full.Running+full.Waiting != 20_000 {
		t.Errorf("the full size is %+v with %d claims", full, full.Claims())
	}
	size := Of(1000)
	size.ClaimsWaiting = 2
	filled := newShelf()
	if err := size.Each(time.Unix(1e9, 0), filled.Put); err != nil {
		t.Fatal(err)
	}
	counts, held, uids := make(map[string]int), make(map[string]bool), make(map[string]bool)
	for _, object := range filled.objects {
		counts[fmt.Sprintf("%T", object)]++
		if uid := string(object.GetUID()); uid != "" && uids[uid] {
			t.Errorf("%s has the UID of another", object.GetName())
		} else {
			uids[uid] = true
		}
		if claim, is := object.(*resourcev1.ResourceClaim); is && claim.Status.Allocation != nil {
			result := claim.Status.Allocation.Devices.Results[0]
			device := result.Pool + "/" + result.Device
			if held[device] {
				t.Errorf("%s is allocated twice", device)
			}
			held[device] = true
		}
	}
	want := map[string]int{"*v1.Pod": 200, "*v1.ResourceClaim": size.Claims(), "*v1.Node": 100, "*v1.ResourceSlice": 100, "*v1.DeviceClass": 1}
	for kind, count := range want {
		if counts[kind] != count {
			t.Errorf("%d of %s, want %d", counts[kind], kind, count)
		}
	}
	if len(held) != size.Held() {
		t.Errorf("%d devices are held, want %d", len(held), size.Held())
	}
}

func TestLivesEndAndLeaveNothing(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer stop()
	played := newShelf()
	born := 0
	changes, err := Play(ctx, Of(1000), played, 400, func(time.Time) { born++ })
	if err != nil {
		t.Fatal(err)
	}
	if len(played.objects) != 0 {
		t.Errorf("%d objects are left", len(played.objects))
	}
	if claims := played.changes["*v1.ResourceClaim"]; changes == 0 || int(changes) != claims || changes%ClaimChangesPerLife != 0 {
		t.Errorf("%d changes of claims, %d counted", claims, changes)
	}
	if changes != int64(born)*ClaimChangesPerLife {
		t.Errorf("%d changes of the claims of %d lives", changes, born)
	}
	if pods := played.changes["*v1.Pod"]; int64(pods)*ClaimChangesPerLife != 6*changes {
		t.Errorf("%d changes of pods beside %d of claims", pods, changes)
	}
}

func TestWhatAStoreRefusesEndsTheLives(t *testing.T) {
	refusing := newShelf()
	refusing.fail = fmt.Errorf("no room for %T", &corev1.Pod{})
	_, err := Play(t.Context(), Of(1000), refusing, 400, func(time.Time) {})
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("Play says %v", err)
	}
}

func TestAStageObeys(t *testing.T) {
	var answers strings.Builder
	at := newShelf()
	stage := Stage{Size: Of(1000), Store: at, Parallel: 4, Kubeconfig: Connection("http://127.0.0.1:1", "")}
	if err := stage.Serve(t.Context(), strings.NewReader("taint\nplay 400\nborn 1000000\n"), &answers); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(answers.String(), Prefix); got != 4 || !strings.Contains(answers.String(), `"server":"http://127.0.0.1:1"`) {
		t.Errorf("answers:\n%s", answers.String())
	}
	if at.objects["*v1.DeviceTaintRule /all"] == nil {
		t.Error("the taint is not there")
	}
	lines := strings.Split(strings.TrimSpace(answers.String()), "\n")
	nanos, err := strconv.ParseInt(strings.TrimPrefix(lines[len(lines)-1], Prefix), 10, 64)
	if age := time.Since(time.Unix(0, nanos)); err != nil || age < 0 || age > time.Hour {
		t.Errorf("a life that has not begun began %v ago: %v", age, err)
	}
	if err := stage.Serve(t.Context(), strings.NewReader("dance\n"), &answers); err == nil {
		t.Error("an unknown command was accepted")
	}
}

func TestBirthsOfLives(t *testing.T) {
	var of births
	first := time.Unix(1e9, 5)
	of.add(first)
	of.add(first.Add(time.Second))
	if got := of.of(1); !got.Equal(first.Add(time.Second)) {
		t.Errorf("the second life began at %v", got)
	}
}

package apiserver

import (
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/apiserver/decode"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func slice(name string, generation, count int64, devices ...string) decode.SliceRecord {
	made := decode.SliceRecord{Name: name, Pool: decode.PoolID{Driver: "d", Name: "p"}, Generation: generation, Count: count}
	for _, device := range devices {
		made.Devices = append(made.Devices, dra.PublishedDevice{ID: dra.DeviceID{Driver: "d", Pool: "p", Name: device}})
	}
	return made
}

func names(devices []dra.PublishedDevice) string {
	all := ""
	for _, device := range devices {
		all += device.ID.Name
	}
	return all
}

func TestPoolsHaveNewestCompleteGeneration(t *testing.T) {
	known := make(localPools)
	for i, step := range []struct {
		present []decode.SliceRecord
		want    string
	}{
		{[]decode.SliceRecord{slice("s1", 1, 2, "a")}, ""},
		{[]decode.SliceRecord{slice("s1", 1, 2, "a"), slice("s2", 1, 2, "b")}, "ab"},
		{[]decode.SliceRecord{slice("s3", 2, 2, "c"), slice("s1", 1, 2, "a"), slice("s2", 1, 2, "b")}, "ab"},
		{[]decode.SliceRecord{slice("s3", 2, 2, "c")}, "ab"},
		{[]decode.SliceRecord{slice("s3", 2, 2, "c"), slice("s1", 1, 2, "a"), slice("s4", 2, 2, "d")}, "cd"},
		{[]decode.SliceRecord{slice("s3", 2, 2, "e"), slice("s4", 2, 2, "d")}, "ed"},
		{[]decode.SliceRecord{slice("s3", 2, 2, "e"), slice("s4", 2, 2, "e")}, "e"},
		{nil, ""},
		{[]decode.SliceRecord{slice("s5", 1, 1, "z")}, "z"},
	} {
		known.update(step.present)
		if got := names(known[decode.PoolID{Driver: "d", Name: "p"}]); got != step.want {
			t.Errorf("step %d: devices %q, want %q", i, got, step.want)
		}
	}
}

func TestListsRemotePoolsOnDemand(t *testing.T) {
	pool := decode.PoolID{Driver: "d", Name: "p"}
	remote := newRemotePools(middle)
	remote.want(at(0), pool, "b")
	_, taken := due(t, remote.queue, 0)
	remote.queue.done(pool, taken)
	remote.retry(at(0), pool)
	now := remotePoolFirstRetry + remotePoolFirstRetry/10
	_, taken = due(t, remote.queue, now)
	remote.queue.done(pool, taken)
	if remote.apply(at(now), pool, []decode.SliceRecord{slice("s1", 3, 2, "a", "b")}) || names(remote.devices()) != "" {
		t.Error("an incomplete generation is taken over")
	}
	now += 2 * now
	_, taken, _ = remote.queue.begin(at(now))
	if taken == nil {
		t.Fatal("an incomplete generation is not listed again soon")
	}
	remote.queue.done(pool, taken)
	whole := []decode.SliceRecord{slice("s1", 3, 2, "a", "b"), slice("s2", 3, 2, "c")}
	if !remote.apply(at(now), pool, whole) || names(remote.devices()) != "b" {
		t.Errorf("devices %q, want the wanted one", names(remote.devices()))
	}
	remote.want(at(now), pool, "b")
	if _, again, wait := remote.queue.begin(at(now)); again != nil || wait != remotePoolRefresh {
		t.Errorf("the pool is listed again after %v, want %v", wait, remotePoolRefresh)
	}
	remote.want(at(now), pool, "c")
	if _, again, _ := remote.queue.begin(at(now)); again == nil {
		t.Error("the pool is not listed for a device that is new")
	}
	if remote.release(pool, "c") || !remote.release(pool, "b") || len(remote.devices()) != 0 {
		t.Error("a pool that is not wanted stays")
	}
}

func TestNewerSliceWins(t *testing.T) {
	made := func(name string, seconds int64, version, device, model string) decode.SliceRecord {
		made := slice(name, 1, 1, device)
		made.Created, made.Version = time.Unix(seconds, 0), version
		made.Devices[0].Model = model
		return made
	}
	for name, c := range map[string]struct{ old, young decode.SliceRecord }{
		"by the time of creation": {made("a", 1, "9", "x", "old"), made("b", 2, "8", "x", "young")},
		"by the resource version": {made("a", 1, "9", "x", "old"), made("b", 1, "10", "x", "young")},
		"by the name":             {made("b", 1, "9", "x", "old"), made("a", 1, "9", "x", "young")},
	} {
		for _, present := range [][]decode.SliceRecord{{c.old, c.young}, {c.young, c.old}} {
			newest := newestGeneration(present)
			if len(newest.devices) != 1 || newest.devices[0].Model != "young" || newest.missing || !newest.surplus {
				t.Errorf("%s: %+v", name, newest)
			}
		}
	}
}

func TestListsRemotePoolAgainWithExcessSlices(t *testing.T) {
	pool := decode.PoolID{Driver: "d", Name: "p"}
	remote := newRemotePools(middle)
	remote.want(at(0), pool, "a")
	_, taken := due(t, remote.queue, 0)
	remote.queue.done(pool, taken)
	if !remote.apply(at(0), pool, []decode.SliceRecord{slice("s1", 1, 1, "a"), slice("s2", 1, 1, "a")}) || names(remote.devices()) != "a" {
		t.Errorf("devices %q", names(remote.devices()))
	}
	due(t, remote.queue, remotePoolFirstRetry+remotePoolFirstRetry/10)
}

package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/internal/demo/apiserver"
	"github.com/dra-exporter/dra-exporter/internal/role"
	"github.com/dra-exporter/dra-exporter/kubelet/simulated"
)

// claimReads is an API server's policy on reads of claims.
type claimReads struct {
	mu     sync.Mutex
	asked  map[string]bool // names
	held   chan struct{}   // closed when the reads are answered
	status int             // of the answers; 0: the claim
}

func (c *claimReads) intercept(r apiserver.Request) int {
	if r.Resource != "resourceclaims" {
		return 0
	}
	c.mu.Lock()
	c.asked[r.Name] = true
	c.mu.Unlock()
	<-c.held
	return c.status
}

func (c *claimReads) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// TestReadyWhenClaimsAreRead checks that a node with many claims is not ready before
// they have been read, even after the first snapshot, or their source has failed.
func TestReadyWhenClaimsAreRead(t *testing.T) {
	const claims = 12
	for name, test := range map[string]struct {
		status, held int
	}{
		"read":   {http.StatusOK, claims},
		"failed": {http.StatusForbidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reads := &claimReads{asked: make(map[string]bool), held: make(chan struct{})}
			if test.status != http.StatusOK {
				reads.status = test.status
			}
			release := sync.OnceFunc(func() { close(reads.held) })
			server, err := apiserver.Start(t.Context(), apiserver.Options{Intercept: reads.intercept})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(server.Stop)
			t.Cleanup(release)
			for c := range claims {
				if err := server.Put(denseClaim(c), densePod(c)); err != nil {
					t.Fatal(err)
				}
			}
			socket := filepath.Join(t.TempDir(), "kubelet.sock")
			kubelet, err := simulated.Start(t.Context(), socket, simulated.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(kubelet.Close)
			flags := testFlags()
			address := serve(t, flags, role.NodeOptions{Name: "node-a", Socket: socket, CDIDirs: []string{t.TempDir()}, API: server.Config()})
			eventually(t, address+"/metrics", `dra_exporter_source_up{source="pods"} 1`) // of a snapshot that did not wait any longer
			if reads.count() == 0 {
				t.Fatal("no claim is read")
			}
			if code, why := get(t, address+"/-/ready"); code != http.StatusServiceUnavailable || !strings.Contains(why, "claims") {
				t.Errorf("with claims unread the node answers %d: %s", code, why)
			}
			release()
			for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if code, why := get(t, address+"/-/ready"); code == http.StatusOK {
					break
				} else if time.Now().After(deadline) {
					t.Fatalf("never ready: %s", why)
				}
			}
			_, page := get(t, address+"/metrics")
			if held := strings.Count(page, "\ndra_claim_info{"); held != test.held {
				t.Errorf("when it is ready its page has %d claims, want %d", held, test.held)
			}
		})
	}
}

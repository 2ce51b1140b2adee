package web

import (
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"time"
)

// Limits that prevent slow, idle or many clients from blocking the server. Each
// address may use only a part of a limit.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second // of responses that are not rendered into memory
	stallTimeout      = 10 * time.Second // without progress of a write
	sendTimeout       = time.Minute      // of a whole page
	idleTimeout       = 2 * time.Minute  // longer than a scrape interval, so that connections are kept
	shutdownTimeout   = time.Second
	maxHeaderBytes    = 64 << 10
	maxBody           = 64 << 10

	maxConnections         = 128
	maxConnectionsOfClient = 64
	fewConnections         = 8        // that one client needs: of an address with more, they are evicted first
	socketWriteBuffer      = 64 << 10 // Linux doubles it

	// Requests that wait for a slot or are rendered. Waiting scrapes share one
	// rendering, so that many can wait at little cost.
	maxScrapes          = 512
	maxScrapesOfClient  = 256
	maxRequests         = 32
	maxRequestsOfClient = 16
	maxProfiles         = 4
	maxRenders          = 4
	renderWait          = 5 * time.Second

	// Pages that are being written.
	maxWrites             = 512
	maxWritesOfConnection = 4
	maxWrittenBytes       = 8 << 20

	maxPasswordAddresses  = 1024 // whose attempts are counted
	maxKnownCredentials   = 64
	concurrentCredentials = 2 // concurrent checks of unknown credentials
)

// renderSlots is the number of pages that are rendered concurrently, separately for
// scrapes and other pages. It depends on the number of processors.
func renderSlots() int { return max(2, min(runtime.GOMAXPROCS(0), maxRenders)) }

// http2Limits bound what one HTTP/2 connection may hold.
func http2Limits() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams:          8,
		MaxReadFrameSize:              16 << 10,
		MaxReceiveBufferPerConnection: 64 << 10,
		MaxReceiveBufferPerStream:     32 << 10, // bodies of requests are not read
		MaxDecoderHeaderTableSize:     4 << 10,
		MaxEncoderHeaderTableSize:     4 << 10,
		SendPingTimeout:               30 * time.Second,
		PingTimeout:                   stallTimeout,
		WriteByteTimeout:              stallTimeout,
	}
}

// peerAddress returns the host of a peer's address, and the whole address if it has no
// host, such as that of a vsock.
func peerAddress(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

func isLoopback(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Unmap().IsLoopback()
}

// clientLimit returns the limit of one client. Loopback connections can be those of many
// clients, through a port-forward or the proxy of a service mesh: only the limit of
// all clients applies to them.
func clientLimit(client string, all, single int) int {
	if isLoopback(client) {
		return all
	}
	return single
}

package web

import (
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"time"
)

// Limits that keep slow, idle, greedy or many clients from holding the server.
// One address may have a part of each alone, so that there is room for others.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 10 * time.Second
	writeTimeout      = 30 * time.Second // of answers that are not rendered into memory
	stallTimeout      = 10 * time.Second // in which a client takes nothing of a page
	sendTimeout       = time.Minute      // in which a client has taken all of it
	idleTimeout       = 2 * time.Minute  // longer than a scrape interval, so that connections are kept
	shutdownTimeout   = time.Second
	maxHeaderBytes    = 64 << 10
	maxBody           = 64 << 10

	maxConnections         = 128
	maxConnectionsOfClient = 64
	socketWriteBuffer      = 64 << 10 // Linux takes twice as much

	// Requests that wait to be rendered, or are. Scrapes are rendered
	// together, so that it costs little to let many wait.
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
	concurrentCredentials = 2 // of unknown credentials, that are checked at once
)

// renderSlots is how many pages are rendered at a time, of scrapes and of the
// others each: what there are processors for.
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

// addressOf is the host of a peer's address; of a peer without one, such as that
// of a vsock, all that is known.
func addressOf(peer string) string {
	if host, _, err := net.SplitHostPort(peer); err == nil {
		return host
	}
	return peer
}

func isLoopback(address string) bool {
	ip, err := netip.ParseAddr(address)
	return err == nil && ip.Unmap().IsLoopback()
}

// limitOf is the limit of one client's part. Connections of this machine come
// from many clients, by a port-forward or by the proxy of a service mesh: they
// count in all alone.
func limitOf(client string, all, one int) int {
	if isLoopback(client) {
		return all
	}
	return one
}

package device

import "time"

// XID is one kind of error that NVIDIA's driver reports of a GPU ("Xid"), how
// often it has been reported since the source began to listen, and when last.
// The codes are NVIDIA's.
type XID struct {
	Code  int
	Count uint64
	Last  time.Time
}

// Listener is a Source that hears of errors as they happen, however long its
// reads take. Its methods never wait, and are safe for concurrent use.
type Listener interface {
	// XIDs returns what has been heard of each device that is listened to,
	// by its UUID: sorted by code, and empty, not nil, where nothing has been
	// heard. Counts never fall while the source lives. A device that ceases to
	// be read, because it has fallen off the bus, stays known as long as it is
	// told of here; one that was taken away in good order (bound to another
	// driver) should not be. What is returned is shared and must not be
	// changed.
	XIDs() map[string][]XID
	// Heard tells that XIDs has changed since it last told so.
	Heard() <-chan struct{}
}

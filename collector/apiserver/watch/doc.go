// Package watch keeps collections of the API server's objects up to date by
// lists and watches. A Client sends the requests, within Limits; a CollectionReader reads
// a collection in the version that the API server serves; a Watcher runs
// client-go's reflector on it and knows the status of the source; a Store keeps
// the decoded values and passes on what changed as Events.
//
// The package does not depend on the meaning of the objects.
package watch

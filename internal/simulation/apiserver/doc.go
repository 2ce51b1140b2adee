// Package apiserver is a small API server over objects in memory, for the
// demo and for tests: it speaks the protocol of Kubernetes so far as readers
// of pods, nodes, events and resource.k8s.io/v1 need it. It serves get, list and
// watch, with field selectors, resource versions, bookmarks, streamed lists
// and the answer that a resource version is too old, in JSON and in
// protobuf. Objects come and go by Put and Delete of the package; nothing
// can be changed over the network. It asks nobody who they are, and
// therefore listens on the loopback interface alone.
package apiserver

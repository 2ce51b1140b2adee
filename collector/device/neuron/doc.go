// Package neuron reads AWS' Neuron devices from the documents that neuron-monitor
// prints: one JSON document per line and period. The command runs in a container of
// its own, because it needs the devices; the agent reads its output from a unix
// socket, or the newest document from a file.
//
// Devices are identified by the name under which AWS' DRA driver publishes them,
// neurondevice<N> (aws-neuron-sdk, containers/neuron-dra.rst).
//
// ECC errors are not read: it is not documented whether they are totals.
package neuron

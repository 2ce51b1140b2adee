// Package tpu reads Google's TPUs from the metric service of libtpu, which the process
// of the workload serves over gRPC on its localhost. The agent reaches it if both are
// in the network of the node. While no process uses the TPUs, there is no service, and
// no device.
//
// Devices are identified by the name under which Google's DRA driver publishes a chip:
// that of its device file, accel<N> or <N>.
package tpu

// Package simulation is a Kubernetes node without Kubernetes and without
// GPUs, for the demo and for tests: everything around the agent and nothing
// of it. It has
//
//   - hardware: eight GPUs, two of them partitioned, and an RDMA adapter
//     (hardware.yaml), shown by a device.Source;
//   - two DRA drivers' ResourceSlices and CDI files, which follow from the
//     hardware;
//   - a kubelet's PodResources on a unix socket;
//   - an API server on the loopback interface;
//   - and a scenario (scenario.go) in which pods and their claims come and go,
//     each through the steps, in the order and with the pauses of a real node,
//     and devices fall sick and recover.
//
// The agent reads all that through the same clients as on a real node. What
// it makes of it, the package neither knows nor constructs: a test of its
// imports sees to that.
package simulation

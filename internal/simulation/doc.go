// Package simulation is a small Kubernetes cluster without Kubernetes and
// without GPUs, for the demo and for tests: everything around the agent and
// the cluster role, and nothing of them. Of the agent's node it has
//
//   - hardware: eight GPUs, two of them partitioned, and an RDMA adapter
//     (hardware.yaml), shown by a device.Source;
//   - two DRA drivers' ResourceSlices and CDI files, which follow from the
//     hardware;
//   - a kubelet's PodResources on a unix socket;
//
// of another node only what the API server shows: its slices, and how its
// pods fare (farnode.go). Both share
//
//   - an API server on the loopback interface;
//   - and a scenario in which pods and their claims come and go, each through
//     the steps, in the order and with the pauses of a real node, and devices
//     fall sick and recover (scenario.go).
//
// Pods wait, too: for good and since before the scenario begins, one for each
// reason there is (scenario_waiting.go), and for a while, until what they wait
// for comes about (scenario_far.go): a gate opens, somebody makes the claim,
// a device is given back, serviced or attached. What the scheduler writes on
// such pods are its own messages (scheduler.go). Claims that somebody forgot
// lie about (resident.go).
//
// The exporter reads all that through the same clients as on a real cluster.
// What it makes of it, the package neither knows nor constructs: a test of its
// imports sees to that.
package simulation

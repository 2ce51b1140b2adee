// Package demo is a small Kubernetes cluster without Kubernetes and
// without GPUs, for the demo and for tests: everything around the agent and
// the cluster role, and nothing of them. Of two nodes that agents run on it has
//
//   - hardware, shown by a device.Source: eight GPUs, two of them partitioned, an RDMA
//     adapter and devices of other vendors (gpu-node-1.yaml, accelerators.yaml); eight
//     GPUs, one of them hot (gpu-node-3.yaml);
//   - the DRA drivers' ResourceSlices and CDI files, which follow from the
//     hardware;
//   - a kubelet's PodResources on a unix socket;
//
// of another node only what the API server shows: its slices, and how its
// pods fare (remote… in slices.go). All share
//
//   - an API server on the loopback interface;
//   - and a scenario in which pods and their claims come and go, each through
//     the steps, in the order and with the pauses of a real node, and devices
//     become unhealthy and recover (scenario.go).
//
// Some pods stay pending for the whole scenario, one for each reason
// (pending.go). Others are pending until something happens (remoteWorkloads in
// scenario.go): a gate is removed, the missing claim is created, a device is
// released, serviced or attached. The messages that the scheduler writes on
// such pods are its own (pod.go). There are also unused claims (pending.go).
//
// The exporter reads all of it through the same clients as on a real cluster.
// The package does not import the exporter's logic; a test of its imports
// enforces that.
package demo

// Package rdma reads RDMA adapters (InfiniBand, RoCE, iWARP, EFA) from the
// files of the kernel's class infiniband. Names and units are those of the
// kernel's documentation (ABI/stable/sysfs-class-infiniband) and of the
// adapters' vendors.
//
// A device is one PCI function, physical or virtual, with everything on it:
// that is what DRA drivers publish. The rare function with several RDMA
// devices or ports is the sum of them. RDMA devices that stand on no PCI
// function of their own (software ones, scalable functions) are left out:
// nothing shows which published device they are. Each function has a reader of
// its own, because an adapter's firmware can hang in the reading of a file.
//
// The counters of errors that InfiniBand defines (those in the folder counters)
// are narrow and do not wrap: they stay at the most that they can hold until
// they are cleared, and count nothing meanwhile. They have 16 bits (65,535),
// but for link_recovery, link_downed, receive_constraint and transmit_constraint
// with 8 (255), and link_integrity and buffer_overrun with 4 (15). The data
// counters stay likewise, with 32 bits of words, on the old adapters that have
// none of 64. What vendors count on their own, under hw_counters, has 32 bits or
// more.
//
// The byte counters of a RoCE port count RDMA traffic alone. The traffic of
// plain network interfaces is not read: while a claim holds one, it is in the
// network namespace of a pod, where the node's files do not show it.
// Likewise an RDMA device vanishes from here while a pod holds it if the node
// keeps RDMA devices in separate namespaces (rdma system: netns exclusive).
package rdma

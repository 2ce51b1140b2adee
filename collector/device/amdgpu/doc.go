// Package amdgpu reads AMD GPUs from the files of the kernel's driver amdgpu:
// those in the folder of the card's PCI function, those of its hwmon device
// and the table gpu_metrics. Names and units are those of the kernel's
// documentation (gpu/amdgpu: thermal, driver-misc, ras) and of its header
// kgd_pp_interface.h.
//
// Every card has a reader of its own, because the driver can hang in the
// reading of a file. What is read is one table, in rows.go.
//
// Some files are left alone because reading them does something: pcie_bw
// counts for a second while the reader waits, and xgmi_error resets the
// register that it shows. A card that sleeps is not woken up: it has no
// readings. The error counts of ras are made for polling; the driver fetches
// what the hardware has counted since and keeps the sum.
//
// A card is told by its PCI address. It has no UUID: the driver's unique_id,
// which not all cards have, is not what other libraries or DRA drivers call
// it.
package amdgpu

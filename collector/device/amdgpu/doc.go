// Package amdgpu reads AMD GPUs from the files of the kernel's driver amdgpu:
// those in the folder of the card's PCI function, those of its hwmon device and
// the table gpu_metrics. Names and units are those of the kernel's
// documentation (gpu/amdgpu: thermal, driver-misc, ras) and of its header
// kgd_pp_interface.h.
//
// Each card has its own reader, because the driver can hang when a file is
// read. The table in rows.go lists what is read.
//
// Some files are not read because that has side effects: pcie_bw counts for a
// second while the reader waits, and xgmi_error resets its register. A
// suspended card is not woken up: it has no readings. The error counts of ras
// may be polled: the driver reads what the hardware has counted since and keeps
// the sum.
//
// A card is identified by its PCI address. It has no UUID: other libraries and
// DRA drivers do not use the driver's unique_id, which some cards lack.
package amdgpu

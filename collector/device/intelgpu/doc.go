// Package intelgpu reads Intel GPUs from the files of the kernel's drivers xe and
// i915: those in the folder of the card's PCI function and those of its hwmon
// device. Names and units are those of the kernel's documentation
// (Documentation/ABI/testing/sysfs-driver-intel-xe-hwmon and -i915-hwmon, and "Xe
// GT Frequency Management" in the driver's source).
//
// These files do not have utilization, memory in use and the present power: the
// drivers report the first through perf events and the second per process. The
// energy is a counter, so its rate is the mean power.
//
// Each card has its own reader, because the driver can hang when a file is read.
// A suspended card is not woken up: it has no readings. A card is identified by
// its PCI address, under which Intel's DRA driver publishes it.
package intelgpu

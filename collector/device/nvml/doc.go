// Package nvml reads NVIDIA GPUs and their MIG devices through NVIDIA's
// management library, libnvidia-ml.so.1. The library is opened at run time:
// the program builds and starts without it, and the source then says that it
// is missing.
//
// Calls into the library can hang for as long as the driver does, and nothing
// can end them. Each GPU therefore has a reader of its own.
//
// What is read is one table, in rows.go. The names, units and return codes
// are those of nvml.h. A call that a GPU does not support is not repeated
// before the source has looked for its GPUs again.
//
// The library's functions are bound when they are first called, and one that
// an older library lacks would end the process. So every function outside the
// oldest core is looked up before it is called. A binary that a toolchain
// links with immediate binding by default must be linked with -Wl,-z,lazy.
package nvml

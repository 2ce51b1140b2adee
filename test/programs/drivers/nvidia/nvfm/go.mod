// A stand-in for NVIDIA's bindings of the fabric manager, which the module proxy
// does not serve.
module github.com/NVIDIA/go-nvfm

go 1.26.0

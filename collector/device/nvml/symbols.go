//go:build cgo

package nvml

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// symbols are the functions that the library has. One that it lacks must not
// be called: the dynamic linker would end the process.
type symbols map[string]bool

// core are the functions without which there is no GPU to be told of, each in
// all the versions of which one will do.
func core() [][]string {
	return [][]string{
		{"nvmlDeviceGetCount", "nvmlDeviceGetCount_v2"},
		{"nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByIndex_v2"},
		{"nvmlDeviceGetUUID"},
		{"nvmlDeviceGetName"},
		{"nvmlDeviceGetPciInfo", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3"},
		{"nvmlDeviceGetMinorNumber"},
		{"nvmlSystemGetDriverVersion"},
	}
}

// lookUp asks the library for every function that this package calls.
func lookUp(library nvml.ExtendedInterface) symbols {
	found := make(symbols)
	look := func(names ...string) {
		for _, name := range names {
			found[name] = library.LookupSymbol(name) == nil
		}
	}
	for _, versions := range core() {
		look(versions...)
	}
	for _, r := range append(wholeRows(), migRows()...) {
		look(r.symbol)
	}
	look(migMode, migCount, migHandle, instanceID, instanceByID, instanceInfo, attributes)
	return found
}

// has reports whether all of the functions are there.
func (s symbols) has(names ...string) bool {
	for _, name := range names {
		if !s[name] {
			return false
		}
	}
	return true
}

// missing is a core function that is not there in any version, or empty.
func (s symbols) missing() string {
	for _, versions := range core() {
		there := false
		for _, name := range versions {
			there = there || s[name]
		}
		if !there {
			return versions[0]
		}
	}
	return ""
}

//go:build cgo

package nvml

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

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
	for _, r := range append(wholeRows(true), migRows()...) {
		look(r.symbol)
	}
	look(migMode, migCount, migHandle, instanceID, computeID, instanceByID, instanceInfo, attributes)
	look(supportedReasons, remotePCI, remoteType)
	look(gpmFunctions()...)
	look(processUtilization)
	for _, versions := range processLists() {
		look(versions...)
	}
	events, wait := eventFunctions()
	look(append(events, wait...)...)
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

// any reports whether one of the functions is there.
func (s symbols) any(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return s[name] })
}

// missing is a core function that is not there in any version, or empty.
func (s symbols) missing() string {
	for _, versions := range core() {
		if !s.any(versions...) {
			return versions[0]
		}
	}
	return ""
}

//go:build cgo

package dcgm

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

// Both in one call, because what dlerror says belongs to the thread.
static void *open_library(const char *path, const char **complaint) {
	void *library = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
	*complaint = library ? NULL : dlerror();
	return library;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/dra-exporter/dra-exporter/collector/source"
)

// soname is the library's name, under which the binding opens it.
const soname = "libdcgm.so.4"

// library is DCGM's library. It stays open until the process ends, because
// threads of it may.
type library struct{ handle unsafe.Pointer }

// openLibrary opens the library at the path, or the one that the system finds.
// The binding opens it again by its name and gets the same.
func openLibrary(path string) (*library, error) {
	if path == "" {
		path = soname
	}
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var complaint *C.char
	handle := C.open_library(name, &complaint)
	if handle == nil {
		return nil, &source.Failure{
			Reason: source.ReasonLibraryMissing,
			Err:    fmt.Errorf("open DCGM's library: %s: install the package datacenter-gpu-manager-4-core, or set --dcgm.library", C.GoString(complaint)),
		}
	}
	l := &library{handle}
	if missing := l.missing(requiredFunctions()...); missing != "" {
		return nil, &source.Failure{
			Reason: source.ReasonUnsupported,
			Err:    fmt.Errorf("open DCGM's library: %s has no function %s: use one of DCGM 4.0 or later", path, missing),
		}
	}
	return l, nil
}

// requiredFunctions are the functions without which nothing can be read.
func requiredFunctions() []string {
	return []string{
		"dcgmInit", "dcgmShutdown", "dcgmStartEmbedded", "dcgmStopEmbedded",
		"dcgmConnect_v2", "dcgmDisconnect", "dcgmHostengineVersionInfo", "errorString",
		"dcgmGetEntityGroupEntities", "dcgmGroupCreate", "dcgmGroupDestroy", "dcgmGroupAddEntity",
		"dcgmFieldGroupCreate", "dcgmFieldGroupDestroy", "dcgmWatchFields", "dcgmUnwatchFields",
		"dcgmUpdateAllFields", "dcgmEntitiesGetLatestValues", "DcgmFieldGetById",
	}
}

// missing returns the first of the functions that the library lacks, or "".
func (l *library) missing(functions ...string) string {
	for _, function := range functions {
		if !l.has(function) {
			return function
		}
	}
	return ""
}

// has reports whether the library has the function.
func (l *library) has(function string) bool { return l.symbol(function) != nil }

// symbol returns the address of a function of the library, or nil.
func (l *library) symbol(function string) unsafe.Pointer {
	name := C.CString(function)
	defer C.free(unsafe.Pointer(name))
	return C.dlsym(l.handle, name)
}

var errFunctionMissing = errors.New("the library lacks the function")

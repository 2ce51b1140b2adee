package dcgm

import "fmt"

// status is a return code of DCGM, of a call or of one value: dcgmReturn_t in
// dcgm_structs.h. It is an error if it is not statusOK.
type status int

// The codes that mean something here.
const (
	statusOK                    status = 0
	statusNotConfigured         status = -5
	statusNotSupported          status = -6
	statusPending               status = -9
	statusUninitialized         status = -10
	statusTimeout               status = -11
	statusVersionMismatch       status = -12
	statusUnknownField          status = -13
	statusNoData                status = -14
	statusStaleData             status = -15
	statusNotWatched            status = -16
	statusNoPermission          status = -17
	statusGPULost               status = -18
	statusResetRequired         status = -19
	statusFunctionNotFound      status = -20
	statusConnectionNotValid    status = -21
	statusGPUNotSupported       status = -22
	statusRequiresRoot          status = -29
	statusFieldUnsupported      status = -32
	statusModuleNotLoaded       status = -33
	statusInUse                 status = -34
	statusProfilingNotSupported status = -36
	statusProfilingMultiPass    status = -38
	statusInsufficientDriver    status = -44
	statusNoInstance            status = -45
	statusNoComputeInstance     status = -46
	statusPaused                status = -54
	statusDriverTimeout         status = -57
	statusDetached              status = -67
)

// outcome is what a code means for the value that it belongs to.
type outcome uint8

const (
	present     outcome = iota
	unsupported         // permanently not available
	absent              // temporarily not available
	lost                // the GPU is gone
	failed              // an error
)

// outcome classifies the code. An unknown code is an error.
func (s status) outcome() outcome {
	switch s {
	case statusOK:
		return present
	case statusNotSupported, statusUnknownField, statusFunctionNotFound, statusGPUNotSupported,
		statusFieldUnsupported, statusModuleNotLoaded, statusProfilingNotSupported, statusInsufficientDriver:
		return unsupported
	case statusNotConfigured, statusPending, statusNoData, statusStaleData, statusNotWatched,
		statusInUse, statusProfilingMultiPass, statusNoInstance, statusNoComputeInstance,
		statusPaused, statusDetached:
		return absent
	case statusGPULost, statusResetRequired:
		return lost
	default:
		return failed
	}
}

// Error returns the code as text.
func (s status) Error() string {
	if name := s.name(); name != "" {
		return fmt.Sprintf("%s (DCGM status %d)", name, int(s))
	}
	return fmt.Sprintf("DCGM status %d", int(s))
}

// name returns a description of the code; "" for codes without one.
func (s status) name() string {
	switch s {
	case statusTimeout:
		return "the request timed out"
	case statusVersionMismatch:
		return "library and host engine disagree on the version of the request"
	case statusNoPermission:
		return "no permission"
	case statusGPULost:
		return "the GPU is lost"
	case statusResetRequired:
		return "the GPU needs a reset"
	case statusConnectionNotValid, statusUninitialized:
		return "the connection to the host engine is lost"
	case statusRequiresRoot:
		return "the host engine would have to run as root"
	case statusInUse:
		return "another process uses it"
	case statusDriverTimeout:
		return "the driver does not answer"
	}
	return ""
}

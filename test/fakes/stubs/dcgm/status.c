#define DCGM_API_EXPORT /* all that the headers declare public */

#include "status.h"

#include <stdlib.h>
#include <string.h>

#include "dcgm_agent.h"
#include "dcgm_structs.h"

/* The texts are libdcgm's own: a binding that passes on the text alone leaves
 * its callers nothing else to distinguish errors by. */
static const struct {
    int code;
    const char *name;
    const char *text;
} statuses[] = {
    {DCGM_ST_OK, "OK", "Success"},
    {DCGM_ST_BADPARAM, "BADPARAM", "Bad parameter passed to function"},
    {DCGM_ST_GENERIC_ERROR, "GENERIC_ERROR", "Generic unspecified error"},
    {DCGM_ST_MEMORY, "MEMORY", "Out of memory error"},
    {DCGM_ST_NOT_CONFIGURED, "NOT_CONFIGURED", "Setting not configured"},
    {DCGM_ST_NOT_SUPPORTED, "NOT_SUPPORTED", "Feature not supported"},
    {DCGM_ST_INIT_ERROR, "INIT_ERROR", "DCGM initialization error"},
    {DCGM_ST_NVML_ERROR, "NVML_ERROR", "NVML error"},
    {DCGM_ST_PENDING, "PENDING", "Object is in a pending state"},
    {DCGM_ST_UNINITIALIZED, "UNINITIALIZED", "Object is in an undefined state"},
    {DCGM_ST_TIMEOUT, "TIMEOUT", "Timeout"},
    {DCGM_ST_VER_MISMATCH, "VER_MISMATCH", "API version mismatch"},
    {DCGM_ST_UNKNOWN_FIELD, "UNKNOWN_FIELD", "Unknown field identifier"},
    {DCGM_ST_NO_DATA, "NO_DATA", "No data is available"},
    {DCGM_ST_STALE_DATA, "STALE_DATA", "Only stale data is available"},
    {DCGM_ST_NOT_WATCHED, "NOT_WATCHED", "Field is not being watched"},
    {DCGM_ST_NO_PERMISSION, "NO_PERMISSION", "No permission"},
    {DCGM_ST_GPU_IS_LOST, "GPU_IS_LOST", "GPU is lost"},
    {DCGM_ST_RESET_REQUIRED, "RESET_REQUIRED", "GPU requires reset"},
    {DCGM_ST_FUNCTION_NOT_FOUND, "FUNCTION_NOT_FOUND", "The requested function was not found"},
    {DCGM_ST_CONNECTION_NOT_VALID, "CONNECTION_NOT_VALID", "Host engine connection invalid/disconnected"},
    {DCGM_ST_GPU_NOT_SUPPORTED, "GPU_NOT_SUPPORTED", "This GPU is not supported by DCGM"},
    {DCGM_ST_GROUP_INCOMPATIBLE, "GROUP_INCOMPATIBLE", "The GPUs of this group are incompatible with each other for the requested operation"},
    {DCGM_ST_MAX_LIMIT, "MAX_LIMIT", "Max limit reached for the object"},
    {DCGM_ST_LIBRARY_NOT_FOUND, "LIBRARY_NOT_FOUND", "DCGM library could not be found"},
    {DCGM_ST_DUPLICATE_KEY, "DUPLICATE_KEY", "Duplicate Key passed to function"},
    {DCGM_ST_REQUIRES_ROOT, "REQUIRES_ROOT", "Host engine is running as non-root"},
    {DCGM_ST_INSUFFICIENT_SIZE, "INSUFFICIENT_SIZE", "An input argument is not large enough"},
    {DCGM_ST_FIELD_UNSUPPORTED_BY_API, "FIELD_UNSUPPORTED_BY_API", "The given field ID is not supported by the API being called"},
    {DCGM_ST_MODULE_NOT_LOADED, "MODULE_NOT_LOADED", "This request is serviced by a module of DCGM that is not currently loaded"},
    {DCGM_ST_IN_USE, "IN_USE", "The requested operation could not be completed because the affected resource is in use"},
    {DCGM_ST_GROUP_IS_EMPTY, "GROUP_IS_EMPTY", "The specified group is empty, and this operation is incompatible with an empty group"},
    {DCGM_ST_PROFILING_NOT_SUPPORTED, "PROFILING_NOT_SUPPORTED", "Profiling is not supported for this group of GPUs or GPU"},
    {DCGM_ST_PROFILING_LIBRARY_ERROR, "PROFILING_LIBRARY_ERROR", "The third-party Profiling module returned an unrecoverable error"},
    {DCGM_ST_PROFILING_MULTI_PASS, "PROFILING_MULTI_PASS", "The requested profiling metrics cannot be collected in a single pass"},
    {DCGM_ST_INSUFFICIENT_DRIVER_VERSION, "INSUFFICIENT_DRIVER_VERSION", "The installed driver version is insufficient for this API"},
    {DCGM_ST_INSTANCE_NOT_FOUND, "INSTANCE_NOT_FOUND", "The specified GPU instance does not exist"},
    {DCGM_ST_COMPUTE_INSTANCE_NOT_FOUND, "COMPUTE_INSTANCE_NOT_FOUND", "The specified GPU compute instance does not exist"},
    {DCGM_ST_3RD_PARTY_LIBRARY_ERROR, "3RD_PARTY_LIBRARY_ERROR", "Error in a 3rd-party library"},
    {DCGM_ST_INSUFFICIENT_RESOURCES, "INSUFFICIENT_RESOURCES", "Not enough resources available"},
    {DCGM_ST_PAUSED, "PAUSED", "The hostengine and all modules are paused"},
    {DCGM_ST_ALREADY_INITIALIZED, "ALREADY_INITIALIZED", "The object is already initialized"},
    {DCGM_ST_NVML_NOT_LOADED, "NVML_NOT_LOADED", "Cannot perform the requested operation because NVML is not loaded"},
    {DCGM_ST_NVML_DRIVER_TIMEOUT, "NVML_DRIVER_TIMEOUT", "A timeout in the NVML driver was detected"},
    {DCGM_ST_GPUS_DETACHED, "GPUS_DETACHED", "GPUs are detached"},
};

#define STATUSES (sizeof statuses / sizeof statuses[0])

const char *errorString(dcgmReturn_t result)
{
    for (size_t i = 0; i < STATUSES; i++)
        if (statuses[i].code == (int)result)
            return statuses[i].text;
    return "Unknown error";
}

bool status_parse(const char *text, int *status)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end != text && *end == '\0') {
        *status = (int)number;
        return true;
    }
    if (!strncmp(text, "DCGM_ST_", 8))
        text += 8;
    for (size_t i = 0; i < STATUSES; i++)
        if (!strcmp(statuses[i].name, text)) {
            *status = statuses[i].code;
            return true;
        }
    return false;
}

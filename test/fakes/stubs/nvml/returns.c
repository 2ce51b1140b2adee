#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

/* The codes, by number: their names, and what the library says of them. */
static const struct {
    const char *name;
    const char *text;
} codes[] = {
    [NVML_SUCCESS] = {"SUCCESS", "Success"},
    [NVML_ERROR_UNINITIALIZED] = {"UNINITIALIZED", "Uninitialized"},
    [NVML_ERROR_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", "Invalid Argument"},
    [NVML_ERROR_NOT_SUPPORTED] = {"NOT_SUPPORTED", "Not Supported"},
    [NVML_ERROR_NO_PERMISSION] = {"NO_PERMISSION", "Insufficient Permissions"},
    [NVML_ERROR_ALREADY_INITIALIZED] = {"ALREADY_INITIALIZED", "Already Initialized"},
    [NVML_ERROR_NOT_FOUND] = {"NOT_FOUND", "Not Found"},
    [NVML_ERROR_INSUFFICIENT_SIZE] = {"INSUFFICIENT_SIZE", "Insufficient Size"},
    [NVML_ERROR_INSUFFICIENT_POWER] = {"INSUFFICIENT_POWER", "Insufficient External Power"},
    [NVML_ERROR_DRIVER_NOT_LOADED] = {"DRIVER_NOT_LOADED", "Driver Not Loaded"},
    [NVML_ERROR_TIMEOUT] = {"TIMEOUT", "Timeout"},
    [NVML_ERROR_IRQ_ISSUE] = {"IRQ_ISSUE", "Interrupt Request Issue"},
    [NVML_ERROR_LIBRARY_NOT_FOUND] = {"LIBRARY_NOT_FOUND", "NVML Shared Library Not Found"},
    [NVML_ERROR_FUNCTION_NOT_FOUND] = {"FUNCTION_NOT_FOUND", "Function Not Found"},
    [NVML_ERROR_CORRUPTED_INFOROM] = {"CORRUPTED_INFOROM", "Corrupted infoROM"},
    [NVML_ERROR_GPU_IS_LOST] = {"GPU_IS_LOST", "GPU is lost"},
    [NVML_ERROR_RESET_REQUIRED] = {"RESET_REQUIRED", "GPU requires reset"},
    [NVML_ERROR_OPERATING_SYSTEM] = {"OPERATING_SYSTEM", "GPU access blocked by the operating system"},
    [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = {"LIB_RM_VERSION_MISMATCH", "Driver/library version mismatch"},
    [NVML_ERROR_IN_USE] = {"IN_USE", "In use by another client"},
    [NVML_ERROR_MEMORY] = {"MEMORY", "Insufficient Memory"},
    [NVML_ERROR_NO_DATA] = {"NO_DATA", "No data"},
    [NVML_ERROR_VGPU_ECC_NOT_SUPPORTED] = {"VGPU_ECC_NOT_SUPPORTED", "Operation not supported while ECC is enabled"},
    [NVML_ERROR_INSUFFICIENT_RESOURCES] = {"INSUFFICIENT_RESOURCES", "Insufficient Resources"},
    [NVML_ERROR_FREQ_NOT_SUPPORTED] = {"FREQ_NOT_SUPPORTED", "Frequency Not Supported"},
    [NVML_ERROR_ARGUMENT_VERSION_MISMATCH] = {"ARGUMENT_VERSION_MISMATCH", "Argument Version Mismatch"},
    [NVML_ERROR_DEPRECATED] = {"DEPRECATED", "Deprecated"},
    [NVML_ERROR_NOT_READY] = {"NOT_READY", "Not Ready"},
    [NVML_ERROR_GPU_NOT_FOUND] = {"GPU_NOT_FOUND", "No GPUs found"},
    [NVML_ERROR_INVALID_STATE] = {"INVALID_STATE", "Invalid State"},
    [NVML_ERROR_RESET_TYPE_NOT_SUPPORTED] = {"RESET_TYPE_NOT_SUPPORTED", "Reset Type Not Supported"},
};

#define CODES (sizeof codes / sizeof *codes)

const char *nvmlErrorString(nvmlReturn_t result)
{
    return (size_t)result < CODES ? codes[result].text : "Unknown Error";
}

nvmlReturn_t parse_return(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (end != text && *end == 0)
        return (nvmlReturn_t)number;
    if (!strncmp(text, "NVML_ERROR_", 11))
        text += 11;
    for (size_t i = 0; i < CODES; i++)
        if (!strcmp(codes[i].name, text))
            return (nvmlReturn_t)i;
    if (!strcmp(text, "UNKNOWN"))
        return NVML_ERROR_UNKNOWN;
    fprintf(stderr, "hardware.conf: %s is no return code of NVML\n", text);
    abort();
}

/* Errors: their names and texts, and those that tests plant.
 *
 *   DRA_STUB_CUDA_RETURN=cuMemAlloc_v2=2,cuLaunchKernel=719@3
 *
 * makes every call of cuMemAlloc_v2 and the third of cuLaunchKernel fail. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static const struct {
    CUresult code;
    const char *name;
    const char *text;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

#define ERRORS (sizeof errors / sizeof *errors)

/* The real functions, too, return NULL and an error for an unknown number. */
CUresult cuGetErrorName(CUresult error, const char **name)
{
    for (size_t i = 0; i < ERRORS; i++)
        if (errors[i].code == error) {
            *name = errors[i].name;
            return CUDA_SUCCESS;
        }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    for (size_t i = 0; i < ERRORS; i++)
        if (errors[i].code == error) {
            *text = errors[i].text;
            return CUDA_SUCCESS;
        }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

/* How often functions that are planted by number have been called. */
static struct {
    pthread_mutex_t lock;
    struct {
        char function[64];
        unsigned calls;
    } of[32];
} counts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned count_call(const char *function)
{
    unsigned calls = 0;
    pthread_mutex_lock(&counts.lock);
    for (size_t i = 0; i < sizeof counts.of / sizeof *counts.of; i++) {
        if (!counts.of[i].function[0])
            snprintf(counts.of[i].function, sizeof counts.of[i].function, "%s", function);
        if (!strcmp(counts.of[i].function, function)) {
            calls = ++counts.of[i].calls;
            break;
        }
    }
    pthread_mutex_unlock(&counts.lock);
    return calls;
}

CUresult planted(const char *function)
{
    char code[HARDWARE_TEXT];
    if (hardware_fault(HARDWARE_NODE, "cuda.", function, code))
        return (CUresult)atoi(code);
    const char *text = getenv("DRA_STUB_CUDA_RETURN");
    size_t length = strlen(function);
    while (text && *text) {
        if (!strncmp(text, function, length) && text[length] == '=') {
            char *end;
            CUresult error = (CUresult)strtol(text + length + 1, &end, 10);
            if (*end != '@' || strtoul(end + 1, NULL, 10) == count_call(function))
                return error;
        }
        text = strchr(text, ',');
        text = text ? text + 1 : NULL;
    }
    return CUDA_SUCCESS;
}

/* Modules: PTX, of which the stub reads the entries and their parameters. It
 * runs nothing. A kernel is taken to write to the address that is its first
 * parameter, and to repeat its work as often as its last parameter says where
 * that is a .u32; its time is
 *
 *   cuda.launch_time + threads × repetitions / cuda.thread_rate
 *
 * Where nothing is allocated at the address, the context fails as after an
 * illegal access. The stub reports no Xid: that is the
 * test's to script. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define MOST_FUNCTIONS 16

struct function {
    char name[64];
    unsigned parameters;
    bool addresses; /* the first parameter is a .u64 */
    bool repeats;   /* the last parameter is a .u32 */
};

struct module {
    unsigned count;
    struct function functions[MOST_FUNCTIONS];
};

/* Reads ".entry name(.param .u64 a, .param .u32 b)" and what follows it. */
static void read_entry(const char *text, struct function *function)
{
    size_t length = strcspn(text, " \t\n(");
    snprintf(function->name, sizeof function->name, "%.*s", (int)length, text);
    const char *end = strchr(text, ')'), *at = text;
    while (end && (at = strstr(at, ".param")) && at < end) {
        at += strlen(".param");
        at += strspn(at, " \t");
        if (function->parameters++ == 0)
            function->addresses = !strncmp(at, ".u64", 4);
        function->repeats = !strncmp(at, ".u32", 4);
    }
}

static void write_log(unsigned count, const CUjit_option *options, void **values, const char *text)
{
    char *log = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            log = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (log && size)
        snprintf(log, size, "%s", text);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status == CUDA_ERROR_INVALID_PTX)
        write_log(count, options, values, "ptxas application ptx input, line 1; error: a planted error");
    if (status != CUDA_SUCCESS)
        return status;
    if (!strstr(image, ".version") || !strstr(image, ".target") || !strstr(image, ".address_size 64")) {
        write_log(count, options, values, "ptxas application ptx input, line 1; fatal: missing .version, .target or .address_size");
        return CUDA_ERROR_INVALID_PTX;
    }
    struct module *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (const char *at = image; made->count < MOST_FUNCTIONS && (at = strstr(at, ".entry ")); made->count++) {
        at += strlen(".entry ");
        read_entry(at, &made->functions[made->count]);
    }
    *module = made;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned i = 0; i < module->count; i++)
        if (!strcmp(module->functions[i].name, name)) {
            *function = &module->functions[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

/* Writes to a kernel's address. False: nothing is allocated there. */
static bool write_to(CUdeviceptr address)
{
    const unsigned result = 1;
    unsigned char *device = memory_at(address, sizeof result);
    if (device)
        memcpy(device, &result, sizeof result);
    return device != NULL;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **parameters, void **extra)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    double threads = (double)grid_x * grid_y * grid_z * block_x * block_y * block_z;
    if (!function || !stream)
        return CUDA_ERROR_INVALID_HANDLE;
    if (threads == 0 || block_x * block_y * block_z > 1024 || shared_bytes || extra || (function->parameters && !parameters))
        return CUDA_ERROR_INVALID_VALUE;
    const struct device *device = context_device(context);
    double repetitions = 0;
    if (function->repeats)
        repetitions = *(const unsigned *)parameters[function->parameters - 1];
    context_work(context, device_number(device, "cuda.launch_time", 2e-6) +
                              threads * repetitions / device_number(device, "cuda.thread_rate", 4e11));
    bool discarded = device_number(device, "cuda.discard", 0) != 0;
    if (function->addresses && !discarded && !write_to(*(const CUdeviceptr *)parameters[0]))
        context_fail(context, CUDA_ERROR_ILLEGAL_ADDRESS);
    return CUDA_SUCCESS;
}

/* Memory: an allocation is address space of the process, of which only what is
 * written takes memory. Of each copy the first page alone is written, so that a
 * load costs little. What is free is what the GPU has by the script, less what
 * this process has allocated. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>

#include "driver.h"

#define KEPT 4096

struct allocation {
    struct allocation *next;
    const struct device *device;
    unsigned char *address;
    size_t bytes;
};

static struct {
    pthread_mutex_t lock;
    struct allocation *first;
} memory = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* memory.lock is held. */
static uint64_t available(const struct device *device)
{
    char key[HARDWARE_TEXT];
    uint64_t taken = 0;
    const char *const keys[] = {"memory.reserved", "memory.used"};
    for (size_t i = 0; i < 2; i++) {
        if (device->gi >= 0)
            snprintf(key, sizeof key, "mig.%d.%s", device->gi, keys[i]);
        else
            snprintf(key, sizeof key, "%s", keys[i]);
        taken += (uint64_t)device_number(device, key, 0);
    }
    for (const struct allocation *a = memory.first; a; a = a->next)
        if (a->device == device)
            taken += a->bytes;
    return taken < device->memory ? device->memory - taken : 0;
}

CUresult cuMemGetInfo_v2(size_t *left, size_t *total)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    pthread_mutex_lock(&memory.lock);
    *left = available(context_device(context));
    *total = context_device(context)->memory;
    pthread_mutex_unlock(&memory.lock);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *made = calloc(1, sizeof *made);
    void *space = MAP_FAILED;
    pthread_mutex_lock(&memory.lock);
    if (made && bytes <= available(context_device(context)))
        space = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED) {
        pthread_mutex_unlock(&memory.lock);
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (struct allocation){.next = memory.first, .device = context_device(context), .address = space, .bytes = bytes};
    memory.first = made;
    pthread_mutex_unlock(&memory.lock);
    *address = (uintptr_t)space;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    status = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&memory.lock);
    for (struct allocation **at = &memory.first; *at; at = &(*at)->next)
        if ((uintptr_t)(*at)->address == address) {
            struct allocation *gone = *at;
            *at = gone->next;
            munmap(gone->address, gone->bytes);
            free(gone);
            status = CUDA_SUCCESS;
            break;
        }
    pthread_mutex_unlock(&memory.lock);
    return status;
}

unsigned char *memory_at(CUdeviceptr address, size_t bytes)
{
    unsigned char *found = NULL;
    pthread_mutex_lock(&memory.lock);
    for (struct allocation *a = memory.first; a && !found; a = a->next) {
        CUdeviceptr start = (uintptr_t)a->address;
        if (address >= start && address - start <= a->bytes && bytes <= a->bytes - (address - start))
            found = a->address + (address - start);
    }
    pthread_mutex_unlock(&memory.lock);
    return found;
}

CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned flags)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!bytes || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    *host = calloc(1, bytes);
    return *host ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFreeHost(void *host)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status == CUDA_SUCCESS)
        free(host);
    return status;
}

static void take_time(struct context *context, size_t bytes)
{
    context_work(context, (double)bytes / device_number(context_device(context), "cuda.copy_rate", 5e10));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    unsigned char *device = memory_at(to, bytes);
    if (!from || !stream || !device)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(device, from, bytes < KEPT ? bytes : KEPT);
    take_time(context, bytes);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    const unsigned char *device = memory_at(from, bytes);
    if (!to || !stream || !device)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(to, device, bytes < KEPT ? bytes : KEPT);
    take_time(context, bytes);
    return CUDA_SUCCESS;
}

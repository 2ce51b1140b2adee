/* Memory, its errors, and who uses it. */
#include <string.h>

#include "library.h"

struct sizes {
    unsigned long long total, reserved, used;
};

static nvmlReturn_t sizes_of(struct device device, struct sizes *sizes)
{
    *sizes = (struct sizes){0};
    nvmlReturn_t status = read_ull(device, "memory.total", 1, &sizes->total);
    if (status == NVML_SUCCESS)
        status = read_ull(device, "memory.used", 1, &sizes->used);
    read_ull(device, "memory.reserved", 1, &sizes->reserved);
    return status;
}

/* The older call counts what the driver keeps for itself as used. */
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t handle, nvmlMemory_t *memory)
{
    struct device device;
    struct sizes sizes;
    nvmlReturn_t status = enter_device(__func__, handle, memory, &device);
    if (status == NVML_SUCCESS)
        status = sizes_of(device, &sizes);
    if (status != NVML_SUCCESS)
        return status;
    memory->total = sizes.total;
    memory->used = sizes.used + sizes.reserved;
    memory->free = sizes.total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t handle, nvmlMemory_v2_t *memory)
{
    struct device device;
    struct sizes sizes;
    nvmlReturn_t status = enter_device(__func__, handle, memory, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    status = sizes_of(device, &sizes);
    if (status != NVML_SUCCESS)
        return status;
    memory->total = sizes.total;
    memory->reserved = sizes.reserved;
    memory->used = sizes.used;
    memory->free = sizes.total - sizes.used - sizes.reserved;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t handle, nvmlBAR1Memory_t *memory)
{
    struct device device;
    nvmlReturn_t status = enter_device(__func__, handle, memory, &device);
    if (status == NVML_SUCCESS)
        status = read_ull(device, "bar1.total", 1, &memory->bar1Total);
    if (status == NVML_SUCCESS)
        status = read_ull(device, "bar1.used", 1, &memory->bar1Used);
    if (status == NVML_SUCCESS)
        memory->bar1Free = memory->bar1Total - memory->bar1Used;
    return status;
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t handle, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    struct device device;
    unsigned mode;
    nvmlReturn_t status = enter_gpu(__func__, handle, current && pending, &device);
    if (status == NVML_SUCCESS)
        status = read_uint(device, "ecc.mode", 1, &mode);
    if (status == NVML_SUCCESS)
        *current = *pending = (nvmlEnableState_t)mode;
    return status;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t handle, nvmlMemoryErrorType_t type, nvmlEccCounterType_t counter,
                                         unsigned long long *count)
{
    static const char *const keys[NVML_ECC_COUNTER_TYPE_COUNT][NVML_MEMORY_ERROR_TYPE_COUNT] = {
        [NVML_VOLATILE_ECC] = {"ecc.volatile.corrected", "ecc.volatile.uncorrected"},
        [NVML_AGGREGATE_ECC] = {"ecc.corrected", "ecc.uncorrected"},
    };
    struct device device;
    bool valid = count && (unsigned)type < NVML_MEMORY_ERROR_TYPE_COUNT && (unsigned)counter < NVML_ECC_COUNTER_TYPE_COUNT;
    nvmlReturn_t status = enter_gpu(__func__, handle, valid, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (!hardware_flag(device.gpu, "ecc.mode"))
        return NVML_ERROR_NOT_SUPPORTED;
    return read_ull(device, keys[counter][type], 1, count);
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t handle, unsigned int *corrected, unsigned int *uncorrected,
                                       unsigned int *pending, unsigned int *failure)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, corrected && uncorrected && pending && failure, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (read_uint(device, "remapped_rows.corrected", 1, corrected) ||
        read_uint(device, "remapped_rows.uncorrected", 1, uncorrected) ||
        read_uint(device, "remapped_rows.pending", 1, pending) ||
        read_uint(device, "remapped_rows.failure", 1, failure))
        return NVML_ERROR_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* Pages have addresses that only count. */
static nvmlReturn_t pages(struct device device, nvmlPageRetirementCause_t cause, unsigned *count, unsigned long long *addresses,
                          unsigned long long *timestamps)
{
    unsigned there, room = *count;
    const char *key = cause == NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS ? "retired_pages.sbe" : "retired_pages.dbe";
    nvmlReturn_t status = read_uint(device, key, 1, &there);
    if (status != NVML_SUCCESS)
        return status;
    *count = there;
    if (room < there && addresses)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < there && addresses; i++) {
        addresses[i] = 0x10000ull * (i + 1);
        if (timestamps)
            timestamps[i] = 1700000000ull + i;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t handle, nvmlPageRetirementCause_t cause, unsigned int *count, unsigned long long *addresses)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, count && (unsigned)cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT, &device);
    return status == NVML_SUCCESS ? pages(device, cause, count, addresses, NULL) : status;
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t handle, nvmlPageRetirementCause_t cause, unsigned int *count,
                                          unsigned long long *addresses, unsigned long long *timestamps)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, count && (unsigned)cause < NVML_PAGE_RETIREMENT_CAUSE_COUNT, &device);
    return status == NVML_SUCCESS ? pages(device, cause, count, addresses, timestamps) : status;
}

nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t handle, nvmlEnableState_t *pending)
{
    struct device device;
    unsigned value;
    nvmlReturn_t status = enter_gpu(__func__, handle, pending, &device);
    if (status == NVML_SUCCESS)
        status = read_uint(device, "retired_pages.pending", 1, &value);
    if (status == NVML_SUCCESS)
        *pending = (nvmlEnableState_t)value;
    return status;
}

/* Devices: the GPUs and MIG devices that the process may use. They are those
 * of CUDA_VISIBLE_DEVICES, a list of numbers or of UUIDs or their beginnings
 * up to the first that does not exist; without it, all GPUs that are not
 * partitioned, or the first MIG device where all are. As with the real
 * library, a process has one MIG device at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define MOST_DEVICES (HARDWARE_MOST_GPUS * (1 + MIG_MOST_INSTANCES * MIG_MOST_COMPUTE))

static struct {
    pthread_mutex_t lock;
    bool initialized;
    int count;
    struct device devices[HARDWARE_MOST_GPUS];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Devices that exist, whether the process may use them or not. */
struct candidates {
    int count;
    struct device devices[MOST_DEVICES];
};

static void add_partitions(struct candidates *all, int gpu)
{
    struct mig_instance instances[MIG_MOST_INSTANCES];
    unsigned count = hardware_mig_instances(gpu, instances);
    char name[HARDWARE_TEXT] = "";
    hardware_text(gpu, "name", name);
    for (unsigned i = 0; i < count; i++)
        for (unsigned c = 0; c < instances[i].compute_count; c++) {
            const struct mig_profile *profile = instances[i].profile;
            struct device *device = &all->devices[all->count];
            *device = (struct device){
                .gpu = gpu, .gi = (int)instances[i].id, .ci = (int)instances[i].compute[c].id,
                .multiprocessors = profile->multiprocessors * instances[i].compute[c].slices / profile->slices,
                .memory = profile->memory_mib << 20,
            };
            snprintf(device->name, sizeof device->name, "%s MIG %s", name, profile->name);
            if (hardware_mig_uuid(gpu, instances[i].id, instances[i].compute[c].id, device->uuid))
                all->count++;
        }
}

static void find_candidates(struct candidates *all)
{
    all->count = 0;
    for (int gpu = 0; gpu < hardware_gpus() && gpu < HARDWARE_MOST_GPUS; gpu++) {
        if (!hardware_there(gpu) || hardware_lost(gpu))
            continue;
        if (hardware_mig_enabled(gpu)) {
            add_partitions(all, gpu);
            continue;
        }
        int64_t memory = 0, multiprocessors = 0;
        hardware_integer(gpu, "memory.total", &memory);
        hardware_integer(gpu, "multiprocessors", &multiprocessors);
        struct device *device = &all->devices[all->count++];
        *device = (struct device){.gpu = gpu, .gi = -1, .ci = -1, .multiprocessors = (unsigned)multiprocessors, .memory = (uint64_t)memory};
        hardware_text(gpu, "uuid", device->uuid);
        hardware_text(gpu, "name", device->name);
    }
}

/* Makes a device usable. False: it is a second MIG device. */
static bool make_visible(const struct device *device)
{
    for (int i = 0; i < driver.count; i++)
        if (device->gi >= 0 || driver.devices[i].gi >= 0)
            return false;
    if (driver.count == HARDWARE_MOST_GPUS)
        return false;
    driver.devices[driver.count++] = *device;
    return true;
}

static const struct device *named(const struct candidates *all, const char *entry)
{
    char *end;
    long number = strtol(entry, &end, 10);
    if (end != entry && !*end) {
        for (int i = 0; i < all->count; i++)
            if (all->devices[i].gi < 0 && number-- == 0)
                return &all->devices[i];
        return NULL;
    }
    for (int i = 0; i < all->count; i++)
        if (strlen(entry) > 4 && !strncmp(all->devices[i].uuid, entry, strlen(entry)))
            return &all->devices[i];
    return NULL;
}

static void find_devices(void)
{
    static struct candidates all;
    find_candidates(&all);
    driver.count = 0;
    const char *variable = getenv("CUDA_VISIBLE_DEVICES");
    if (!variable) {
        for (int i = 0; i < all.count; i++)
            if (all.devices[i].gi < 0)
                make_visible(&all.devices[i]);
        if (driver.count == 0 && all.count > 0)
            make_visible(&all.devices[0]);
        return;
    }
    char list[4096], *rest = list, *entry;
    snprintf(list, sizeof list, "%s", variable);
    while ((entry = strsep(&rest, ","))) {
        const struct device *device = named(&all, entry);
        if (!device || !make_visible(device))
            return;
    }
}

CUresult cuInit(unsigned flags)
{
    CUresult status = planted(__func__);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&driver.lock);
    if (!driver.initialized && hardware_present())
        find_devices();
    driver.initialized = driver.count > 0;
    status = driver.initialized ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
    pthread_mutex_unlock(&driver.lock);
    return status;
}

CUresult enter(const char *function)
{
    CUresult status = planted(function);
    pthread_mutex_lock(&driver.lock);
    if (status == CUDA_SUCCESS && !driver.initialized)
        status = CUDA_ERROR_NOT_INITIALIZED;
    pthread_mutex_unlock(&driver.lock);
    return status;
}

/* Devices do not change once the driver is initialized. */
const struct device *device_at(CUdevice number)
{
    return number >= 0 && number < driver.count ? &driver.devices[number] : NULL;
}

double device_number(const struct device *device, const char *key, double otherwise)
{
    double value;
    return hardware_number(device->gpu, key, &value) ? value : otherwise;
}

CUresult cuDriverGetVersion(int *version)
{
    CUresult status = planted(__func__);
    int64_t number = 0;
    if (status != CUDA_SUCCESS)
        return status;
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    hardware_integer(HARDWARE_NODE, "cuda_version", &number);
    *version = (int)number;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CUresult status = enter(__func__);
    if (status == CUDA_SUCCESS)
        *count = driver.count;
    return status;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CUresult status = enter(__func__);
    if (status != CUDA_SUCCESS)
        return status;
    if (!device_at(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice number)
{
    CUresult status = enter(__func__);
    const struct device *device = device_at(number);
    if (status != CUDA_SUCCESS)
        return status;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", device->name);
    return CUDA_SUCCESS;
}

/* The UUID of a MIG device is its own, not its GPU's. */
CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice number)
{
    CUresult status = enter(__func__);
    const struct device *device = device_at(number);
    if (status != CUDA_SUCCESS)
        return status;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    const char *text = device->uuid + 4;
    for (size_t i = 0; i < sizeof uuid->bytes; i++) {
        unsigned byte = 0;
        text += *text == '-';
        sscanf(text, "%2x", &byte);
        uuid->bytes[i] = (char)byte;
        text += 2;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *address, int length, CUdevice number)
{
    CUresult status = enter(__func__);
    const struct device *device = device_at(number);
    char text[HARDWARE_TEXT] = "";
    if (status != CUDA_SUCCESS)
        return status;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    hardware_text(device->gpu, "pci.bus_id", text);
    /* NVML prints the domain with eight digits, CUDA with four. */
    size_t more = strcspn(text, ":");
    snprintf(address, (size_t)length, "%s", more > 4 ? text + more - 4 : text);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice number)
{
    CUresult status = enter(__func__);
    const struct device *device = device_at(number);
    if (status != CUDA_SUCCESS)
        return status;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = (int)device->multiprocessors;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = (int)device_number(device, "cuda.l2_cache", 52428800);
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = (int)device_number(device, "cuda.major", 0);
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = (int)device_number(device, "cuda.minor", 0);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

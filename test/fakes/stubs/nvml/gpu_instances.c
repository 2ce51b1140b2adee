/* MIG: mode, profiles, GPU instances. */
#include <stdio.h>
#include <string.h>

#include "library.h"

struct nvmlGpuInstance_st {
    char unused;
};

static struct nvmlGpuInstance_st instance_objects[HARDWARE_MOST_GPUS][MOST_GI];

nvmlReturn_t return_of(enum mig_result result)
{
    switch (result) {
    case MIG_DONE:
        return NVML_SUCCESS;
    case MIG_DISABLED:
        return NVML_ERROR_NOT_SUPPORTED;
    case MIG_UNKNOWN:
        return NVML_ERROR_INVALID_ARGUMENT;
    case MIG_FULL:
        return NVML_ERROR_INSUFFICIENT_RESOURCES;
    case MIG_BUSY:
        return NVML_ERROR_IN_USE;
    default:
        return NVML_ERROR_UNKNOWN;
    }
}

bool find_instance(int gpu, unsigned gi, struct mig_instance *instance)
{
    struct mig_instance instances[MIG_MOST_INSTANCES];
    unsigned count = hardware_mig_instances(gpu, instances);
    for (unsigned i = 0; i < count; i++)
        if (instances[i].id == gi) {
            *instance = instances[i];
            return true;
        }
    return false;
}

bool find_compute(int gpu, unsigned gi, unsigned ci, struct mig_instance *instance, struct mig_compute *compute)
{
    if (!find_instance(gpu, gi, instance))
        return false;
    for (unsigned i = 0; i < instance->compute_count; i++)
        if (instance->compute[i].id == ci) {
            *compute = instance->compute[i];
            return true;
        }
    return false;
}

const struct mig_profile *find_profile(int gpu, unsigned id)
{
    unsigned count;
    const struct mig_profile *profiles = hardware_mig_profiles(gpu, &count);
    for (unsigned i = 0; i < count; i++)
        if (profiles[i].id == id)
            return &profiles[i];
    return NULL;
}

void compute_name(const struct mig_profile *profile, unsigned slices, char *text, unsigned length)
{
    if (slices == profile->slices)
        snprintf(text, length, "%s", profile->name);
    else
        snprintf(text, length, "%uc.%s", slices, profile->name);
}

/* Begins a call on a GPU that can be divided. */
static nvmlReturn_t enter_capable(const char *function, nvmlDevice_t handle, bool valid, struct device *device)
{
    unsigned mode;
    nvmlReturn_t status = enter_gpu(function, handle, valid, device);
    return status == NVML_SUCCESS ? read_uint(*device, "mig.mode", 1, &mode) : status;
}

/* Begins a call on a GPU in MIG mode. */
static nvmlReturn_t enter_divided(const char *function, nvmlDevice_t handle, bool valid, struct device *device)
{
    nvmlReturn_t status = enter_gpu(function, handle, valid, device);
    return status == NVML_SUCCESS && !hardware_mig_enabled(device->gpu) ? NVML_ERROR_NOT_SUPPORTED : status;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned int *current, unsigned int *pending)
{
    struct device device;
    nvmlReturn_t status = enter_capable(__func__, handle, current && pending, &device);
    if (status == NVML_SUCCESS)
        *current = *pending = hardware_mig_enabled(device.gpu);
    return status;
}

/* That the GPU is in use is reported by the activation's status alone. */
nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t handle, unsigned int mode, nvmlReturn_t *activation)
{
    struct device device;
    nvmlReturn_t status = enter_capable(__func__, handle, activation && mode <= 1, &device);
    if (status != NVML_SUCCESS)
        return status;
    bool changes = (mode == NVML_DEVICE_MIG_ENABLE) != hardware_mig_enabled(device.gpu);
    if (changes && hardware_flag(device.gpu, "mig.resets") && hardware_held_by_others(device.gpu))
        *activation = NVML_ERROR_IN_USE;
    else
        *activation = return_of(hardware_mig_set_mode(device.gpu, mode == NVML_DEVICE_MIG_ENABLE));
    return NVML_SUCCESS;
}

static const struct mig_profile *profile_at(int gpu, unsigned index)
{
    unsigned count;
    const struct mig_profile *profiles = hardware_mig_profiles(gpu, &count);
    for (unsigned i = 0; i < count; i++)
        if (profiles[i].index == index)
            return &profiles[i];
    return NULL;
}

#define FILL_PROFILE(info, from)                          \
    do {                                                  \
        (info)->id = (from)->id;                          \
        (info)->sliceCount = (from)->slices;              \
        (info)->instanceCount = (from)->instances;        \
        (info)->multiprocessorCount = (from)->multiprocessors; \
        (info)->copyEngineCount = (from)->copy_engines;   \
        (info)->decoderCount = (from)->decoders;          \
        (info)->encoderCount = (from)->encoders;          \
        (info)->jpegCount = (from)->jpegs;                \
        (info)->ofaCount = (from)->ofas;                  \
        (info)->memorySizeMB = (from)->memory_mib;        \
    } while (0)

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t handle, unsigned int index, nvmlGpuInstanceProfileInfo_t *info)
{
    struct device device;
    nvmlReturn_t status = enter_capable(__func__, handle, info && index < NVML_GPU_INSTANCE_PROFILE_COUNT, &device);
    if (status != NVML_SUCCESS)
        return status;
    const struct mig_profile *profile = profile_at(device.gpu, index);
    if (!profile)
        return NVML_ERROR_NOT_SUPPORTED;
    info->isP2pSupported = 1;
    FILL_PROFILE(info, profile);
    return NVML_SUCCESS;
}

/* The structures grow, so each version is written as what it is. */
static nvmlReturn_t give_profile(const struct mig_profile *profile, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    if (!profile)
        return NVML_ERROR_NOT_SUPPORTED;
    if (info->version == nvmlGpuInstanceProfileInfo_v2) {
        info->isP2pSupported = 1;
        FILL_PROFILE(info, profile);
        snprintf(info->name, sizeof info->name, "MIG %s", profile->name);
        return NVML_SUCCESS;
    }
    if (info->version != nvmlGpuInstanceProfileInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpuInstanceProfileInfo_v3_t *newer = (void *)info;
    FILL_PROFILE(newer, profile);
    snprintf(newer->name, sizeof newer->name, "MIG %s", profile->name);
    newer->capabilities = NVML_GPU_INSTANCE_PROFILE_CAPS_P2P;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t handle, unsigned int index, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct device device;
    nvmlReturn_t status = enter_capable(__func__, handle, info && index < NVML_GPU_INSTANCE_PROFILE_COUNT, &device);
    return status == NVML_SUCCESS ? give_profile(profile_at(device.gpu, index), info) : status;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoByIdV(nvmlDevice_t handle, unsigned int id, nvmlGpuInstanceProfileInfo_v2_t *info)
{
    struct device device;
    nvmlReturn_t status = enter_capable(__func__, handle, info, &device);
    return status == NVML_SUCCESS ? give_profile(find_profile(device.gpu, id), info) : status;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements_v2(nvmlDevice_t handle, unsigned int id, nvmlGpuInstancePlacement_t *placements,
                                                           unsigned int *count)
{
    struct device device;
    nvmlReturn_t status = enter_capable(__func__, handle, count, &device);
    if (status != NVML_SUCCESS)
        return status;
    const struct mig_profile *profile = find_profile(device.gpu, id);
    if (!profile)
        return NVML_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; placements && i < profile->placement_count; i++)
        placements[i] = (nvmlGpuInstancePlacement_t){profile->placements[i].start, profile->placements[i].size};
    *count = profile->placement_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstancePossiblePlacements(nvmlDevice_t handle, unsigned int id, nvmlGpuInstancePlacement_t *placements,
                                                        unsigned int *count)
{
    return nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle, id, placements, count);
}

/* How many more fit, wherever they do. */
static unsigned remaining(int gpu, const struct mig_profile *profile)
{
    struct mig_instance instances[MIG_MOST_INSTANCES];
    unsigned count = hardware_mig_instances(gpu, instances), fit = 0, same = 0;
    for (unsigned i = 0; i < count; i++)
        same += instances[i].profile == profile;
    for (unsigned p = 0; p < profile->placement_count; p++) {
        struct mig_placement place = profile->placements[p];
        bool clear = true;
        for (unsigned i = 0; i < count; i++) {
            struct mig_placement taken = instances[i].placement;
            clear = clear && !(place.start < taken.start + taken.size && taken.start < place.start + place.size);
        }
        fit += clear;
    }
    return fit < profile->instances - same ? fit : profile->instances - same;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t handle, unsigned int id, unsigned int *count)
{
    struct device device;
    nvmlReturn_t status = enter_divided(__func__, handle, count, &device);
    if (status != NVML_SUCCESS)
        return status;
    const struct mig_profile *profile = find_profile(device.gpu, id);
    if (!profile)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = remaining(device.gpu, profile);
    return NVML_SUCCESS;
}

nvmlGpuInstance_t instance_handle(int gpu, unsigned gi)
{
    return (nvmlGpuInstance_t){&instance_objects[gpu][gi]};
}

/* A foreign profile, or one that the model lacks, is NOT_SUPPORTED. */
static nvmlReturn_t create(struct device device, unsigned id, int start, nvmlGpuInstance_t *instance)
{
    unsigned gi;
    if (!find_profile(device.gpu, id))
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t status = return_of(hardware_mig_create(device.gpu, id, start, &gi));
    if (status == NVML_SUCCESS)
        *instance = instance_handle(device.gpu, gi);
    return status;
}

nvmlReturn_t nvmlDeviceCreateGpuInstance(nvmlDevice_t handle, unsigned int id, nvmlGpuInstance_t *instance)
{
    struct device device;
    nvmlReturn_t status = enter_divided(__func__, handle, instance, &device);
    return status == NVML_SUCCESS ? create(device, id, -1, instance) : status;
}

nvmlReturn_t nvmlDeviceCreateGpuInstanceWithPlacement(nvmlDevice_t handle, unsigned int id, const nvmlGpuInstancePlacement_t *placement,
                                                      nvmlGpuInstance_t *instance)
{
    struct device device;
    nvmlReturn_t status = enter_divided(__func__, handle, placement && instance, &device);
    return status == NVML_SUCCESS ? create(device, id, (int)placement->start, instance) : status;
}

nvmlReturn_t nvmlDeviceGetGpuInstances(nvmlDevice_t handle, unsigned int id, nvmlGpuInstance_t *found, unsigned int *count)
{
    struct device device;
    struct mig_instance instances[MIG_MOST_INSTANCES];
    nvmlReturn_t status = enter_divided(__func__, handle, found && count, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (!find_profile(device.gpu, id))
        return NVML_ERROR_NOT_SUPPORTED;
    unsigned all = hardware_mig_instances(device.gpu, instances);
    *count = 0;
    for (unsigned i = 0; i < all; i++)
        if (instances[i].profile->id == id)
            found[(*count)++] = instance_handle(device.gpu, instances[i].id);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceById(nvmlDevice_t handle, unsigned int id, nvmlGpuInstance_t *found)
{
    struct device device;
    struct mig_instance instance;
    nvmlReturn_t status = enter_divided(__func__, handle, found, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (!find_instance(device.gpu, id, &instance))
        return NVML_ERROR_NOT_FOUND;
    *found = instance_handle(device.gpu, id);
    return NVML_SUCCESS;
}

nvmlReturn_t enter_instance(const char *function, nvmlGpuInstance_t handle, bool valid, int *gpu, struct mig_instance *instance)
{
    uintptr_t at = (uintptr_t)handle.handle, first = (uintptr_t)instance_objects;
    struct device device;
    if (!session_running())
        return NVML_ERROR_UNINITIALIZED;
    if (at < first || at >= first + sizeof instance_objects)
        return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = (int)(at - first) / MOST_GI;
    nvmlReturn_t status = enter_device(function, gpu_handle(*gpu), valid, &device);
    if (status != NVML_SUCCESS)
        return status;
    return find_instance(*gpu, (unsigned)(at - first) % MOST_GI, instance) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t handle, nvmlGpuInstanceInfo_t *info)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, info, &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    *info = (nvmlGpuInstanceInfo_t){
        .device = gpu_handle(gpu), .id = instance.id, .profileId = instance.profile->id,
        .placement = {instance.placement.start, instance.placement.size},
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceDestroy(nvmlGpuInstance_t handle)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, true, &gpu, &instance);
    return status == NVML_SUCCESS ? return_of(hardware_mig_destroy(gpu, instance.id)) : status;
}

/* MIG: compute instances. */
#include <stdio.h>

#include "library.h"

struct nvmlComputeInstance_st {
    char unused;
};

static struct nvmlComputeInstance_st compute_objects[HARDWARE_MOST_GPUS][MOST_GI][MIG_MOST_COMPUTE];

/* The slices of a profile of compute instances; 0: a GPU instance of so many
 * slices does not have it. */
static unsigned compute_slices(unsigned index, unsigned of)
{
    static const unsigned slices[] = {1, 2, 3, 4, 7};
    unsigned found = index < sizeof slices / sizeof *slices ? slices[index] : 0;
    bool odd = found == 3 && of != 3 && of != 7;
    return found <= of && !odd ? found : 0;
}

static unsigned compute_index(unsigned slices) { return slices == 7 ? 4 : slices - 1; }

#define FILL_COMPUTE(info, instance, slices)                                                        \
    do {                                                                                            \
        const struct mig_profile *whole = (instance).profile;                                       \
        (info)->id = compute_index(slices);                                                         \
        (info)->sliceCount = (slices);                                                              \
        (info)->instanceCount = whole->slices / (slices);                                           \
        (info)->multiprocessorCount = whole->multiprocessors * (slices) / whole->slices;            \
        (info)->sharedCopyEngineCount = whole->copy_engines;                                        \
        (info)->sharedDecoderCount = whole->decoders;                                               \
        (info)->sharedEncoderCount = whole->encoders;                                               \
        (info)->sharedJpegCount = whole->jpegs;                                                     \
        (info)->sharedOfaCount = whole->ofas;                                                       \
    } while (0)

static bool valid_compute(unsigned index, unsigned engines)
{
    return index < NVML_COMPUTE_INSTANCE_PROFILE_COUNT && engines < NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_COUNT;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(nvmlGpuInstance_t handle, unsigned int index, unsigned int engines,
                                                          nvmlComputeInstanceProfileInfo_t *info)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, info && valid_compute(index, engines), &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    unsigned slices = compute_slices(index, instance.profile->slices);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    FILL_COMPUTE(info, instance, slices);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(nvmlGpuInstance_t handle, unsigned int index, unsigned int engines,
                                                           nvmlComputeInstanceProfileInfo_v2_t *info)
{
    int gpu;
    struct mig_instance instance;
    char name[64];
    nvmlReturn_t status = enter_instance(__func__, handle, info && valid_compute(index, engines), &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    unsigned slices = compute_slices(index, instance.profile->slices);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    compute_name(instance.profile, slices, name, sizeof name);
    if (info->version == nvmlComputeInstanceProfileInfo_v2) {
        FILL_COMPUTE(info, instance, slices);
        snprintf(info->name, sizeof info->name, "MIG %s", name);
        return NVML_SUCCESS;
    }
    if (info->version != nvmlComputeInstanceProfileInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlComputeInstanceProfileInfo_v3_t *newer = (void *)info;
    FILL_COMPUTE(newer, instance, slices);
    snprintf(newer->name, sizeof newer->name, "MIG %s", name);
    newer->capabilities = 0;
    return NVML_SUCCESS;
}

static bool overlaps(const struct mig_instance *instance, unsigned start, unsigned slices)
{
    for (unsigned i = 0; i < instance->compute_count; i++) {
        const struct mig_compute *taken = &instance->compute[i];
        if (start < taken->start + taken->slices && taken->start < start + slices)
            return true;
    }
    return false;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceRemainingCapacity(nvmlGpuInstance_t handle, unsigned int index, unsigned int *count)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, count, &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    unsigned slices = compute_slices(index, instance.profile->slices);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (unsigned start = 0; start + slices <= instance.profile->slices; start += slices)
        *count += !overlaps(&instance, start, slices);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstancePossiblePlacements(nvmlGpuInstance_t handle, unsigned int index,
                                                                 nvmlComputeInstancePlacement_t *placements, unsigned int *count)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, count, &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    unsigned slices = compute_slices(index, instance.profile->slices);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (unsigned start = 0; start + slices <= instance.profile->slices; start += slices, ++*count)
        if (placements)
            placements[*count] = (nvmlComputeInstancePlacement_t){start, slices};
    return NVML_SUCCESS;
}

static nvmlReturn_t create_compute(int gpu, const struct mig_instance *instance, unsigned index, int start, nvmlComputeInstance_t *compute)
{
    unsigned ci, slices = compute_slices(index, instance->profile->slices);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlReturn_t status = return_of(hardware_mig_create_compute(gpu, instance->id, slices, start, &ci));
    if (status == NVML_SUCCESS)
        compute->handle = &compute_objects[gpu][instance->id][ci];
    return status;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstance(nvmlGpuInstance_t handle, unsigned int index, nvmlComputeInstance_t *compute)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, compute, &gpu, &instance);
    return status == NVML_SUCCESS ? create_compute(gpu, &instance, index, -1, compute) : status;
}

nvmlReturn_t nvmlGpuInstanceCreateComputeInstanceWithPlacement(nvmlGpuInstance_t handle, unsigned int index,
                                                               const nvmlComputeInstancePlacement_t *placement, nvmlComputeInstance_t *compute)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, placement && compute, &gpu, &instance);
    return status == NVML_SUCCESS ? create_compute(gpu, &instance, index, (int)placement->start, compute) : status;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstances(nvmlGpuInstance_t handle, unsigned int index, nvmlComputeInstance_t *found, unsigned int *count)
{
    int gpu;
    struct mig_instance instance;
    nvmlReturn_t status = enter_instance(__func__, handle, found && count, &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    unsigned slices = compute_slices(index, instance.profile->slices);
    if (!slices)
        return NVML_ERROR_NOT_SUPPORTED;
    *count = 0;
    for (unsigned i = 0; i < instance.compute_count; i++)
        if (instance.compute[i].slices == slices)
            found[(*count)++].handle = &compute_objects[gpu][instance.id][instance.compute[i].id];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpuInstanceGetComputeInstanceById(nvmlGpuInstance_t handle, unsigned int id, nvmlComputeInstance_t *found)
{
    int gpu;
    struct mig_instance instance;
    struct mig_compute compute;
    nvmlReturn_t status = enter_instance(__func__, handle, found, &gpu, &instance);
    if (status != NVML_SUCCESS)
        return status;
    if (!find_compute(gpu, instance.id, id, &instance, &compute))
        return NVML_ERROR_NOT_FOUND;
    found->handle = &compute_objects[gpu][instance.id][id];
    return NVML_SUCCESS;
}

static nvmlReturn_t enter_compute(const char *function, nvmlComputeInstance_t handle, bool valid, int *gpu, struct mig_instance *instance,
                                  struct mig_compute *compute)
{
    uintptr_t at = (uintptr_t)handle.handle, first = (uintptr_t)compute_objects;
    struct device device;
    if (!session_running())
        return NVML_ERROR_UNINITIALIZED;
    if (at < first || at >= first + sizeof compute_objects)
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned number = (unsigned)(at - first);
    *gpu = (int)(number / MIG_MOST_COMPUTE / MOST_GI);
    nvmlReturn_t status = enter_device(function, gpu_handle(*gpu), valid, &device);
    if (status != NVML_SUCCESS)
        return status;
    unsigned gi = number / MIG_MOST_COMPUTE % MOST_GI, ci = number % MIG_MOST_COMPUTE;
    return find_compute(*gpu, gi, ci, instance, compute) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlComputeInstanceDestroy(nvmlComputeInstance_t handle)
{
    int gpu;
    struct mig_instance instance;
    struct mig_compute compute;
    nvmlReturn_t status = enter_compute(__func__, handle, true, &gpu, &instance, &compute);
    return status == NVML_SUCCESS ? return_of(hardware_mig_destroy_compute(gpu, instance.id, compute.id)) : status;
}

nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    int gpu;
    struct mig_instance instance;
    struct mig_compute compute;
    nvmlReturn_t status = enter_compute(__func__, handle, info, &gpu, &instance, &compute);
    if (status != NVML_SUCCESS)
        return status;
    *info = (nvmlComputeInstanceInfo_t){
        .device = mig_handle(gpu, instance.id, compute.id), .gpuInstance = instance_handle(gpu, instance.id),
        .id = compute.id, .profileId = compute_index(compute.slices), .placement = {compute.start, compute.slices},
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlComputeInstanceGetInfo(nvmlComputeInstance_t handle, nvmlComputeInstanceInfo_t *info)
{
    return nvmlComputeInstanceGetInfo_v2(handle, info);
}

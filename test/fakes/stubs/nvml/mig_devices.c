/* MIG devices: one for each compute instance. */
#include <string.h>

#include "library.h"

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t handle, unsigned int *is)
{
    struct device device;
    nvmlReturn_t status = enter_device(__func__, handle, is, &device);
    if (status == NVML_SUCCESS)
        *is = device.gi >= 0;
    return status;
}

/* Begins a call that is for MIG devices alone. */
static nvmlReturn_t enter_mig(const char *function, nvmlDevice_t handle, bool valid, struct device *device)
{
    nvmlReturn_t status = enter_device(function, handle, valid, device);
    return status == NVML_SUCCESS && device->gi < 0 ? NVML_ERROR_NOT_SUPPORTED : status;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t handle, unsigned int *id)
{
    struct device device;
    nvmlReturn_t status = enter_mig(__func__, handle, id, &device);
    if (status == NVML_SUCCESS)
        *id = (unsigned)device.gi;
    return status;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t handle, unsigned int *id)
{
    struct device device;
    nvmlReturn_t status = enter_mig(__func__, handle, id, &device);
    if (status == NVML_SUCCESS)
        *id = (unsigned)device.ci;
    return status;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t handle, nvmlDevice_t *parent)
{
    struct device device;
    nvmlReturn_t status = enter_mig(__func__, handle, parent, &device);
    if (status == NVML_SUCCESS)
        *parent = gpu_handle(device.gpu);
    return status;
}

/* Zero where MIG mode is off. */
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t handle, unsigned int *count)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, count, &device);
    if (status == NVML_SUCCESS)
        *count = hardware_mig_enabled(device.gpu) ? 7 : 0;
    return status;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t handle, unsigned int index, nvmlDevice_t *found)
{
    struct device device;
    struct mig_instance instances[MIG_MOST_INSTANCES];
    nvmlReturn_t status = enter_gpu(__func__, handle, found && index < 7, &device);
    if (status != NVML_SUCCESS)
        return status;
    unsigned count = hardware_mig_instances(device.gpu, instances);
    for (unsigned i = 0; i < count; i++)
        for (unsigned c = 0; c < instances[i].compute_count; c++)
            if (index-- == 0) {
                *found = mig_handle(device.gpu, instances[i].id, instances[i].compute[c].id);
                return NVML_SUCCESS;
            }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes)
{
    struct device device;
    struct mig_instance instance;
    struct mig_compute compute;
    nvmlReturn_t status = enter_mig(__func__, handle, attributes, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (!find_compute(device.gpu, (unsigned)device.gi, (unsigned)device.ci, &instance, &compute))
        return NVML_ERROR_INVALID_ARGUMENT;
    const struct mig_profile *profile = instance.profile;
    *attributes = (nvmlDeviceAttributes_t){
        .multiprocessorCount = profile->multiprocessors * compute.slices / profile->slices,
        .sharedCopyEngineCount = profile->copy_engines,
        .sharedDecoderCount = profile->decoders,
        .sharedEncoderCount = profile->encoders,
        .sharedJpegCount = profile->jpegs,
        .sharedOfaCount = profile->ofas,
        .gpuInstanceSliceCount = profile->slices,
        .computeInstanceSliceCount = compute.slices,
        .memorySizeMB = profile->memory_mib,
    };
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t handle, nvmlDeviceAttributes_t *attributes)
{
    return nvmlDeviceGetAttributes_v2(handle, attributes);
}

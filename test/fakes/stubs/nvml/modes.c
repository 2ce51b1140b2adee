/* Modes and settings. What a program sets is kept for all processes, in
 * "settings" beside hardware.conf. */
#include <stdio.h>
#include <string.h>

#include "library.h"

#define MODE(function, type, key)                                          \
    nvmlReturn_t function(nvmlDevice_t handle, type *mode)                 \
    {                                                                      \
        struct device device;                                              \
        unsigned value;                                                    \
        nvmlReturn_t status = enter_device(__func__, handle, mode, &device); \
        device.gi = -1; /* a partition has its GPU's */                    \
        if (status == NVML_SUCCESS)                                        \
            status = read_uint(device, key, 1, &value);                    \
        if (status == NVML_SUCCESS)                                        \
            *mode = (type)value;                                           \
        return status;                                                     \
    }

MODE(nvmlDeviceGetComputeMode, nvmlComputeMode_t, "compute_mode")
MODE(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, "persistence_mode")

static nvmlReturn_t keep(const char *function, nvmlDevice_t handle, const char *key, unsigned mode, bool valid)
{
    struct device device;
    char text[16];
    nvmlReturn_t status = enter_device(function, handle, valid, &device);
    if (status != NVML_SUCCESS)
        return status;
    snprintf(text, sizeof text, "%u", mode);
    return hardware_set(device.gpu, key, text) ? NVML_SUCCESS : NVML_ERROR_NO_PERMISSION;
}

nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t handle, nvmlComputeMode_t mode)
{
    return keep(__func__, handle, "compute_mode", (unsigned)mode, (unsigned)mode < NVML_COMPUTEMODE_COUNT);
}

nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t handle, nvmlEnableState_t mode)
{
    return keep(__func__, handle, "persistence_mode", (unsigned)mode, (unsigned)mode <= NVML_FEATURE_ENABLED);
}

nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t handle, nvmlGpuVirtualizationMode_t *mode)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, mode, &device);
    if (status == NVML_SUCCESS)
        *mode = NVML_GPU_VIRTUALIZATION_MODE_NONE;
    return status;
}

nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t handle, nvmlDeviceAddressingMode_t *mode)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, mode, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (mode->version != nvmlDeviceAddressingMode_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return read_uint(device, "addressing_mode", 1, &mode->value);
}

/* The cluster's UUID, of which the script has the text. */
static void cluster_of(struct device device, unsigned char uuid[NVML_GPU_FABRIC_UUID_LEN])
{
    char text[HARDWARE_TEXT] = "";
    size_t digits = 0;
    memset(uuid, 0, NVML_GPU_FABRIC_UUID_LEN);
    hardware_text(device.gpu, "fabric.cluster", text);
    for (const char *at = text; *at && digits < 2 * NVML_GPU_FABRIC_UUID_LEN; at++) {
        unsigned digit;
        if (*at == '-' || sscanf((char[]){*at, 0}, "%x", &digit) != 1)
            continue;
        uuid[digits / 2] = (unsigned char)(uuid[digits / 2] << 4 | digit);
        digits++;
    }
}

#define FILL_FABRIC(device, info)                                        \
    do {                                                                 \
        unsigned state = 0, code = 0;                                    \
        cluster_of(device, (info)->clusterUuid);                         \
        (info)->cliqueId = 0;                                            \
        read_uint(device, "fabric.state", 1, &state);                    \
        read_uint(device, "fabric.status", 1, &code);                    \
        read_uint(device, "fabric.clique", 1, &(info)->cliqueId);        \
        (info)->state = (nvmlGpuFabricState_t)state;                     \
        (info)->status = (nvmlReturn_t)code;                             \
    } while (0)

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t handle, nvmlGpuFabricInfo_t *info)
{
    struct device device;
    unsigned state;
    nvmlReturn_t status = enter_gpu(__func__, handle, info, &device);
    if (status == NVML_SUCCESS)
        status = read_uint(device, "fabric.state", 1, &state);
    if (status == NVML_SUCCESS)
        FILL_FABRIC(device, info);
    return status;
}

/* The structure is of one version or the next. */
nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t handle, nvmlGpuFabricInfoV_t *info)
{
    struct device device;
    unsigned value;
    nvmlReturn_t status = enter_gpu(__func__, handle, info, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (info->version != nvmlGpuFabricInfo_v2 && info->version != nvmlGpuFabricInfo_v3)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (read_uint(device, "fabric.state", 1, &value) != NVML_SUCCESS)
        return NVML_ERROR_NOT_SUPPORTED;
    nvmlGpuFabricInfo_v2_t *older = (void *)info; /* begins alike */
    FILL_FABRIC(device, older);
    older->healthMask = 0;
    read_uint(device, "fabric.health_mask", 1, &older->healthMask);
    if (info->version == nvmlGpuFabricInfo_v3) {
        value = NVML_GPU_FABRIC_HEALTH_SUMMARY_HEALTHY;
        read_uint(device, "fabric.health", 1, &value);
        info->healthSummary = (unsigned char)value;
    }
    return NVML_SUCCESS;
}

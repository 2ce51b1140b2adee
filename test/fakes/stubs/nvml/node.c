/* The system, and how devices are found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "library.h"

static nvmlReturn_t node_text(const char *key, const char *prefix, char *text, unsigned length)
{
    char value[HARDWARE_TEXT], whole[2 * HARDWARE_TEXT];
    if (!hardware_text(HARDWARE_NODE, key, value))
        return NVML_ERROR_NOT_SUPPORTED;
    snprintf(whole, sizeof whole, "%s%s", prefix, value);
    return give_text(whole, text, length);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    nvmlReturn_t status = enter(__func__, version);
    return status == NVML_SUCCESS ? node_text("driver_version", "", version, length) : status;
}

/* The version of the library is CUDA's major version and the driver's. */
nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    char prefix[32];
    int64_t cuda = 0;
    nvmlReturn_t status = enter(__func__, version);
    if (status != NVML_SUCCESS)
        return status;
    hardware_integer(HARDWARE_NODE, "cuda_version", &cuda);
    snprintf(prefix, sizeof prefix, "%d.", (int)(cuda / 1000));
    return node_text("driver_version", prefix, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    int64_t cuda;
    nvmlReturn_t status = enter(__func__, version);
    if (status != NVML_SUCCESS)
        return status;
    if (!hardware_integer(HARDWARE_NODE, "cuda_version", &cuda))
        return NVML_ERROR_NOT_SUPPORTED;
    *version = (int)cuda;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }

nvmlReturn_t nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[64], text[256] = "";
    nvmlReturn_t status = enter(__func__, name && length);
    if (status != NVML_SUCCESS)
        return status;
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return NVML_ERROR_NOT_FOUND;
    if (fgets(text, sizeof text, file))
        text[strcspn(text, "\n")] = 0;
    fclose(file);
    return give_text(text, name, length);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    int gpus[HARDWARE_MOST_GPUS];
    nvmlReturn_t status = enter(__func__, count);
    if (status == NVML_SUCCESS)
        *count = session_gpus(gpus);
    return status;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned int *count) { return nvmlDeviceGetCount_v2(count); }

/* Gives the handle of a GPU that was found, unless it is lost. */
static nvmlReturn_t found(const char *function, int gpu, nvmlDevice_t *handle)
{
    struct device device;
    nvmlReturn_t status = enter_device(function, gpu_handle(gpu), true, &device);
    if (status == NVML_SUCCESS) {
        hardware_attach(gpu);
        *handle = gpu_handle(gpu);
    }
    return status;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    int gpus[HARDWARE_MOST_GPUS];
    nvmlReturn_t status = enter(__func__, device);
    if (status != NVML_SUCCESS)
        return status;
    return index < session_gpus(gpus) ? found(__func__, gpus[index], device) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static nvmlReturn_t by_text(const char *function, const char *key, const char *wanted, nvmlDevice_t *device)
{
    int gpus[HARDWARE_MOST_GPUS];
    char text[HARDWARE_TEXT];
    unsigned count = session_gpus(gpus);
    for (unsigned i = 0; i < count; i++)
        if (hardware_text(gpus[i], key, text) && !strcmp(text, wanted))
            return found(function, gpus[i], device);
    return NVML_ERROR_NOT_FOUND;
}

static nvmlReturn_t mig_by_uuid(const char *function, const char *wanted, nvmlDevice_t *handle)
{
    int gpus[HARDWARE_MOST_GPUS];
    char uuid[HARDWARE_TEXT];
    unsigned count = session_gpus(gpus);
    for (unsigned g = 0; g < count; g++) {
        struct mig_instance instances[MIG_MOST_INSTANCES];
        unsigned instance_count = hardware_mig_instances(gpus[g], instances);
        for (unsigned i = 0; i < instance_count; i++)
            for (unsigned c = 0; c < instances[i].compute_count; c++) {
                unsigned gi = instances[i].id, ci = instances[i].compute[c].id;
                struct device device;
                if (!hardware_mig_uuid(gpus[g], gi, ci, uuid) || strcmp(uuid, wanted))
                    continue;
                *handle = mig_handle(gpus[g], gi, ci);
                return enter_device(function, *handle, true, &device);
            }
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t status = enter(__func__, uuid && device);
    if (status != NVML_SUCCESS)
        return status;
    return strncmp(uuid, "MIG-", 4) ? by_text(__func__, "uuid", uuid, device) : mig_by_uuid(__func__, uuid, device);
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *device)
{
    nvmlReturn_t status = enter(__func__, serial && device);
    return status == NVML_SUCCESS ? by_text(__func__, "serial", serial, device) : status;
}

/* Domains may be written with four or eight digits. */
static bool same_address(const char *a, const char *b)
{
    unsigned first[4], second[4];
    return sscanf(a, "%x:%x:%x.%x", &first[0], &first[1], &first[2], &first[3]) == 4 &&
           sscanf(b, "%x:%x:%x.%x", &second[0], &second[1], &second[2], &second[3]) == 4 &&
           !memcmp(first, second, sizeof first);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
    int gpus[HARDWARE_MOST_GPUS];
    char text[HARDWARE_TEXT];
    nvmlReturn_t status = enter(__func__, address && device);
    if (status != NVML_SUCCESS)
        return status;
    unsigned count = session_gpus(gpus);
    for (unsigned i = 0; i < count; i++)
        if (hardware_text(gpus[i], "pci.bus_id", text) && same_address(text, address))
            return found(__func__, gpus[i], device);
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *address, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(address, device);
}

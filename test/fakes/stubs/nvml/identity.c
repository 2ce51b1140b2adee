/* Who a device is. */
#include <stdio.h>
#include <string.h>

#include "library.h"

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid, unsigned int length)
{
    struct device device;
    char text[HARDWARE_TEXT];
    nvmlReturn_t status = enter_device(__func__, handle, uuid, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (device.gi < 0)
        return read_text(device, "uuid", uuid, length);
    if (!hardware_mig_uuid(device.gpu, (unsigned)device.gi, (unsigned)device.ci, text))
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_text(text, uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name, unsigned int length)
{
    struct device device;
    struct mig_instance instance;
    struct mig_compute compute;
    char model[HARDWARE_TEXT] = "", profile[64], text[256];
    nvmlReturn_t status = enter_device(__func__, handle, name, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (device.gi < 0)
        return read_text(device, "name", name, length);
    if (!find_compute(device.gpu, (unsigned)device.gi, (unsigned)device.ci, &instance, &compute))
        return NVML_ERROR_INVALID_ARGUMENT;
    hardware_text(device.gpu, "name", model);
    compute_name(instance.profile, compute.slices, profile, sizeof profile);
    snprintf(text, sizeof text, "%s MIG %s", model, profile);
    return give_text(text, name, length);
}

/* MIG devices are counted by themselves on each GPU. */
nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned int *index)
{
    struct device device;
    nvmlReturn_t status = enter_device(__func__, handle, index, &device);
    if (status != NVML_SUCCESS)
        return status;
    *index = 0;
    if (device.gi < 0) {
        int gpus[HARDWARE_MOST_GPUS];
        unsigned count = session_gpus(gpus);
        while (*index < count && gpus[*index] != device.gpu)
            ++*index;
        return NVML_SUCCESS;
    }
    struct mig_instance instances[MIG_MOST_INSTANCES];
    unsigned count = hardware_mig_instances(device.gpu, instances);
    for (unsigned i = 0; i < count; i++)
        for (unsigned c = 0; c < instances[i].compute_count; c++, ++*index)
            if (instances[i].id == (unsigned)device.gi && instances[i].compute[c].id == (unsigned)device.ci)
                return NVML_SUCCESS;
    return NVML_ERROR_INVALID_ARGUMENT;
}

#define TEXT_OF_GPU(function, key)                                             \
    nvmlReturn_t function(nvmlDevice_t handle, char *text, unsigned int length) \
    {                                                                           \
        struct device device;                                                   \
        nvmlReturn_t status = enter_gpu(__func__, handle, text, &device);       \
        return status == NVML_SUCCESS ? read_text(device, key, text, length) : status; \
    }

TEXT_OF_GPU(nvmlDeviceGetSerial, "serial")
TEXT_OF_GPU(nvmlDeviceGetBoardPartNumber, "board_part_number")
TEXT_OF_GPU(nvmlDeviceGetVbiosVersion, "vbios")

/* A number that a GPU has, of a type of NVML. */
#define NUMBER_OF_GPU(function, type, key)                                 \
    nvmlReturn_t function(nvmlDevice_t handle, type *number)               \
    {                                                                      \
        struct device device;                                              \
        unsigned value = 0;                                                \
        nvmlReturn_t status = enter_gpu(__func__, handle, number, &device); \
        if (status == NVML_SUCCESS)                                        \
            status = read_uint(device, key, 1, &value);                    \
        if (status == NVML_SUCCESS)                                        \
            *number = (type)value;                                         \
        return status;                                                     \
    }

NUMBER_OF_GPU(nvmlDeviceGetModuleId, unsigned, "module_id")
NUMBER_OF_GPU(nvmlDeviceGetMinorNumber, unsigned, "minor")
NUMBER_OF_GPU(nvmlDeviceGetBrand, nvmlBrandType_t, "brand")
NUMBER_OF_GPU(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, "architecture")
NUMBER_OF_GPU(nvmlDeviceGetNumGpuCores, unsigned, "cores")
NUMBER_OF_GPU(nvmlDeviceGetDisplayActive, nvmlEnableState_t, "display_active")
NUMBER_OF_GPU(nvmlDeviceGetDisplayMode, nvmlEnableState_t, "display_active")
NUMBER_OF_GPU(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, "pcie.generation")
NUMBER_OF_GPU(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, "pcie.generation")
NUMBER_OF_GPU(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, "pcie.generation")
NUMBER_OF_GPU(nvmlDeviceGetMaxPcieLinkWidth, unsigned, "pcie.width")
NUMBER_OF_GPU(nvmlDeviceGetCurrPcieLinkWidth, unsigned, "pcie.width")

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t handle, int *major, int *minor)
{
    struct device device;
    unsigned first, second;
    nvmlReturn_t status = enter_device(__func__, handle, major && minor, &device);
    if (status != NVML_SUCCESS)
        return status;
    device.gi = -1; /* a partition has its GPU's */
    if (read_uint(device, "cuda.major", 1, &first) || read_uint(device, "cuda.minor", 1, &second))
        return NVML_ERROR_NOT_SUPPORTED;
    *major = (int)first;
    *minor = (int)second;
    return NVML_SUCCESS;
}

/* Both versions of the structure have the same bytes under other names. A text
 * that is longer than its field is cut off, without an end. */
nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t handle, nvmlPlatformInfo_t *info)
{
    struct device device;
    char chassis[HARDWARE_TEXT];
    unsigned slot = 0, tray = 0, module = 0;
    nvmlReturn_t status = enter_gpu(__func__, handle, info, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (info->version != nvmlPlatformInfo_v1 && info->version != nvmlPlatformInfo_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!hardware_text(device.gpu, "platform.chassis_serial", chassis))
        return NVML_ERROR_NOT_SUPPORTED;
    read_uint(device, "platform.slot", 1, &slot);
    read_uint(device, "platform.tray", 1, &tray);
    read_uint(device, "module_id", 1, &module);
    *info = (nvmlPlatformInfo_t){
        .version = info->version, .slotNumber = (unsigned char)slot, .trayIndex = (unsigned char)tray, .moduleId = (unsigned char)module,
    };
    size_t length = strlen(chassis);
    memcpy(info->chassisSerialNumber, chassis, length < sizeof info->chassisSerialNumber ? length : sizeof info->chassisSerialNumber);
    return NVML_SUCCESS;
}

void locate(const char *address, nvmlPciInfo_t *pci)
{
    unsigned function;
    memset(pci, 0, sizeof *pci);
    sscanf(address, "%x:%x:%x.%x", &pci->domain, &pci->bus, &pci->device, &function);
    snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", pci->domain, pci->bus & 0xff, pci->device & 0xff);
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0", pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
    struct device device;
    char address[HARDWARE_TEXT];
    nvmlReturn_t status = enter_gpu(__func__, handle, pci, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (!hardware_text(device.gpu, "pci.bus_id", address))
        return NVML_ERROR_NOT_SUPPORTED;
    locate(address, pci);
    read_uint(device, "pci.device_id", 1, &pci->pciDeviceId);
    read_uint(device, "pci.subsystem_id", 1, &pci->pciSubSystemId);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
    return nvmlDeviceGetPciInfo_v3(handle, pci);
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t handle, nvmlPciInfoExt_t *pci)
{
    nvmlPciInfo_t plain;
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, pci, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (pci->version != nvmlPciInfoExt_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    status = nvmlDeviceGetPciInfo_v3(handle, &plain);
    if (status != NVML_SUCCESS)
        return status;
    *pci = (nvmlPciInfoExt_t){
        .version = nvmlPciInfoExt_v1, .domain = plain.domain, .bus = plain.bus, .device = plain.device,
        .pciDeviceId = plain.pciDeviceId, .pciSubSystemId = plain.pciSubSystemId, .baseClass = 3, .subClass = 2,
    };
    memcpy(pci->busId, plain.busId, sizeof pci->busId);
    return NVML_SUCCESS;
}

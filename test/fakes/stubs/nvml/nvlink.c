/* NVLinks, one by one. What they transfer are field values. */
#include <stdio.h>

#include "library.h"

/* What lies at the other end of a link: a scripted GPU (remote.gpu), what
 * remote.bus_id says, or one of four switches. */
static nvmlReturn_t remote_address(struct device device, unsigned link, char address[HARDWARE_TEXT])
{
    char key[HARDWARE_TEXT];
    unsigned peer;
    snprintf(key, sizeof key, "nvlink.%u.remote.gpu", link);
    if (read_uint(device, key, 1, &peer) == NVML_SUCCESS)
        return hardware_text((int)peer, "pci.bus_id", address) ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
    snprintf(key, sizeof key, "nvlink.%u.remote.bus_id", link);
    if (!hardware_text(device.gpu, key, address))
        snprintf(address, HARDWARE_TEXT, "00000000:%02X:00.0", 5 + link % 4);
    return NVML_SUCCESS;
}

static nvmlReturn_t has_link(struct device device, unsigned link)
{
    unsigned count;
    if (link >= NVML_NVLINK_MAX_LINKS)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (read_uint(device, "nvlink.count", 1, &count) != NVML_SUCCESS)
        return NVML_ERROR_NOT_SUPPORTED;
    return link < count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t handle, unsigned int link, nvmlPciInfo_t *pci)
{
    struct device device;
    char address[HARDWARE_TEXT];
    nvmlReturn_t status = enter_gpu(__func__, handle, pci, &device);
    if (status == NVML_SUCCESS)
        status = has_link(device, link);
    if (status == NVML_SUCCESS)
        status = remote_address(device, link, address);
    if (status == NVML_SUCCESS)
        locate(address, pci);
    return status;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t handle, unsigned int link, nvmlIntNvLinkDeviceType_t *type)
{
    struct device device;
    char key[HARDWARE_TEXT];
    unsigned number;
    nvmlReturn_t status = enter_gpu(__func__, handle, type, &device);
    if (status == NVML_SUCCESS)
        status = has_link(device, link);
    if (status != NVML_SUCCESS)
        return status;
    snprintf(key, sizeof key, "nvlink.%u.remote.gpu", link);
    if (read_uint(device, key, 1, &number) == NVML_SUCCESS) {
        *type = NVML_NVLINK_DEVICE_TYPE_GPU;
        return NVML_SUCCESS;
    }
    snprintf(key, sizeof key, "nvlink.%u.remote.type", link);
    status = read_uint(device, key, 1, &number);
    if (status == NVML_SUCCESS)
        *type = (nvmlIntNvLinkDeviceType_t)number;
    return status;
}

/* Whether an active link goes from one GPU to the other, or to the switches, to which
 * the other has one too. */
static bool linked(struct device from, struct device to)
{
    unsigned count = 0;
    if (read_uint(from, "nvlink.count", 1, &count) != NVML_SUCCESS)
        return false;
    for (unsigned link = 0; link < count; link++) {
        char key[HARDWARE_TEXT];
        unsigned state = 1, peer;
        snprintf(key, sizeof key, "nvlink.%u.state", link);
        read_uint(from, key, 1, &state);
        snprintf(key, sizeof key, "nvlink.%u.remote.gpu", link);
        if (state && (read_uint(from, key, 1, &peer) != NVML_SUCCESS || (int)peer == to.gpu))
            return true;
    }
    return false;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t handle, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t index, nvmlGpuP2PStatus_t *status)
{
    struct device device, peer;
    nvmlReturn_t code = enter_gpu(__func__, handle, status, &device);
    if (code == NVML_SUCCESS)
        code = enter_gpu(__func__, other, status, &peer);
    if (code != NVML_SUCCESS)
        return code;
    if (index != NVML_P2P_CAPS_INDEX_NVLINK)
        return NVML_ERROR_NOT_SUPPORTED;
    *status = linked(device, peer) && linked(peer, device) ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}

/* A number of one link. */
static nvmlReturn_t link_number(const char *function, nvmlDevice_t handle, unsigned link, const char *rest, bool valid, unsigned long long *value)
{
    struct device device;
    char key[HARDWARE_TEXT];
    nvmlReturn_t status = enter_gpu(function, handle, valid, &device);
    if (status == NVML_SUCCESS)
        status = has_link(device, link);
    if (status != NVML_SUCCESS)
        return status;
    snprintf(key, sizeof key, "nvlink.%u.%s", link, rest);
    return read_ull(device, key, 1, value);
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned int link, nvmlEnableState_t *active)
{
    unsigned long long value = 0;
    nvmlReturn_t status = link_number(__func__, handle, link, "state", active, &value);
    if (status == NVML_SUCCESS)
        *active = (nvmlEnableState_t)value;
    return status;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned int link, unsigned int *version)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, version, &device);
    if (status == NVML_SUCCESS)
        status = has_link(device, link);
    return status == NVML_SUCCESS ? read_uint(device, "nvlink.version", 1, version) : status;
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t handle, unsigned int link, nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long *value)
{
    static const char *const keys[] = {
        [NVML_NVLINK_ERROR_DL_REPLAY] = "errors.replay",
        [NVML_NVLINK_ERROR_DL_RECOVERY] = "errors.recovery",
        [NVML_NVLINK_ERROR_DL_CRC_FLIT] = "errors.crc_flit",
        [NVML_NVLINK_ERROR_DL_CRC_DATA] = "errors.crc_data",
        [NVML_NVLINK_ERROR_DL_ECC_DATA] = "errors.ecc",
    };
    if ((unsigned)counter >= sizeof keys / sizeof *keys)
        return enter(__func__, false);
    return link_number(__func__, handle, link, keys[counter], value, value);
}

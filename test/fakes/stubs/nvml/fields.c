/* Field values: numbers that are asked for by id, many in one call. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "library.h"

enum scope {
    WHOLE,      /* of the GPU */
    LINK,       /* of the link that scopeId names; its sum over the links for UINT_MAX */
    EVERY_LINK, /* the sum over the links */
};

enum nvlink {
    ANY,
    OLDER, /* up to NVLink 4 */
    NEWER, /* from NVLink 5 on */
};

/* How a field is read. */
struct field {
    unsigned id;
    const char *key;
    double scale;
    nvmlValueType_t type;
    enum scope scope;
    enum nvlink nvlink;
};

#define UINT NVML_VALUE_TYPE_UNSIGNED_INT
#define ULL NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
#define KIB (1.0 / 1024)

static const struct field fields[] = {
    {NVML_FI_DEV_ECC_CURRENT, "ecc.mode", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_ECC_PENDING, "ecc.mode", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_ECC_SBE_VOL_TOTAL, "ecc.volatile.corrected", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_ECC_DBE_VOL_TOTAL, "ecc.volatile.uncorrected", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_ECC_SBE_AGG_TOTAL, "ecc.corrected", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_ECC_DBE_AGG_TOTAL, "ecc.uncorrected", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_RETIRED_SBE, "retired_pages.sbe", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_RETIRED_DBE, "retired_pages.dbe", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_RETIRED_PENDING, "retired_pages.pending", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, "errors.crc_flit", 1, ULL, EVERY_LINK, OLDER},
    {NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, "errors.crc_data", 1, ULL, EVERY_LINK, OLDER},
    {NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL, "errors.replay", 1, ULL, EVERY_LINK, OLDER},
    {NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, "errors.recovery", 1, ULL, EVERY_LINK, OLDER},
    {NVML_FI_DEV_PERF_POLICY_POWER, "throttle.power_cap", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_THERMAL, "throttle.thermal", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_SYNC_BOOST, "throttle.sync_boost", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT, "throttle.board_limit", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION, "throttle.low_utilization", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_RELIABILITY, "throttle.reliability", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_TOTAL_APP_CLOCKS, "throttle.app_clocks", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_PERF_POLICY_TOTAL_BASE_CLOCKS, "throttle.base_clocks", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_MEMORY_TEMP, "temperature.memory", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION, "energy", 1000, ULL, WHOLE, ANY},
    {NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, "nvlink.speed", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_NVLINK_LINK_COUNT, "nvlink.count", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_PCIE_REPLAY_COUNTER, "pcie.replays", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, "tx_bytes", KIB, ULL, LINK, OLDER},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, "rx_bytes", KIB, ULL, LINK, OLDER},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_TX, "tx_bytes", KIB, ULL, LINK, OLDER},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_RAW_RX, "rx_bytes", KIB, ULL, LINK, OLDER},
    {NVML_FI_DEV_REMAPPED_COR, "remapped_rows.corrected", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_REMAPPED_UNC, "remapped_rows.uncorrected", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_REMAPPED_PENDING, "remapped_rows.pending", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_REMAPPED_FAILURE, "remapped_rows.failure", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_TOTAL, "errors.ecc", 1, ULL, EVERY_LINK, OLDER},
    {NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, "errors.replay", 1, ULL, LINK, OLDER},
    {NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, "errors.recovery", 1, ULL, LINK, OLDER},
    {NVML_FI_DEV_NVLINK_ERROR_DL_CRC, "errors.crc_flit", 1, ULL, LINK, OLDER},
    {NVML_FI_DEV_NVLINK_GET_STATE, "state", 1, UINT, LINK, ANY},
    {NVML_FI_DEV_POWER_AVERAGE, "power.draw", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_POWER_INSTANT, "power.draw", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_POWER_MIN_LIMIT, "power.min_limit", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_POWER_MAX_LIMIT, "power.max_limit", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_POWER_DEFAULT_LIMIT, "power.default_limit", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_POWER_CURRENT_LIMIT, "power.limit", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_ENERGY, "energy", 1000, ULL, WHOLE, ANY},
    {NVML_FI_DEV_POWER_REQUESTED_LIMIT, "power.limit", 1000, UINT, WHOLE, ANY},
    {NVML_FI_DEV_PCIE_COUNT_TX_BYTES, "pcie.tx_bytes", 1, UINT, WHOLE, ANY}, /* these wrap */
    {NVML_FI_DEV_PCIE_COUNT_RX_BYTES, "pcie.rx_bytes", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES, "tx_bytes", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES, "rx_bytes", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS, "errors.malformed", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS, "errors.overrun", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, "errors.receive", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS, "errors.remote", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS, "errors.general", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS, "errors.integrity", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS, "errors.discards", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS, "errors.recovered", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, "errors.unrecovered", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS, "errors.recovery", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, "errors.effective", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, "errors.symbol", 1, ULL, LINK, NEWER},
    {NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, "recovery_action", 1, UINT, WHOLE, ANY},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN, "throttle.sw_thermal", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN, "throttle.hw_thermal", 1, ULL, WHOLE, ANY},
    {NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN, "throttle.hw_power_brake", 1, ULL, WHOLE, ANY},
};

/* The fields of single links have ids in two rows, up to link 5 and from 6 on. */
static const struct {
    unsigned first, sixth;
    const char *key;
} numbered[] = {
    {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6, "errors.crc_flit"},
    {NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_L6, "errors.crc_data"},
    {NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6, "errors.replay"},
    {NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6, "errors.recovery"},
    {NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_ECC_DATA_ERROR_COUNT_L6, "errors.ecc"},
};

static const struct field *find_field(unsigned id)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].id == id)
            return &fields[i];
    return NULL;
}

/* Like find_field, for the fields of single links. */
static bool find_numbered(unsigned id, struct field *field, unsigned *link)
{
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
        if (id >= numbered[i].first && id < numbered[i].first + 6)
            *link = id - numbered[i].first;
        else if (id >= numbered[i].sixth && id < numbered[i].sixth + 6)
            *link = id - numbered[i].sixth + 6;
        else
            continue;
        *field = (struct field){id, numbered[i].key, 1, ULL, LINK, OLDER};
        return true;
    }
    return false;
}

static unsigned links_of(struct device device)
{
    unsigned count = 0;
    read_uint(device, "nvlink.count", 1, &count);
    return count;
}

static nvmlReturn_t of_link(struct device device, const struct field *field, unsigned link, unsigned long long *number)
{
    char key[HARDWARE_TEXT];
    if (link >= links_of(device))
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(key, sizeof key, "nvlink.%u.%s", link, field->key);
    return read_ull(device, key, field->scale, number);
}

static nvmlReturn_t of_all_links(struct device device, const struct field *field, unsigned long long *number)
{
    char key[HARDWARE_TEXT];
    snprintf(key, sizeof key, "nvlink.%s", field->key);
    if (read_ull(device, key, field->scale, number) == NVML_SUCCESS)
        return NVML_SUCCESS;
    unsigned long long one;
    unsigned links = links_of(device), known = 0;
    *number = 0;
    for (unsigned link = 0; link < links; link++)
        if (of_link(device, field, link, &one) == NVML_SUCCESS) {
            *number += one;
            known++;
        }
    return known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

static nvmlReturn_t read_as(struct device device, const struct field *field, unsigned scope, unsigned long long *number)
{
    unsigned version = 0;
    if (field->scope == WHOLE)
        return read_ull(device, field->key, field->scale, number);
    read_uint(device, "nvlink.version", 1, &version);
    bool newer = version >= NVML_NVLINK_VERSION_5_0;
    if (field->nvlink == (newer ? OLDER : NEWER) || links_of(device) == 0)
        return NVML_ERROR_NOT_SUPPORTED;
    if (field->scope == EVERY_LINK || scope == UINT32_MAX)
        return of_all_links(device, field, number);
    return of_link(device, field, scope, number);
}

void read_field(struct device device, nvmlFieldValue_t *value)
{
    struct field single;
    unsigned scope = value->scopeId;
    unsigned long long number = 0;
    const struct field *field = find_field(value->fieldId);
    if (!field && find_numbered(value->fieldId, &single, &scope))
        field = &single;
    memset(&value->value, 0, sizeof value->value);
    if (value->fieldId == 0 || value->fieldId >= NVML_FI_MAX)
        value->nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
    else if (!field || device.gi >= 0)
        value->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    else
        value->nvmlReturn = read_as(device, field, scope, &number);
    if (value->nvmlReturn != NVML_SUCCESS)
        return;
    value->valueType = field->type;
    if (field->type == UINT)
        value->value.uiVal = (unsigned)number;
    else
        value->value.ullVal = number;
}

/* What hardware.conf says of a field that fails: return.field.<id>. */
static bool field_fault(struct device device, nvmlFieldValue_t *value)
{
    char name[32], code[HARDWARE_TEXT];
    snprintf(name, sizeof name, "field.%u", value->fieldId);
    if (!hardware_fault(device.gpu, "", name, code))
        return false;
    value->nvmlReturn = parse_return(code);
    return true;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count, nvmlFieldValue_t *values)
{
    struct device device;
    struct timespec now;
    nvmlReturn_t status = enter_device(__func__, handle, values && count > 0, &device);
    if (status != NVML_SUCCESS)
        return status;
    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < count; i++) {
        if (!field_fault(device, &values[i]))
            read_field(device, &values[i]);
        values[i].timestamp = (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
        values[i].latencyUsec = 10;
    }
    return NVML_SUCCESS;
}

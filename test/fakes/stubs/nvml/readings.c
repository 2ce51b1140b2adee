/* What is measured of a device, one function for each. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "library.h"

/* A number that a whole GPU has, times scale. */
#define READING(function, type, key, scale, read)                          \
    nvmlReturn_t function(nvmlDevice_t handle, type *value)                \
    {                                                                      \
        struct device device;                                              \
        nvmlReturn_t status = enter_gpu(__func__, handle, value, &device); \
        return status == NVML_SUCCESS ? read(device, key, scale, value) : status; \
    }

READING(nvmlDeviceGetPowerUsage, unsigned int, "power.draw", 1000, read_uint)
READING(nvmlDeviceGetEnforcedPowerLimit, unsigned int, "power.limit", 1000, read_uint)
READING(nvmlDeviceGetPowerManagementLimit, unsigned int, "power.limit", 1000, read_uint)
READING(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, "power.default_limit", 1000, read_uint)
READING(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, "energy", 1000, read_ull)
READING(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, "clocks_event_reasons", 1, read_ull)
READING(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, "clocks_event_reasons", 1, read_ull)
READING(nvmlDeviceGetPcieReplayCounter, unsigned int, "pcie.replays", 1, read_uint)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t handle, unsigned int *least, unsigned int *most)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, least && most, &device);
    if (status == NVML_SUCCESS)
        status = read_uint(device, "power.min_limit", 1000, least);
    return status == NVML_SUCCESS ? read_uint(device, "power.max_limit", 1000, most) : status;
}

nvmlReturn_t nvmlDeviceGetPowerManagementMode(nvmlDevice_t handle, nvmlEnableState_t *mode)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, mode, &device);
    if (status == NVML_SUCCESS)
        *mode = NVML_FEATURE_ENABLED;
    return status;
}

static unsigned long long reasons_of(struct device device)
{
    unsigned long long reasons = nvmlClocksEventReasonGpuIdle | nvmlClocksEventReasonApplicationsClocksSetting |
                                 nvmlClocksEventReasonSwPowerCap | nvmlClocksThrottleReasonHwSlowdown |
                                 nvmlClocksEventReasonSyncBoost | nvmlClocksEventReasonSwThermalSlowdown |
                                 nvmlClocksThrottleReasonHwThermalSlowdown | nvmlClocksThrottleReasonHwPowerBrakeSlowdown |
                                 nvmlClocksEventReasonDisplayClockSetting;
    read_ull(device, "clocks_event_reasons.supported", 1, &reasons);
    return reasons;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksEventReasons(nvmlDevice_t handle, unsigned long long *reasons)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, reasons, &device);
    if (status == NVML_SUCCESS)
        *reasons = reasons_of(device);
    return status;
}

nvmlReturn_t nvmlDeviceGetSupportedClocksThrottleReasons(nvmlDevice_t handle, unsigned long long *reasons)
{
    return nvmlDeviceGetSupportedClocksEventReasons(handle, reasons);
}

static nvmlReturn_t clock_of(struct device device, const char *prefix, nvmlClockType_t type, unsigned *megahertz)
{
    static const char *const names[] = {
        [NVML_CLOCK_GRAPHICS] = "graphics",
        [NVML_CLOCK_SM] = "sm",
        [NVML_CLOCK_MEM] = "memory",
        [NVML_CLOCK_VIDEO] = "video",
    };
    char key[HARDWARE_TEXT];
    if ((unsigned)type >= sizeof names / sizeof *names)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(key, sizeof key, "%s%s", prefix, names[type]);
    return read_uint(device, key, 1, megahertz);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t handle, nvmlClockType_t type, unsigned int *megahertz)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, megahertz, &device);
    return status == NVML_SUCCESS ? clock_of(device, "clocks.", type, megahertz) : status;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t handle, nvmlClockType_t type, unsigned int *megahertz)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, megahertz, &device);
    return status == NVML_SUCCESS ? clock_of(device, "clocks.max.", type, megahertz) : status;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t handle, nvmlTemperatureSensors_t sensor, unsigned int *celsius)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, celsius && sensor == NVML_TEMPERATURE_GPU, &device);
    return status == NVML_SUCCESS ? read_uint(device, "temperature.gpu", 1, celsius) : status;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t handle, nvmlTemperature_t *temperature)
{
    struct device device;
    unsigned celsius;
    nvmlReturn_t status = enter_gpu(__func__, handle, temperature, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (temperature->version != nvmlTemperature_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (temperature->sensorType != NVML_TEMPERATURE_GPU)
        return NVML_ERROR_INVALID_ARGUMENT;
    status = read_uint(device, "temperature.gpu", 1, &celsius);
    if (status == NVML_SUCCESS)
        temperature->temperature = (int)celsius;
    return status;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t handle, nvmlTemperatureThresholds_t threshold, unsigned int *celsius)
{
    static const char *const keys[] = {
        [NVML_TEMPERATURE_THRESHOLD_SHUTDOWN] = "temperature.gpu.shutdown",
        [NVML_TEMPERATURE_THRESHOLD_SLOWDOWN] = "temperature.gpu.slowdown",
        [NVML_TEMPERATURE_THRESHOLD_MEM_MAX] = "temperature.memory.max",
        [NVML_TEMPERATURE_THRESHOLD_GPU_MAX] = "temperature.gpu.max",
    };
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, celsius && (unsigned)threshold < NVML_TEMPERATURE_THRESHOLD_COUNT, &device);
    if (status != NVML_SUCCESS)
        return status;
    if ((unsigned)threshold >= sizeof keys / sizeof *keys)
        return NVML_ERROR_NOT_SUPPORTED;
    return read_uint(device, keys[threshold], 1, celsius);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t handle, nvmlPstates_t *state)
{
    struct device device;
    unsigned value;
    nvmlReturn_t status = enter_gpu(__func__, handle, state, &device);
    if (status == NVML_SUCCESS)
        status = read_uint(device, "pstate", 1, &value);
    if (status == NVML_SUCCESS)
        *state = (nvmlPstates_t)value;
    return status;
}

nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t handle, nvmlPstates_t *state)
{
    return nvmlDeviceGetPerformanceState(handle, state);
}

/* A GPU in MIG mode has no utilization. */
static nvmlReturn_t enter_undivided(const char *function, nvmlDevice_t handle, bool valid, struct device *device)
{
    nvmlReturn_t status = enter_gpu(function, handle, valid, device);
    return status == NVML_SUCCESS && hardware_mig_enabled(device->gpu) ? NVML_ERROR_NOT_SUPPORTED : status;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t handle, nvmlUtilization_t *utilization)
{
    struct device device;
    nvmlReturn_t status = enter_undivided(__func__, handle, utilization, &device);
    if (status == NVML_SUCCESS)
        status = read_uint(device, "utilization.gpu", 1, &utilization->gpu);
    return status == NVML_SUCCESS ? read_uint(device, "utilization.memory", 1, &utilization->memory) : status;
}

#define ENGINE(function, key)                                                                    \
    nvmlReturn_t function(nvmlDevice_t handle, unsigned int *percent, unsigned int *period)      \
    {                                                                                            \
        struct device device;                                                                    \
        nvmlReturn_t status = enter_undivided(__func__, handle, percent && period, &device);     \
        if (status != NVML_SUCCESS)                                                              \
            return status;                                                                       \
        *period = 167000; /* microseconds */                                                     \
        return read_uint(device, key, 1, percent);                                               \
    }

ENGINE(nvmlDeviceGetEncoderUtilization, "utilization.encoder")
ENGINE(nvmlDeviceGetDecoderUtilization, "utilization.decoder")
ENGINE(nvmlDeviceGetJpgUtilization, "utilization.jpeg")
ENGINE(nvmlDeviceGetOfaUtilization, "utilization.ofa")

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t handle, nvmlPcieUtilCounter_t counter, unsigned int *value)
{
    struct device device;
    nvmlReturn_t status = enter_undivided(__func__, handle, value && (unsigned)counter < NVML_PCIE_UTIL_COUNT, &device);
    if (status != NVML_SUCCESS)
        return status;
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* it measures so long */
    return read_uint(device, counter == NVML_PCIE_UTIL_TX_BYTES ? "pcie.tx_rate" : "pcie.rx_rate", 1, value);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t handle, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *violation)
{
    static const char *const keys[NVML_PERF_POLICY_COUNT] = {
        [NVML_PERF_POLICY_POWER] = "throttle.power_cap",
        [NVML_PERF_POLICY_THERMAL] = "throttle.thermal",
        [NVML_PERF_POLICY_SYNC_BOOST] = "throttle.sync_boost",
        [NVML_PERF_POLICY_BOARD_LIMIT] = "throttle.board_limit",
        [NVML_PERF_POLICY_LOW_UTILIZATION] = "throttle.low_utilization",
        [NVML_PERF_POLICY_RELIABILITY] = "throttle.reliability",
        [NVML_PERF_POLICY_TOTAL_APP_CLOCKS] = "throttle.app_clocks",
        [NVML_PERF_POLICY_TOTAL_BASE_CLOCKS] = "throttle.base_clocks",
    };
    struct device device;
    struct timespec now;
    nvmlReturn_t status = enter_gpu(__func__, handle, violation && (unsigned)policy < NVML_PERF_POLICY_COUNT && keys[policy], &device);
    if (status != NVML_SUCCESS)
        return status;
    clock_gettime(CLOCK_REALTIME, &now);
    violation->referenceTime = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
    return read_ull(device, keys[policy], 1, &violation->violationTime);
}

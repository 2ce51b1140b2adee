/* GPU performance monitoring: activities between two samples. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "library.h"

/* The activities, in the order in which a sample holds them. */
static const struct activity {
    unsigned metric;
    unsigned count; /* engines of the same kind have metrics in a row */
    const char *key;
} activities[] = {
    {NVML_GPM_METRIC_GRAPHICS_UTIL, 1, "profiling.graphics"},
    {NVML_GPM_METRIC_SM_UTIL, 1, "profiling.sm"},
    {NVML_GPM_METRIC_SM_OCCUPANCY, 1, "profiling.sm_occupancy"},
    {NVML_GPM_METRIC_INTEGER_UTIL, 1, "profiling.integer"},
    {NVML_GPM_METRIC_ANY_TENSOR_UTIL, 1, "profiling.tensor"},
    {NVML_GPM_METRIC_DRAM_BW_UTIL, 1, "profiling.dram"},
    {NVML_GPM_METRIC_FP64_UTIL, 1, "profiling.fp64"},
    {NVML_GPM_METRIC_FP32_UTIL, 1, "profiling.fp32"},
    {NVML_GPM_METRIC_FP16_UTIL, 1, "profiling.fp16"},
    {NVML_GPM_METRIC_NVDEC_0_UTIL, 7, "profiling.decoder"},
    {NVML_GPM_METRIC_NVJPG_0_UTIL, 7, "profiling.jpeg"},
    {NVML_GPM_METRIC_NVOFA_0_UTIL, 1, "profiling.ofa"},
};

/* The counters whose growth is reported in MiB/s. */
static const struct activity rates[] = {
    {NVML_GPM_METRIC_PCIE_TX_PER_SEC, 1, "pcie.tx_bytes"},
    {NVML_GPM_METRIC_PCIE_RX_PER_SEC, 1, "pcie.rx_bytes"},
    {NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, 1, "nvlink.tx_bytes"},
    {NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, 1, "nvlink.rx_bytes"},
};

#define ACTIVITIES (sizeof activities / sizeof *activities)
#define RATES (sizeof rates / sizeof *rates)

struct nvmlGpmSample_st {
    struct nvmlGpmSample_st *next;
    bool taken;
    int gpu, gi;
    double at; /* seconds */
    bool active[ACTIVITIES];
    double activity[ACTIVITIES];
    bool counted[RATES];
    double counter[RATES];
};

static struct {
    pthread_mutex_t lock;
    struct nvmlGpmSample_st *first;
} samples = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Where a sample hangs in the list; NULL: there is no such sample. */
static struct nvmlGpmSample_st **place_of(nvmlGpmSample_t handle)
{
    for (struct nvmlGpmSample_st **at = &samples.first; *at; at = &(*at)->next)
        if (*at == handle.handle)
            return at;
    return NULL;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *handle)
{
    nvmlReturn_t status = enter(__func__, handle);
    if (status != NVML_SUCCESS)
        return status;
    pthread_mutex_lock(&samples.lock);
    struct nvmlGpmSample_st *sample = live_open(LIVE_GPM_SAMPLES) ? calloc(1, sizeof *sample) : NULL;
    if (sample) {
        sample->next = samples.first;
        samples.first = sample;
        handle->handle = sample;
    }
    pthread_mutex_unlock(&samples.lock);
    return sample ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t handle)
{
    nvmlReturn_t status = enter(__func__, true);
    if (status != NVML_SUCCESS)
        return status;
    pthread_mutex_lock(&samples.lock);
    struct nvmlGpmSample_st **at = place_of(handle);
    if (at) {
        struct nvmlGpmSample_st *gone = *at;
        *at = gone->next;
        live_close(LIVE_GPM_SAMPLES);
        free(gone);
    }
    pthread_mutex_unlock(&samples.lock);
    return at ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static void fill(struct nvmlGpmSample_st *sample, int gpu, int gi)
{
    struct timespec now;
    char key[HARDWARE_TEXT], prefix[32] = "";
    if (gi >= 0)
        snprintf(prefix, sizeof prefix, "mig.%d.", gi);
    clock_gettime(CLOCK_MONOTONIC, &now);
    sample->at = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    sample->gpu = gpu;
    sample->gi = gi;
    sample->taken = true;
    for (size_t i = 0; i < ACTIVITIES; i++) {
        snprintf(key, sizeof key, "%s%s", prefix, activities[i].key);
        sample->active[i] = hardware_number(gpu, key, &sample->activity[i]);
    }
    for (size_t i = 0; i < RATES; i++)
        sample->counted[i] = gi < 0 && hardware_number(gpu, rates[i].key, &sample->counter[i]);
}

/* A GPU that has no GPM says so. */
static nvmlReturn_t get(int gpu, int gi, nvmlGpmSample_t handle)
{
    if (!hardware_flag(gpu, "gpm"))
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&samples.lock);
    struct nvmlGpmSample_st **at = place_of(handle);
    if (at)
        fill(*at, gpu, gi);
    pthread_mutex_unlock(&samples.lock);
    return at ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device_handle, nvmlGpmSample_t sample)
{
    struct device device;
    nvmlReturn_t status = enter_device(__func__, device_handle, sample.handle, &device);
    return status == NVML_SUCCESS ? get(device.gpu, device.gi, sample) : status;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device_handle, unsigned int gi, nvmlGpmSample_t sample)
{
    struct device device;
    struct mig_instance instance;
    nvmlReturn_t status = enter_gpu(__func__, device_handle, sample.handle, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (!hardware_mig_enabled(device.gpu))
        return NVML_ERROR_NOT_SUPPORTED;
    if (!find_instance(device.gpu, gi, &instance))
        return NVML_ERROR_INVALID_ARGUMENT;
    return get(device.gpu, (int)gi, sample);
}

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t handle, nvmlGpmSupport_t *support)
{
    struct device device;
    nvmlReturn_t status = enter_device(__func__, handle, support, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (support->version != NVML_GPM_SUPPORT_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    support->isSupportedDevice = hardware_flag(device.gpu, "gpm");
    return NVML_SUCCESS;
}

static bool includes(const struct activity *activity, unsigned metric)
{
    return metric >= activity->metric && metric < activity->metric + activity->count;
}

/* What has happened since the first sample is what the second one says. */
static void measure(nvmlGpmMetric_t *metric, const struct nvmlGpmSample_st *first, const struct nvmlGpmSample_st *second)
{
    metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    metric->value = 0;
    memset(&metric->metricInfo, 0, sizeof metric->metricInfo);
    for (size_t i = 0; i < ACTIVITIES; i++)
        if (includes(&activities[i], metric->metricId) && second->active[i]) {
            metric->nvmlReturn = NVML_SUCCESS;
            metric->value = 100 * second->activity[i];
        }
    for (size_t i = 0; i < RATES; i++)
        if (includes(&rates[i], metric->metricId) && first->counted[i] && second->counted[i]) {
            metric->nvmlReturn = NVML_SUCCESS;
            metric->value = (second->counter[i] - first->counter[i]) / (second->at - first->at) / (1 << 20);
        }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *request)
{
    nvmlReturn_t status = enter(__func__, request);
    if (status != NVML_SUCCESS)
        return status;
    if (request->version != NVML_GPM_METRICS_GET_VERSION)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    pthread_mutex_lock(&samples.lock);
    struct nvmlGpmSample_st **one = place_of(request->sample1), **two = place_of(request->sample2);
    const struct nvmlGpmSample_st *first = one ? *one : NULL, *second = two ? *two : NULL;
    bool valid = first && second && first->taken && second->taken && request->numMetrics <= NVML_GPM_METRIC_MAX &&
                 first->gpu == second->gpu && first->gi == second->gi && first->at < second->at;
    for (unsigned i = 0; valid && i < request->numMetrics; i++)
        measure(&request->metrics[i], first, second);
    pthread_mutex_unlock(&samples.lock);
    return valid ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* A client of libnvidia-ml in C, for what no binding does: missing arguments,
 * buffers that are too small, foreign handles, calls out of order, threads. Its
 * arguments are a library and what to do: "calls" prints each answer, "threads"
 * prints what is wrong, and ends with 1 if anything is;
 * "version" prints the driver's. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvml.h>

static void *library;

/* A function of the library. */
#define F(name) ((__typeof__(name) *)find(#name))

static void *find(const char *name)
{
    void *function = dlsym(library, name);
    if (!function) {
        printf("%s is missing\n", name);
        exit(1);
    }
    return function;
}

/* Calls a function and prints its return code. */
#define CALL(name, ...) printf("%s(%s) %d\n", #name, #__VA_ARGS__, (int)F(name)(__VA_ARGS__))
#define SHOW(value) printf("  %s %llu\n", #value, (unsigned long long)(value))

static const nvmlDevice_t no_device = {NULL}, foreign_device = {(void *)16};

static void call_before(void)
{
    unsigned count = 7;
    CALL(nvmlDeviceGetCount_v2, &count);
    CALL(nvmlShutdown);
    SHOW(count);
    printf("%s\n", F(nvmlErrorString)(NVML_ERROR_UNINITIALIZED));
}

static nvmlDevice_t call_devices(void)
{
    unsigned count = 7;
    nvmlDevice_t first = {NULL}, again = {NULL};
    char text[96] = "";
    CALL(nvmlDeviceGetCount_v2, NULL);
    CALL(nvmlDeviceGetCount_v2, &count);
    SHOW(count);
    CALL(nvmlDeviceGetHandleByIndex_v2, 0, NULL);
    CALL(nvmlDeviceGetHandleByIndex_v2, 99, &first);
    CALL(nvmlDeviceGetHandleByIndex_v2, 0, &first);
    CALL(nvmlDeviceGetUUID, first, NULL, 96);
    CALL(nvmlDeviceGetUUID, first, text, 5);
    CALL(nvmlDeviceGetUUID, first, text, sizeof text);
    printf("  %s\n", text);
    CALL(nvmlDeviceGetHandleByUUID, text, &again);
    SHOW(again.handle == first.handle);
    CALL(nvmlDeviceGetHandleByUUID, "GPU \"none\" \\ \n", &again);
    CALL(nvmlDeviceGetHandleByUUID, NULL, &again);
    CALL(nvmlDeviceGetUUID, foreign_device, text, sizeof text);
    CALL(nvmlSystemGetDriverVersion, text, sizeof text);
    printf("  %s\n", text);
    return first;
}

static void call_readings(nvmlDevice_t device)
{
    unsigned power = 7;
    nvmlMemory_v2_t memory = {.version = nvmlMemory_v2}, wrong = {.version = 99};
    nvmlUtilization_t rates = {0, 0};
    nvmlFieldValue_t fields[2] = {{.fieldId = NVML_FI_DEV_NVLINK_LINK_COUNT}, {.fieldId = 9999}};
    CALL(nvmlDeviceGetPowerUsage, device, NULL);
    CALL(nvmlDeviceGetPowerUsage, no_device, &power);
    CALL(nvmlDeviceGetPowerUsage, foreign_device, &power);
    SHOW(power);
    CALL(nvmlDeviceGetPowerUsage, device, &power);
    SHOW(power);
    CALL(nvmlDeviceGetMemoryInfo_v2, device, &memory);
    SHOW(memory.total);
    CALL(nvmlDeviceGetMemoryInfo_v2, device, &wrong);
    CALL(nvmlDeviceGetUtilizationRates, device, &rates);
    SHOW(rates.gpu);
    SHOW(rates.memory);
    CALL(nvmlDeviceGetFieldValues, device, 2, fields);
    for (int i = 0; i < 2; i++) {
        SHOW(fields[i].fieldId);
        SHOW(fields[i].nvmlReturn);
    }
    SHOW(fields[0].value.uiVal);
    CALL(nvmlDeviceGetFieldValues, device, 0, fields);
    CALL(nvmlDeviceGetFieldValues, device, -1, fields);
    CALL(nvmlDeviceGetFieldValues, device, 2, NULL);
}

static void call_processes(nvmlDevice_t device)
{
    unsigned count = 0;
    nvmlProcessInfo_t infos[4];
    nvmlProcessUtilizationSample_t samples[4];
    CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, NULL);
    SHOW(count);
    count = 1;
    CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, infos);
    SHOW(count);
    count = 4;
    CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, infos);
    SHOW(count);
    for (unsigned i = 0; i < count && i < 4; i++)
        SHOW(infos[i].usedGpuMemory);
    CALL(nvmlDeviceGetComputeRunningProcesses_v3, device, NULL, infos);
    CALL(nvmlDeviceGetProcessUtilization, device, samples, NULL, 0);
    count = 0;
    CALL(nvmlDeviceGetProcessUtilization, device, NULL, &count, 0);
    count = 4;
    CALL(nvmlDeviceGetProcessUtilization, device, samples, &count, 0);
    SHOW(count);
    SHOW(count > 0 ? samples[0].smUtil : 0);
}

static void call_mig(void)
{
    nvmlDevice_t parent = {NULL}, mig = {NULL};
    nvmlGpuInstance_t instance = {NULL};
    nvmlGpuInstanceInfo_t info;
    unsigned id = 77;
    memset(&info, 0, sizeof info);
    CALL(nvmlDeviceGetHandleByIndex_v2, 1, &parent);
    CALL(nvmlDeviceGetMigDeviceHandleByIndex, parent, 0, &mig);
    CALL(nvmlDeviceGetMigDeviceHandleByIndex, parent, 6, &mig);
    CALL(nvmlDeviceGetGpuInstanceId, mig, &id);
    SHOW(id);
    CALL(nvmlDeviceGetGpuInstanceById, parent, id, &instance);
    CALL(nvmlGpuInstanceGetInfo, instance, NULL);
    CALL(nvmlGpuInstanceGetInfo, instance, &info);
    SHOW(info.placement.start);
    SHOW(info.device.handle == parent.handle);
}

static void call_gpm(nvmlDevice_t device)
{
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION}, wrong = {.version = 9};
    static nvmlGpmMetricsGet_t request = {.version = NVML_GPM_METRICS_GET_VERSION, .numMetrics = 1};
    nvmlGpmSample_t none = {NULL};
    CALL(nvmlGpmQueryDeviceSupport, device, &support);
    SHOW(support.isSupportedDevice);
    CALL(nvmlGpmQueryDeviceSupport, device, &wrong);
    CALL(nvmlGpmSampleAlloc, NULL);
    CALL(nvmlGpmSampleAlloc, &request.sample1);
    CALL(nvmlGpmSampleAlloc, &request.sample2);
    request.metrics[0].metricId = NVML_GPM_METRIC_SM_UTIL;
    CALL(nvmlGpmMetricsGet, &request);
    CALL(nvmlGpmSampleGet, device, none);
    CALL(nvmlGpmSampleGet, device, request.sample1);
    CALL(nvmlGpmSampleGet, device, request.sample2);
    CALL(nvmlGpmMetricsGet, NULL);
    CALL(nvmlGpmMetricsGet, &request);
    SHOW(request.metrics[0].nvmlReturn);
    SHOW(request.metrics[0].value);
    request.version = 9;
    CALL(nvmlGpmMetricsGet, &request);
    CALL(nvmlGpmSampleFree, request.sample1);
    CALL(nvmlGpmSampleFree, request.sample1);
    CALL(nvmlGpmSampleFree, request.sample2);
    CALL(nvmlGpmSampleFree, none);
}

static void call_events(nvmlDevice_t device)
{
    nvmlEventSet_t set = {NULL}, none = {NULL};
    nvmlEventData_t event;
    unsigned long long types = 0;
    CALL(nvmlDeviceGetSupportedEventTypes, device, &types);
    SHOW(types);
    CALL(nvmlEventSetCreate, NULL);
    CALL(nvmlEventSetCreate, &set);
    CALL(nvmlDeviceRegisterEvents, device, nvmlEventTypeXidCriticalError, none);
    CALL(nvmlDeviceRegisterEvents, device, nvmlEventTypeXidCriticalError, set);
    CALL(nvmlEventSetWait_v2, set, NULL, 5);
    CALL(nvmlEventSetWait_v2, none, &event, 5);
    CALL(nvmlEventSetWait_v2, set, &event, 5);
    CALL(nvmlEventSetFree, set);
    CALL(nvmlEventSetFree, set);
}

static int call_all(void)
{
    call_before();
    CALL(nvmlInit_v2);
    nvmlDevice_t device = call_devices();
    call_readings(device);
    call_processes(device);
    call_mig();
    call_gpm(device);
    call_events(device);
    CALL(nvmlShutdown);
    CALL(nvmlShutdown);
    return 0;
}

#define THREADS 8
#define ROUNDS 200

static int failures;

#define MUST(call)                                             \
    do {                                                       \
        int code = (int)(call);                                \
        if (code != NVML_SUCCESS) {                            \
            printf("%s: %d\n", #call, code);                   \
            __atomic_fetch_add(&failures, 1, __ATOMIC_SEQ_CST); \
        }                                                      \
    } while (0)

static void *call_often(void *unused)
{
    nvmlDevice_t device;
    MUST(F(nvmlDeviceGetHandleByIndex_v2)(0, &device));
    for (int i = 0; i < ROUNDS; i++) {
        nvmlGpmSample_t sample;
        nvmlEventSet_t set;
        nvmlEventData_t event;
        unsigned power;
        MUST(F(nvmlGpmSampleAlloc)(&sample));
        MUST(F(nvmlGpmSampleGet)(device, sample));
        MUST(F(nvmlGpmSampleFree)(sample));
        MUST(F(nvmlDeviceGetPowerUsage)(device, &power));
        if (i % 50)
            continue;
        MUST(F(nvmlEventSetCreate)(&set));
        if (F(nvmlEventSetWait_v2)(set, &event, 1) != NVML_ERROR_TIMEOUT)
            MUST(NVML_ERROR_UNKNOWN);
        MUST(F(nvmlEventSetFree)(set));
    }
    return unused;
}

static int call_from_threads(void)
{
    pthread_t threads[THREADS];
    MUST(F(nvmlInit_v2)());
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, call_often, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MUST(F(nvmlShutdown)());
    return failures > 0;
}

static int print_version(void)
{
    char text[96] = "";
    MUST(F(nvmlInit_v2)());
    MUST(F(nvmlSystemGetDriverVersion)(text, sizeof text));
    MUST(F(nvmlShutdown)());
    printf("%s\n", text);
    return failures > 0;
}

int main(int count, char **arguments)
{
    if (count != 3 || !(library = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL))) {
        fprintf(stderr, "usage: %s LIBRARY calls|threads|version: %s\n", arguments[0], dlerror());
        return 2;
    }
    if (!strcmp(arguments[2], "version"))
        return print_version();
    return strcmp(arguments[2], "threads") ? call_all() : call_from_threads();
}

/* The processes that use a GPU: those that are scripted and that the caller's
 * pid namespace has, according to /proc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "library.h"

/* A process that there is not for the caller is left out, as the driver does
 * with those of other pid namespaces. Nothing is translated. */
static bool visible(unsigned pid)
{
    char path[32];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u", pid);
    return !stat(path, &status);
}

/* The processes of a GPU that the caller sees, of one kind, or of any where it
 * is NULL; to be freed. */
static struct hardware_process *processes_of(int gpu, const char *kind, unsigned *count)
{
    unsigned all;
    struct hardware_process *processes = hardware_processes(gpu, &all);
    *count = 0;
    for (unsigned i = 0; i < all; i++)
        if ((!kind || !strcmp(kind, processes[i].kind)) && visible(processes[i].pid))
            processes[(*count)++] = processes[i];
    return processes;
}

/* The caller's buffer holds *count, which becomes how many there are. */
static nvmlReturn_t list(int gpu, const char *kind, unsigned *count, nvmlProcessInfo_t *infos)
{
    unsigned room = infos ? *count : 0;
    struct hardware_process *processes = processes_of(gpu, kind, count);
    for (unsigned i = 0; i < *count && i < room; i++)
        infos[i] = (nvmlProcessInfo_t){
            .pid = processes[i].pid, .usedGpuMemory = processes[i].memory,
            .gpuInstanceId = UINT32_MAX, .computeInstanceId = UINT32_MAX,
        };
    free(processes);
    return *count <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* A MIG device has none of the processes, which are those of whole GPUs. */
#define PROCESSES(function, kind)                                                                      \
    nvmlReturn_t function(nvmlDevice_t handle, unsigned int *count, nvmlProcessInfo_t *infos)          \
    {                                                                                                  \
        struct device device;                                                                          \
        nvmlReturn_t status = enter_device(__func__, handle, count, &device);                          \
        if (status == NVML_SUCCESS && device.gi >= 0)                                                  \
            *count = 0;                                                                                \
        return status == NVML_SUCCESS && device.gi < 0 ? list(device.gpu, kind, count, infos) : status; \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "compute")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "graphics")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mps")

static unsigned long long unix_microseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* Whatever does anything is sampled when it is asked for: there is always a
 * sample that is newer than the last one, and none of the future. Callers ask
 * how many there are by a call without a buffer. */
static nvmlReturn_t sample(int gpu, unsigned *count, nvmlProcessUtilizationSample_t *samples, unsigned long long last_seen)
{
    unsigned long long now = unix_microseconds();
    unsigned room = samples ? *count : 0, all;
    struct hardware_process *processes = processes_of(gpu, NULL, &all);
    *count = 0;
    for (unsigned i = 0; i < all && now > last_seen; i++) {
        if (!processes[i].utilization)
            continue;
        if (*count < room)
            samples[*count] = (nvmlProcessUtilizationSample_t){
                .pid = processes[i].pid, .timeStamp = now, .smUtil = processes[i].utilization,
            };
        ++*count;
    }
    free(processes);
    if (!*count)
        return NVML_ERROR_NOT_FOUND;
    return *count <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t handle, nvmlProcessUtilizationSample_t *samples,
                                             unsigned int *count, unsigned long long last_seen)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, count, &device);
    if (status != NVML_SUCCESS)
        return status;
    return hardware_mig_enabled(device.gpu) ? NVML_ERROR_NOT_SUPPORTED : sample(device.gpu, count, samples, last_seen);
}

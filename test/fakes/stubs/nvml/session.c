/* Initializing, faults, handles of devices. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

struct nvmlDevice_st {
    char unused;
};

static struct nvmlDevice_st gpu_objects[HARDWARE_MOST_GPUS];
static struct nvmlDevice_st mig_objects[HARDWARE_MOST_GPUS][MOST_GI][MIG_MOST_COMPUTE];

static struct {
    pthread_mutex_t lock;
    unsigned users;
    unsigned count;
    int gpus[HARDWARE_MOST_GPUS];
    char driver[HARDWARE_TEXT]; /* version of the driver that this library belongs to */
} session = {.lock = PTHREAD_MUTEX_INITIALIZER};

static nvmlReturn_t fault(int gpu, const char *prefix, const char *function)
{
    char code[HARDWARE_TEXT];
    return hardware_fault(gpu, prefix, function, code) ? parse_return(code) : NVML_SUCCESS;
}

/* Whether the driver is not the one that was there when the library was first
 * initialized, to which this belongs as long as it is mapped. */
static bool outdated(void)
{
    char driver[HARDWARE_TEXT] = "";
    if (!hardware_flag(HARDWARE_NODE, "driver_upgraded") || !hardware_text(HARDWARE_NODE, "driver_version", driver))
        return false;
    pthread_mutex_lock(&session.lock);
    bool other = session.driver[0] && strcmp(session.driver, driver);
    pthread_mutex_unlock(&session.lock);
    return other;
}

/* One more user. A session that attaches no GPU stays so until a later user
 * forces it; the handle of a GPU attaches that one. */
static void begin(unsigned flags)
{
    hardware_attach(HARDWARE_NODE);
    bool attach = session.users == 0 ? !(flags & NVML_INIT_FLAG_NO_ATTACH) : flags & NVML_INIT_FLAG_FORCE_INIT;
    for (unsigned i = 0; attach && i < session.count; i++)
        hardware_attach(session.gpus[i]);
    session.users++;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    char driver[HARDWARE_TEXT] = "";
    if (!hardware_present())
        return NVML_ERROR_DRIVER_NOT_LOADED;
    nvmlReturn_t status = outdated() ? NVML_ERROR_LIB_RM_VERSION_MISMATCH : fault(HARDWARE_NODE, "", "nvmlInit_v2");
    if (status != NVML_SUCCESS)
        return status;
    hardware_text(HARDWARE_NODE, "driver_version", driver);
    pthread_mutex_lock(&session.lock);
    if (session.users == 0) {
        int gpus = hardware_gpus();
        session.count = 0;
        for (int gpu = 0; gpu < gpus; gpu++)
            if (hardware_there(gpu))
                session.gpus[session.count++] = gpu;
    }
    if (session.users == 0 && session.count == 0 && !(flags & NVML_INIT_FLAG_NO_GPUS))
        status = NVML_ERROR_GPU_NOT_FOUND;
    else if (!live_open(LIVE_SESSIONS))
        status = NVML_ERROR_INSUFFICIENT_RESOURCES;
    else
        begin(flags);
    if (!session.driver[0])
        memcpy(session.driver, driver, sizeof driver);
    pthread_mutex_unlock(&session.lock);
    return status;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvmlReturn_t nvmlInit(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t status = NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&session.lock);
    if (session.users > 0) {
        if (--session.users == 0)
            hardware_detach();
        live_close(LIVE_SESSIONS);
        status = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&session.lock);
    return status;
}

bool session_running(void)
{
    pthread_mutex_lock(&session.lock);
    bool running = session.users > 0;
    pthread_mutex_unlock(&session.lock);
    return running;
}

unsigned session_gpus(int gpus[HARDWARE_MOST_GPUS])
{
    pthread_mutex_lock(&session.lock);
    unsigned count = session.count;
    memcpy(gpus, session.gpus, sizeof session.gpus);
    pthread_mutex_unlock(&session.lock);
    return count;
}

static bool in_session(int gpu)
{
    int gpus[HARDWARE_MOST_GPUS];
    unsigned count = session_gpus(gpus);
    for (unsigned i = 0; i < count; i++)
        if (gpus[i] == gpu)
            return true;
    return false;
}

nvmlDevice_t gpu_handle(int gpu) { return (nvmlDevice_t){&gpu_objects[gpu]}; }
nvmlDevice_t mig_handle(int gpu, unsigned gi, unsigned ci) { return (nvmlDevice_t){&mig_objects[gpu][gi][ci]}; }

bool device_of(nvmlDevice_t handle, struct device *device)
{
    uintptr_t at = (uintptr_t)handle.handle, gpus = (uintptr_t)gpu_objects, migs = (uintptr_t)mig_objects;
    struct mig_instance instance;
    struct mig_compute compute;
    if (at >= gpus && at < gpus + sizeof gpu_objects) {
        *device = (struct device){.gpu = (int)(at - gpus), .gi = -1, .ci = -1};
        return in_session(device->gpu);
    }
    if (at < migs || at >= migs + sizeof mig_objects)
        return false;
    int number = (int)(at - migs);
    device->ci = number % MIG_MOST_COMPUTE;
    device->gi = number / MIG_MOST_COMPUTE % MOST_GI;
    device->gpu = number / MIG_MOST_COMPUTE / MOST_GI;
    return in_session(device->gpu) &&
           find_compute(device->gpu, (unsigned)device->gi, (unsigned)device->ci, &instance, &compute);
}

nvmlReturn_t enter(const char *function, bool valid)
{
    if (!session_running())
        return NVML_ERROR_UNINITIALIZED;
    if (outdated())
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    return valid ? fault(HARDWARE_NODE, "", function) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t enter_device(const char *function, nvmlDevice_t handle, bool valid, struct device *device)
{
    char prefix[HARDWARE_TEXT] = "";
    if (!session_running())
        return NVML_ERROR_UNINITIALIZED;
    if (outdated())
        return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
    if (!valid || !device_of(handle, device))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (device->gi >= 0)
        snprintf(prefix, sizeof prefix, "mig.%d.", device->gi);
    nvmlReturn_t status = fault(device->gpu, prefix, function);
    if (status == NVML_SUCCESS)
        status = fault(HARDWARE_NODE, "", function);
    if (status == NVML_SUCCESS && (!hardware_there(device->gpu) || hardware_lost(device->gpu)))
        status = NVML_ERROR_GPU_IS_LOST;
    return status;
}

nvmlReturn_t enter_gpu(const char *function, nvmlDevice_t handle, bool valid, struct device *device)
{
    nvmlReturn_t status = enter_device(function, handle, valid, device);
    return status == NVML_SUCCESS && device->gi >= 0 ? NVML_ERROR_NOT_SUPPORTED : status;
}

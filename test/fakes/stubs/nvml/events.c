/* Events: Xids that are appended while a set is registered. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "library.h"

#define MOST_SETS 256

/* A set that has been freed is used again by another one only after all
 * others, so that an old handle differs from a new one for long. */
struct nvmlEventSet_st {
    bool open;
    uint64_t born;
    int64_t loads; /* of the driver, when it was made */
    bool registered[HARDWARE_MOST_GPUS];
    size_t since[HARDWARE_MOST_GPUS]; /* number of the first Xid that is to be reported */
    size_t next;
};

static struct {
    pthread_mutex_t lock;
    uint64_t born;
    struct nvmlEventSet_st sets[MOST_SETS];
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct nvmlEventSet_st *oldest_free(void)
{
    struct nvmlEventSet_st *oldest = NULL;
    for (unsigned i = 0; i < MOST_SETS; i++)
        if (!events.sets[i].open && (!oldest || events.sets[i].born < oldest->born))
            oldest = &events.sets[i];
    return oldest;
}

/* The set of a handle, NULL where it is none or has been freed. */
static struct nvmlEventSet_st *set_of(nvmlEventSet_t handle)
{
    for (unsigned i = 0; i < MOST_SETS; i++)
        if (&events.sets[i] == handle.handle)
            return events.sets[i].open ? &events.sets[i] : NULL;
    return NULL;
}

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *handle)
{
    nvmlReturn_t status = enter(__func__, handle);
    if (status != NVML_SUCCESS)
        return status;
    pthread_mutex_lock(&events.lock);
    struct nvmlEventSet_st *set = oldest_free();
    if (!set || !live_open(LIVE_EVENT_SETS)) {
        status = NVML_ERROR_INSUFFICIENT_RESOURCES;
    } else {
        *set = (struct nvmlEventSet_st){.open = true, .born = ++events.born, .loads = driver_loads()};
        handle->handle = set;
    }
    pthread_mutex_unlock(&events.lock);
    return status;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t handle)
{
    nvmlReturn_t status = enter(__func__, true);
    if (status != NVML_SUCCESS && status != NVML_ERROR_LIB_RM_VERSION_MISMATCH) /* it needs no driver */
        return status;
    pthread_mutex_lock(&events.lock);
    struct nvmlEventSet_st *set = set_of(handle);
    if (set) {
        set->open = false;
        live_close(LIVE_EVENT_SETS);
    }
    pthread_mutex_unlock(&events.lock);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static unsigned long long supported(struct device device)
{
    unsigned long long types = nvmlEventTypeNone;
    read_ull(device, "event_types", 1, &types);
    return types;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t handle, unsigned long long *types)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, types, &device);
    if (status == NVML_SUCCESS)
        *types = supported(device);
    return status;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t handle, unsigned long long types, nvmlEventSet_t set_handle)
{
    struct device device;
    nvmlReturn_t status = enter_gpu(__func__, handle, types, &device);
    if (status != NVML_SUCCESS)
        return status;
    if (types & ~supported(device))
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&events.lock);
    struct nvmlEventSet_st *set = set_of(set_handle);
    if (set && (types & nvmlEventTypeXidCriticalError) && !set->registered[device.gpu]) {
        set->registered[device.gpu] = true;
        set->since[device.gpu] = hardware_xid_count();
    }
    pthread_mutex_unlock(&events.lock);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* Takes the next Xid that is to be reported to a set. */
static bool take(struct nvmlEventSet_st *set, nvmlEventData_t *data)
{
    struct hardware_xid xid;
    for (; hardware_xids(set->next, &xid, 1) == 1; set->next++) {
        if (xid.gpu < 0 || xid.gpu >= HARDWARE_MOST_GPUS || !set->registered[xid.gpu] || set->next < set->since[xid.gpu])
            continue;
        set->next++;
        *data = (nvmlEventData_t){
            .device = gpu_handle(xid.gpu),
            .eventType = nvmlEventTypeXidCriticalError,
            .eventData = (unsigned long long)xid.code,
            .gpuInstanceId = (unsigned)xid.gi, /* -1 is 0xFFFFFFFF: none */
            .computeInstanceId = (unsigned)xid.ci,
        };
        return true;
    }
    return false;
}

struct wait {
    nvmlEventSet_t set;
    nvmlEventData_t *data;
};

/* One look at a set: what nvmlEventSetWait answers if it does not go on. */
static nvmlReturn_t look(void *argument)
{
    struct wait *wait = argument;
    if (!session_running())
        return NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&events.lock);
    struct nvmlEventSet_st *set = set_of(wait->set);
    nvmlReturn_t status = !set ? NVML_ERROR_INVALID_ARGUMENT
                          : set->loads != driver_loads() ? NVML_ERROR_UNKNOWN
                          : take(set, wait->data) ? NVML_SUCCESS : NVML_ERROR_TIMEOUT;
    pthread_mutex_unlock(&events.lock);
    return status;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t handle, nvmlEventData_t *data, unsigned int timeout)
{
    nvmlReturn_t status = enter(__func__, data);
    if (status != NVML_SUCCESS) {
        wait_moment();
        return status;
    }
    return wait_for(look, &(struct wait){handle, data}, timeout);
}

/* The older structure ends before the instances. */
nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t handle, nvmlEventData_t *data, unsigned int timeout)
{
    nvmlEventData_t whole;
    nvmlReturn_t status = nvmlEventSetWait_v2(handle, data ? &whole : NULL, timeout);
    if (status == NVML_SUCCESS)
        memcpy(data, &whole, offsetof(nvmlEventData_t, gpuInstanceId));
    return status;
}

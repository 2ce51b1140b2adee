/* Events of the system: GPUs that are bound to the driver and unbound while a
 * set is registered. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

#define MOST_SETS 64

/* As with the sets of events.c, a handle is not used again soon. */
struct nvmlSystemEventSet_st {
    bool open;
    uint64_t born;
    int64_t loads; /* of the driver, when it was made */
    unsigned long long types;
    size_t next; /* number of the first binding that is to be reported */
};

static struct {
    pthread_mutex_t lock;
    uint64_t born;
    struct nvmlSystemEventSet_st sets[MOST_SETS];
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct nvmlSystemEventSet_st *oldest_free(void)
{
    struct nvmlSystemEventSet_st *oldest = NULL;
    for (unsigned i = 0; i < MOST_SETS; i++)
        if (!events.sets[i].open && (!oldest || events.sets[i].born < oldest->born))
            oldest = &events.sets[i];
    return oldest;
}

/* The set of a handle, NULL where it is none or has been freed. */
static struct nvmlSystemEventSet_st *set_of(nvmlSystemEventSet_t handle)
{
    for (unsigned i = 0; i < MOST_SETS; i++)
        if (&events.sets[i] == handle.handle)
            return events.sets[i].open ? &events.sets[i] : NULL;
    return NULL;
}

/* Begins a call with a request of a version. */
#define ENTER(request, expected)                                                  \
    do {                                                                          \
        nvmlReturn_t entered = enter(__func__, request);                          \
        if (entered == NVML_SUCCESS && (request)->version != (expected))          \
            entered = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;                       \
        if (entered != NVML_SUCCESS)                                              \
            return entered;                                                       \
    } while (0)

nvmlReturn_t nvmlSystemEventSetCreate(nvmlSystemEventSetCreateRequest_t *request)
{
    ENTER(request, nvmlSystemEventSetCreateRequest_v1);
    nvmlReturn_t status = NVML_SUCCESS;
    pthread_mutex_lock(&events.lock);
    struct nvmlSystemEventSet_st *set = oldest_free();
    if (!set || !live_open(LIVE_SYSTEM_EVENT_SETS)) {
        status = NVML_ERROR_INSUFFICIENT_RESOURCES;
    } else {
        *set = (struct nvmlSystemEventSet_st){.open = true, .born = ++events.born, .loads = driver_loads()};
        request->set.handle = set;
    }
    pthread_mutex_unlock(&events.lock);
    return status;
}

nvmlReturn_t nvmlSystemEventSetFree(nvmlSystemEventSetFreeRequest_t *request)
{
    nvmlReturn_t status = enter(__func__, request);
    if (status != NVML_SUCCESS && status != NVML_ERROR_LIB_RM_VERSION_MISMATCH) /* it needs no driver */
        return status;
    if (request->version != nvmlSystemEventSetFreeRequest_v1)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    pthread_mutex_lock(&events.lock);
    struct nvmlSystemEventSet_st *set = set_of(request->set);
    if (set) {
        set->open = false;
        live_close(LIVE_SYSTEM_EVENT_SETS);
    }
    pthread_mutex_unlock(&events.lock);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlSystemRegisterEvents(nvmlSystemRegisterEventRequest_t *request)
{
    const unsigned long long known = nvmlSystemEventTypeGpuDriverUnbind | nvmlSystemEventTypeGpuDriverBind;
    ENTER(request, nvmlSystemRegisterEventRequest_v1);
    if (request->eventTypes & ~known)
        return NVML_ERROR_NOT_SUPPORTED;
    pthread_mutex_lock(&events.lock);
    struct nvmlSystemEventSet_st *set = set_of(request->set);
    if (set && !set->types)
        set->next = hardware_binding_count();
    if (set)
        set->types |= request->eventTypes;
    pthread_mutex_unlock(&events.lock);
    return set ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

/* The id of a GPU: domain, bus and device of its address. */
static unsigned gpu_id(int gpu)
{
    char address[HARDWARE_TEXT] = "";
    unsigned domain = 0, bus = 0, device = 0;
    hardware_text(gpu, "pci.bus_id", address);
    sscanf(address, "%x:%x:%x", &domain, &bus, &device);
    return domain << 16 | bus << 8 | device;
}

/* Takes the next events that are to be reported to a set. */
static unsigned take(struct nvmlSystemEventSet_st *set, nvmlSystemEventData_v1_t *data, unsigned size)
{
    struct hardware_binding binding;
    unsigned count = 0;
    for (; count < size && set->types && hardware_binding(set->next, &binding); set->next++) {
        unsigned long long type = binding.bound ? nvmlSystemEventTypeGpuDriverBind : nvmlSystemEventTypeGpuDriverUnbind;
        if (set->types & type)
            data[count++] = (nvmlSystemEventData_v1_t){.eventType = type, .gpuId = gpu_id(binding.gpu)};
    }
    return count;
}

/* One look at a set: what nvmlSystemEventSetWait answers if it does not go on. */
static nvmlReturn_t look(void *argument)
{
    nvmlSystemEventSetWaitRequest_t *request = argument;
    nvmlReturn_t status = NVML_ERROR_TIMEOUT;
    if (!session_running())
        return NVML_ERROR_UNINITIALIZED;
    pthread_mutex_lock(&events.lock);
    struct nvmlSystemEventSet_st *set = set_of(request->set);
    if (!set)
        status = NVML_ERROR_INVALID_ARGUMENT;
    else if (set->loads != driver_loads())
        status = NVML_ERROR_UNKNOWN;
    else if ((request->numEvent = take(set, request->data, request->dataSize)))
        status = NVML_SUCCESS;
    pthread_mutex_unlock(&events.lock);
    return status;
}

nvmlReturn_t nvmlSystemEventSetWait(nvmlSystemEventSetWaitRequest_t *request)
{
    nvmlReturn_t status = enter(__func__, request && request->data && request->dataSize);
    if (status == NVML_SUCCESS && request->version != nvmlSystemEventSetWaitRequest_v1)
        status = NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (status != NVML_SUCCESS) {
        wait_moment();
        return status;
    }
    request->numEvent = 0;
    return wait_for(look, request, request->timeoutms);
}

/* What the parts of the stub libnvidia-ml share. */
#ifndef STUB_NVML_LIBRARY_H
#define STUB_NVML_LIBRARY_H

/* The functions of nvml.h are all that the library shows. */
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#pragma GCC visibility push(default)
#include <nvml.h>
#pragma GCC visibility pop

#include <stdbool.h>
#include <stdint.h>

#include "hardware.h"

/* What a handle of a device means: a GPU, or a MIG device where gi is not
 * negative. Handles point into fixed arrays, so that a foreign or outdated one
 * is recognized without looking at it. */
struct device {
    int gpu;
    int gi, ci;
};

/* Calls begin by one of these. They block while a fault says so and answer
 * what a fault, or the state of library and hardware, says; NVML_SUCCESS: go
 * on. `valid` is whether the other arguments are right. */
nvmlReturn_t enter(const char *function, bool valid);
nvmlReturn_t enter_gpu(const char *function, nvmlDevice_t handle, bool valid, struct device *device);  /* a MIG device is NOT_SUPPORTED */
nvmlReturn_t enter_device(const char *function, nvmlDevice_t handle, bool valid, struct device *device);

/* The GPUs that were there when the library was initialized, in order. */
unsigned session_gpus(int gpus[HARDWARE_MOST_GPUS]);
bool session_running(void);

nvmlDevice_t gpu_handle(int gpu);
nvmlDevice_t mig_handle(int gpu, unsigned gi, unsigned ci);
/* Takes a handle apart. False: it is none, or no longer. */
bool device_of(nvmlDevice_t handle, struct device *device);

/* Values of a device, NVML_ERROR_NOT_SUPPORTED where it has none. Numbers are
 * the script's times scale, cut to whole ones. */
nvmlReturn_t read_text(struct device device, const char *key, char *text, unsigned length);
nvmlReturn_t read_number(struct device device, const char *key, double *value);
nvmlReturn_t read_uint(struct device device, const char *key, double scale, unsigned *value);
nvmlReturn_t read_ull(struct device device, const char *key, double scale, unsigned long long *value);

/* Fills in an address, as the script spells it. */
void locate(const char *address, nvmlPciInfo_t *pci);

/* Copies a text: NVML_ERROR_INSUFFICIENT_SIZE where it does not fit. */
nvmlReturn_t give_text(const char *text, char *buffer, unsigned length);
/* A return code as hardware.conf spells it: GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST
 * or 15. */
nvmlReturn_t parse_return(const char *text);

/* GPU instances have ids below this. */
#define MOST_GI 15

nvmlGpuInstance_t instance_handle(int gpu, unsigned gi);
/* Begins a call on a GPU instance: a handle of one that is gone is invalid. */
nvmlReturn_t enter_instance(const char *function, nvmlGpuInstance_t handle, bool valid, int *gpu, struct mig_instance *instance);
nvmlReturn_t return_of(enum mig_result result);

/* The instance behind ids; false: there is none. */
bool find_instance(int gpu, unsigned gi, struct mig_instance *instance);
bool find_compute(int gpu, unsigned gi, unsigned ci, struct mig_instance *instance, struct mig_compute *compute);
const struct mig_profile *find_profile(int gpu, unsigned id);
/* "1g.10gb", or "1c.3g.40gb" of a part of an instance. */
void compute_name(const struct mig_profile *profile, unsigned slices, char *text, unsigned length);

/* What the field of an id is (nvmlDeviceGetFieldValues). */
void read_field(struct device device, nvmlFieldValue_t *value);

/* What the process has open. Tests read it, and may limit it by
 * node.limit.<kind>. */
enum live { LIVE_SESSIONS, LIVE_EVENT_SETS, LIVE_GPM_SAMPLES, LIVE_SYSTEM_EVENT_SETS, LIVE_KINDS };

/* Looks again and again until it is not NVML_ERROR_TIMEOUT or so many
 * milliseconds are over. */
nvmlReturn_t wait_for(nvmlReturn_t (*look)(void *), void *argument, unsigned milliseconds);
/* A moment between two looks: those who call again at once shall not spin. */
void wait_moment(void);
/* How often the driver has been loaded again: no event set survives that. */
int64_t driver_loads(void);

/* One more of a kind. False: that is beyond the limit. */
bool live_open(enum live kind);
void live_close(enum live kind);

#endif

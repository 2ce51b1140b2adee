/* What the parts of the stub libcuda share. */
#ifndef STUB_CUDA_DRIVER_H
#define STUB_CUDA_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "hardware.h"

/* What CUDA calls a device: a GPU, or a compute instance of one (gi >= 0). */
struct device {
    int gpu;
    int gi, ci;
    unsigned multiprocessors;
    uint64_t memory; /* bytes in all */
    char uuid[HARDWARE_TEXT];
    char name[2 * HARDWARE_TEXT];
};

/* Begins a call: returns the error that is planted for it, if any, or
 * CUDA_ERROR_NOT_INITIALIZED before cuInit. */
CUresult enter(const char *function);
/* The same for calls that need no cuInit. */
CUresult planted(const char *function);
/* The same for calls that need a context that is current; *context is it. */
CUresult enter_context(const char *function, struct context **context);

/* The device of a number; NULL: there is none. */
const struct device *device_at(CUdevice number);

/* A number of the device's GPU, or a default. */
double device_number(const struct device *device, const char *key, double otherwise);

/* The memory of the process that stands for bytes at an address of the device;
 * NULL: not all of them are allocated. */
unsigned char *memory_at(CUdeviceptr address, size_t bytes);

/* Adds work of so many simulated seconds to a context. */
void context_work(struct context *context, double seconds);
/* From now on every call with the context fails so, as after a fault. */
void context_fail(struct context *context, CUresult error);
const struct device *context_device(const struct context *context);

#endif

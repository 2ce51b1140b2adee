/* The part of the CUDA driver API that the stub imitates, declared by hand
 * from its public reference: the vendor's header is not needed to build it.
 * Names, numbers and layouts are those of the ABI; functions have the names
 * that the library exports, with their suffixes. */
#ifndef STUB_CUDA_ABI_H
#define STUB_CUDA_ABI_H

#include <stddef.h>

typedef enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct context *CUcontext;
typedef struct module *CUmodule;
typedef struct function *CUfunction;
typedef struct stream *CUstream;
typedef struct event *CUevent;

typedef struct {
    char bytes[16];
} CUuuid;

typedef enum {
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
} CUdevice_attribute;

typedef enum {
    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
} CUjit_option;

#define EXPORT __attribute__((visibility("default")))

EXPORT CUresult cuInit(unsigned flags);
EXPORT CUresult cuDriverGetVersion(int *version);
EXPORT CUresult cuGetErrorName(CUresult error, const char **name);
EXPORT CUresult cuGetErrorString(CUresult error, const char **text);

EXPORT CUresult cuDeviceGetCount(int *count);
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal);
EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device);
EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device);
EXPORT CUresult cuDeviceGetPCIBusId(char *address, int length, CUdevice device);
EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device);

EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice device);
EXPORT CUresult cuCtxDestroy_v2(CUcontext context);

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
EXPORT CUresult cuMemFree_v2(CUdeviceptr address);
EXPORT CUresult cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
EXPORT CUresult cuMemFreeHost(void *memory);
EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, CUjit_option *options, void **values);
EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               CUstream stream, void **parameters, void **extra);

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags);
EXPORT CUresult cuStreamSynchronize(CUstream stream);
EXPORT CUresult cuStreamDestroy_v2(CUstream stream);
EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags);
EXPORT CUresult cuEventRecord(CUevent event, CUstream stream);
EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end);
EXPORT CUresult cuEventDestroy_v2(CUevent event);

#endif

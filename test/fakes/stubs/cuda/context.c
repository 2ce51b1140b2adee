/* Contexts, streams and events. All streams of a context are one queue of
 * work, which has a clock of its own: it advances only with the work, so that
 * what events measure is exact. Who waits for a stream does so until the work
 * would have ended on a real clock. */
#include <stdlib.h>
#include <time.h>

#include "driver.h"

struct context {
    const struct device *device;
    pthread_mutex_t lock;
    double worked;    /* simulated seconds of all work */
    int64_t ends;     /* CLOCK_MONOTONIC, nanoseconds: when the work ends */
    CUresult failure; /* after a fault every call fails so */
};

struct stream {
    struct context *context;
};

struct event {
    double at; /* simulated seconds; negative: not recorded */
};

static _Thread_local struct context *current;

static int64_t monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

CUresult enter_context(const char *function, struct context **context)
{
    CUresult status = enter(function);
    *context = current;
    if (status != CUDA_SUCCESS)
        return status;
    if (!current)
        return CUDA_ERROR_INVALID_CONTEXT;
    pthread_mutex_lock(&current->lock);
    status = current->failure;
    pthread_mutex_unlock(&current->lock);
    return status;
}

const struct device *context_device(const struct context *context) { return context->device; }

void context_work(struct context *context, double seconds)
{
    pthread_mutex_lock(&context->lock);
    int64_t now = monotonic();
    context->worked += seconds;
    context->ends = (context->ends > now ? context->ends : now) + (int64_t)(seconds * 1e9);
    pthread_mutex_unlock(&context->lock);
}

void context_fail(struct context *context, CUresult error)
{
    pthread_mutex_lock(&context->lock);
    context->failure = error;
    pthread_mutex_unlock(&context->lock);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned flags, CUdevice number)
{
    CUresult status = enter(__func__);
    const struct device *device = device_at(number);
    if (status != CUDA_SUCCESS)
        return status;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~0xffU)
        return CUDA_ERROR_INVALID_VALUE;
    struct context *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    *context = current = made;
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult status = enter(__func__);
    if (status != CUDA_SUCCESS)
        return status;
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (current == context)
        current = NULL;
    status = context->failure;
    pthread_mutex_destroy(&context->lock);
    free(context);
    return status;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags > 1)
        return CUDA_ERROR_INVALID_VALUE;
    struct stream *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    *stream = made;
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&context->lock);
    int64_t ends = context->ends;
    pthread_mutex_unlock(&context->lock);
    struct timespec until = {.tv_sec = ends / 1000000000, .tv_nsec = ends % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0)
        ;
    return context->failure;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    free(stream);
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    struct event *made = calloc(1, sizeof *made);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->at = -1;
    *event = made;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!event || !stream)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&context->lock);
    event->at = context->worked;
    pthread_mutex_unlock(&context->lock);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    if (!start || !end || start->at < 0 || end->at < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&context->lock);
    bool ready = context->ends <= monotonic();
    pthread_mutex_unlock(&context->lock);
    if (!ready)
        return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((end->at - start->at) * 1e3);
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    struct context *context;
    CUresult status = enter_context(__func__, &context);
    if (status != CUDA_SUCCESS)
        return status;
    free(event);
    return CUDA_SUCCESS;
}

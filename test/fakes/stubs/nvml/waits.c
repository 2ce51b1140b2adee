/* Waits for what another process does. */
#include <time.h>

#include "library.h"

#define LOOK_EVERY 10 /* milliseconds */

static int64_t milliseconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_for(int64_t length)
{
    nanosleep(&(struct timespec){.tv_nsec = (length < LOOK_EVERY ? length : LOOK_EVERY) * 1000000}, NULL);
}

void wait_moment(void) { pause_for(LOOK_EVERY); }

nvmlReturn_t wait_for(nvmlReturn_t (*look)(void *), void *argument, unsigned milliseconds)
{
    int64_t end = milliseconds_now() + milliseconds;
    for (;;) {
        nvmlReturn_t status = look(argument);
        int64_t left = end - milliseconds_now();
        if (status != NVML_ERROR_TIMEOUT || left <= 0)
            return status;
        pause_for(left);
    }
}

int64_t driver_loads(void)
{
    int64_t loads = 0;
    hardware_integer(HARDWARE_NODE, "driver_loads", &loads);
    return loads;
}

/* What the process has open of the library, written to live.<pid>. */
#include <pthread.h>
#include <stdio.h>

#include "library.h"

static const char *const names[LIVE_KINDS] = {
    [LIVE_SESSIONS] = "limit.sessions",
    [LIVE_EVENT_SETS] = "limit.event_sets",
    [LIVE_GPM_SAMPLES] = "limit.gpm_samples",
    [LIVE_SYSTEM_EVENT_SETS] = "limit.system_event_sets",
};

static struct {
    pthread_mutex_t lock;
    unsigned open[LIVE_KINDS];
} live = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void report(void)
{
    char text[64];
    snprintf(text, sizeof text, "%u %u %u %u", live.open[LIVE_SESSIONS], live.open[LIVE_EVENT_SETS], live.open[LIVE_GPM_SAMPLES],
             live.open[LIVE_SYSTEM_EVENT_SETS]);
    hardware_report("live", text);
}

bool live_open(enum live kind)
{
    int64_t limit;
    pthread_mutex_lock(&live.lock);
    bool allowed = !hardware_integer(HARDWARE_NODE, names[kind], &limit) || (int64_t)live.open[kind] < limit;
    if (allowed) {
        live.open[kind]++;
        report();
    }
    pthread_mutex_unlock(&live.lock);
    return allowed;
}

void live_close(enum live kind)
{
    pthread_mutex_lock(&live.lock);
    live.open[kind]--;
    report();
    pthread_mutex_unlock(&live.lock);
}

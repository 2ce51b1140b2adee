#include <stdlib.h>

#include "internal.h"

/* The real engine asks the driver for events once a second. */
#define DEFAULT_INTERVAL 1000 /* milliseconds */
#define AT_ONCE 64

#define FIELD_XID 230

static int64_t interval(void)
{
    char text[32];
    long milliseconds = DEFAULT_INTERVAL;
    if (scripted_node_line("dcgm.event_interval_ms", text, sizeof text))
        milliseconds = atol(text);
    return milliseconds * 1000;
}

/* What was before the engine is not its: events are not kept by the driver. */
void events_start(struct engine *engine)
{
    struct xid xids[AT_ONCE];
    size_t count;
    while ((count = scripted_xids(engine->events_read, xids, AT_ONCE)))
        engine->events_read += count;
    engine->events_at = engine_now();
}

static void observe(struct engine *engine, const struct xid *xid, int64_t now)
{
    struct entity entity;
    struct place place = {.gpu = xid->gpu, .gi = xid->gi, .ci = xid->gi < 0 ? -1 : xid->ci};
    struct value value = {.type = DCGM_FT_INT64, .at = now, .i64 = xid->code};
    if (topology_entity(engine, place, &entity))
        watches_observe(engine, entity, FIELD_XID, &value);
}

void events_poll(struct engine *engine, int64_t now)
{
    struct xid xids[AT_ONCE];
    if (now - engine->events_at < interval())
        return;
    engine->events_at = now;
    size_t count = scripted_xids(engine->events_read, xids, AT_ONCE);
    for (size_t i = 0; i < count; i++)
        observe(engine, &xids[i], now + (int64_t)i); /* a moment each, so that each is a sample */
    engine->events_read += count;
}

#include "engine.h"

#include <stdlib.h>
#include <time.h>

#include "faults.h"
#include "internal.h"
#include "version.h"

/* How long the engine's thread sleeps at most, so that events and changes of
 * the hardware are seen though nothing is watched. */
#define LONGEST_SLEEP 50000 /* microseconds */

int64_t engine_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void sleep_until(struct engine *engine, int64_t when)
{
    struct timespec until = {.tv_sec = when / 1000000, .tv_nsec = (when % 1000000) * 1000};
    pthread_cond_timedwait(&engine->wake, &engine->lock, &until);
}

static void *run(void *argument)
{
    struct engine *engine = argument;
    pthread_mutex_lock(&engine->lock);
    while (!engine->stopping) {
        int64_t now = engine_now(), next = now + LONGEST_SLEEP;
        topology_refresh(engine);
        events_poll(engine, now);
        if (engine->automatic) {
            int64_t due = watches_update(engine, now);
            if (due && due < next)
                next = due;
        }
        sleep_until(engine, next);
    }
    pthread_mutex_unlock(&engine->lock);
    return NULL;
}

struct engine *engine_start(bool automatic)
{
    struct engine *engine = calloc(1, sizeof *engine);
    if (!engine || !scripted_present()) {
        free(engine);
        return NULL;
    }
    engine->automatic = automatic;
    engine->watches = watches_new();
    engine->topology = topology_new();
    pthread_mutex_init(&engine->lock, NULL);
    pthread_cond_init(&engine->wake, NULL);
    scripted_attach();
    topology_refresh(engine);
    events_start(engine);
    if (pthread_create(&engine->thread, NULL, run, engine))
        abort();
    return engine;
}

void engine_stop(struct engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    engine->stopping = true;
    pthread_cond_broadcast(&engine->wake);
    pthread_mutex_unlock(&engine->lock);
    pthread_join(engine->thread, NULL);

    scripted_detach();
    groups_drop_connection(engine, 0);
    watches_free(engine->watches);
    topology_free(engine->topology);
    pthread_cond_destroy(&engine->wake);
    pthread_mutex_destroy(&engine->lock);
    free(engine);
}

unsigned engine_connect(struct engine *engine, bool persist)
{
    unsigned id = 0;
    pthread_mutex_lock(&engine->lock);
    for (unsigned i = 0; i < MOST_CONNECTIONS && !id; i++)
        if (!engine->connections[i].used) {
            id = ++engine->next_connection;
            engine->connections[i] = (struct connection){.id = id, .persist = persist, .used = true};
        }
    pthread_mutex_unlock(&engine->lock);
    return id;
}

void engine_disconnect(struct engine *engine, unsigned connection)
{
    pthread_mutex_lock(&engine->lock);
    for (unsigned i = 0; i < MOST_CONNECTIONS; i++) {
        struct connection *known = &engine->connections[i];
        if (!known->used || known->id != connection)
            continue;
        known->used = false;
        if (!known->persist) {
            watches_drop_connection(engine, connection);
            groups_drop_connection(engine, connection);
        }
    }
    pthread_mutex_unlock(&engine->lock);
}

static dcgmReturn_t answer_inspect(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request;
    unsigned groups = 0, field_groups = 0, health = 0, connections = 0;
    for (unsigned i = 0; i < DCGM_MAX_NUM_GROUPS; i++) {
        groups += engine->groups.groups[i] != NULL;
        health += engine->groups.groups[i] && engine->groups.groups[i]->health;
    }
    for (unsigned i = 0; i < DCGM_MAX_NUM_FIELD_GROUPS; i++)
        field_groups += engine->groups.field_groups[i] != NULL;
    for (unsigned i = 0; i < MOST_CONNECTIONS; i++)
        connections += engine->connections[i].used;
    wire_put_u32(reply, groups);
    wire_put_u32(reply, field_groups);
    wire_put_u32(reply, watches_count(engine->watches));
    wire_put_u32(reply, health);
    wire_put_u32(reply, connections);
    wire_put_u32(reply, engine->settings);
    return DCGM_ST_OK;
}

static dcgmReturn_t answer_version(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)engine, (void)connection, (void)request;
    char text[DCGM_MAX_STR_LENGTH];
    version_text(text, sizeof text);
    wire_put_string(reply, text);
    return DCGM_ST_OK;
}

static dcgmReturn_t answer_all_devices(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request;
    return answer_devices(engine, false, reply);
}

static dcgmReturn_t answer_supported_devices(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request;
    return answer_devices(engine, true, reply);
}

/* Policies, configurations, clocks, detached drivers: nothing changes here,
 * but each attempt is counted. */
static dcgmReturn_t answer_setting(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request, (void)reply;
    engine->settings++;
    return DCGM_ST_OK;
}

typedef dcgmReturn_t answer(struct engine *, unsigned, struct wire *, struct wire *);

dcgmReturn_t engine_call(struct engine *engine, unsigned connection, enum call call,
                         struct wire *request, struct wire *reply)
{
    static answer *const answers[CALL_COUNT] = {
        [CALL_INSPECT] = answer_inspect,
        [CALL_VERSION] = answer_version,
        [CALL_ALL_DEVICES] = answer_all_devices,
        [CALL_SUPPORTED_DEVICES] = answer_supported_devices,
        [CALL_ENTITIES] = answer_entities,
        [CALL_GPU_STATUS] = answer_gpu_status,
        [CALL_DEVICE_ATTRIBUTES] = answer_device_attributes,
        [CALL_HIERARCHY] = answer_hierarchy,
        [CALL_NVLINK_STATUS] = answer_nvlink_status,
        [CALL_GROUP_CREATE] = answer_group_create,
        [CALL_GROUP_DESTROY] = answer_group_destroy,
        [CALL_GROUP_ADD] = answer_group_add,
        [CALL_GROUP_REMOVE] = answer_group_remove,
        [CALL_GROUP_INFO] = answer_group_info,
        [CALL_FIELD_GROUP_CREATE] = answer_field_group_create,
        [CALL_FIELD_GROUP_DESTROY] = answer_field_group_destroy,
        [CALL_WATCH] = answer_watch,
        [CALL_UNWATCH] = answer_unwatch,
        [CALL_UPDATE] = answer_update,
        [CALL_LATEST] = answer_latest,
        [CALL_SINCE] = answer_since,
        [CALL_HEALTH_SET] = answer_health_set,
        [CALL_HEALTH_GET] = answer_health_get,
        [CALL_HEALTH_CHECK] = answer_health_check,
        [CALL_METRIC_GROUPS] = answer_metric_groups,
        [CALL_SETTING] = answer_setting,
    };
    const char *name = call_name(call);
    if (!name || !answers[call])
        return DCGM_ST_FUNCTION_NOT_FOUND;
    dcgmReturn_t status = call == CALL_INSPECT ? DCGM_ST_OK : (dcgmReturn_t)fault(name);
    if (status != DCGM_ST_OK)
        return status;

    pthread_mutex_lock(&engine->lock);
    topology_refresh(engine);
    status = answers[call](engine, connection, request, reply);
    pthread_mutex_unlock(&engine->lock);
    return request->broken ? DCGM_ST_BADPARAM : status;
}

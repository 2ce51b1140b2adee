#include <stdlib.h>
#include <string.h>

#include "watch.h"

/* As many samples are kept of a field as its watchers asked for, at most so
 * many. */
#define MOST_SAMPLES 64
struct watches *watches_new(void) { return calloc(1, sizeof(struct watches)); }

void watches_free(struct watches *watches)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct watch *watch = watches->buckets[i], *next; watch; watch = next) {
            next = watch->next;
            free(watch->watchers);
            free(watch->ring);
            free(watch);
        }
    free(watches);
}

unsigned watches_count(const struct watches *watches) { return watches->watchers; }

static struct watch **bucket_of(struct watches *watches, struct entity entity, uint16_t field)
{
    uint32_t hash = (entity.group * 31 + entity.id) * 2654435761u + field * 40503u;
    return &watches->buckets[(hash >> 8) % BUCKETS];
}

/* Fields of the whole node are kept once, whichever entity is named. */
static struct entity keeper(struct entity entity, const struct field *field)
{
    return field->level == DCGM_FE_NONE ? (struct entity){DCGM_FE_NONE, 0} : entity;
}

struct watch *watch_find(struct watches *watches, struct entity entity, const struct field *field)
{
    entity = keeper(entity, field);
    for (struct watch *watch = *bucket_of(watches, entity, field->id); watch; watch = watch->next)
        if (same_entity(watch->entity, entity) && watch->field == field)
            return watch;
    return NULL;
}

static struct watch *find_or_make(struct watches *watches, struct entity entity, const struct field *field)
{
    struct watch *watch = watch_find(watches, entity, field);
    if (watch)
        return watch;
    entity = keeper(entity, field);
    watch = calloc(1, sizeof *watch);
    if (!watch)
        abort();
    struct watch **bucket = bucket_of(watches, entity, field->id);
    *watch = (struct watch){.next = *bucket, .entity = entity, .field = field, .status = DCGM_ST_NO_DATA};
    *bucket = watch;
    return watch;
}

const struct value *watch_sample(const struct watch *watch, unsigned age)
{
    return &watch->ring[(watch->newest + watch->capacity - age) % watch->capacity];
}

static void keep_sample(struct watch *watch, const struct value *value)
{
    unsigned wanted = 1;
    for (unsigned i = 0; i < watch->watcher_count; i++)
        if (watch->watchers[i].samples > wanted)
            wanted = watch->watchers[i].samples;
    if (wanted > watch->capacity) {
        struct value *ring = calloc(wanted, sizeof *ring);
        if (!ring)
            abort();
        for (unsigned i = 0; i < watch->kept; i++) /* oldest first */
            ring[i] = *watch_sample(watch, watch->kept - 1 - i);
        free(watch->ring);
        watch->ring = ring;
        watch->newest = watch->kept ? watch->kept - 1 : wanted - 1;
        watch->capacity = wanted;
    }
    watch->newest = (watch->newest + 1) % watch->capacity;
    watch->ring[watch->newest] = *value;
    if (watch->kept < watch->capacity)
        watch->kept++;
}

static void sample(struct engine *engine, struct watch *watch, int64_t now)
{
    struct value value = {.type = watch->field->type, .at = now};
    watch->sampled = now;
    switch (read_field(engine, watch->field, watch->entity, &watch->meter, now, &value)) {
    case READ_VALUE:
        keep_sample(watch, &value);
        break;
    case READ_STATUS:
        watch->kept = 0;
        watch->status = value.status;
        break;
    case READ_NOTHING:
        watch->status = DCGM_ST_NO_DATA;
        break;
    }
}

/* The shortest interval that was asked for, 0 for none. */
static int64_t interval_of(const struct watch *watch)
{
    int64_t shortest = 0;
    for (unsigned i = 0; i < watch->watcher_count; i++)
        if (!shortest || watch->watchers[i].interval < shortest)
            shortest = watch->watchers[i].interval;
    return shortest;
}

int64_t watches_update(struct engine *engine, int64_t now)
{
    int64_t earliest = 0;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct watch *watch = engine->watches->buckets[i]; watch; watch = watch->next) {
            int64_t interval = interval_of(watch);
            if (!interval || watch->field->source == FROM_EVENTS)
                continue;
            if (now - watch->sampled >= interval)
                sample(engine, watch, now);
            if (!earliest || watch->sampled + interval < earliest)
                earliest = watch->sampled + interval;
        }
    return earliest;
}

void watches_observe(struct engine *engine, struct entity entity, uint16_t field, const struct value *value)
{
    const struct field *known = field_find(field);
    struct watch *watch = known ? watch_find(engine->watches, entity, known) : NULL;
    if (watch && watch->watcher_count)
        keep_sample(watch, value);
}

void watches_forget(struct engine *engine, struct entity entity)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct watch *watch = engine->watches->buckets[i]; watch; watch = watch->next)
            if (same_entity(watch->entity, entity)) {
                watch->kept = 0;
                watch->sampled = 0;
                watch->status = DCGM_ST_NO_DATA;
                watch->meter.known = false;
            }
}

static void drop_watcher(struct watches *watches, struct watch *watch, unsigned connection)
{
    for (unsigned i = 0; i < watch->watcher_count; i++)
        if (watch->watchers[i].connection == connection) {
            watch->watchers[i] = watch->watchers[--watch->watcher_count];
            watches->watchers--;
            return;
        }
}

void watches_drop_connection(struct engine *engine, unsigned connection)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct watch *watch = engine->watches->buckets[i]; watch; watch = watch->next)
            drop_watcher(engine->watches, watch, connection);
}

static void add_watcher(struct watches *watches, struct watch *watch, struct watcher watcher)
{
    for (unsigned i = 0; i < watch->watcher_count; i++)
        if (watch->watchers[i].connection == watcher.connection) {
            watch->watchers[i] = watcher;
            return;
        }
    watch->watchers = realloc(watch->watchers, (watch->watcher_count + 1) * sizeof watcher);
    if (!watch->watchers)
        abort();
    watch->watchers[watch->watcher_count++] = watcher;
    watches->watchers++;
}

dcgmReturn_t select_fields(struct engine *engine, struct wire *request, struct selection *selection)
{
    unsigned group = wire_u32(request);
    if (!group_entities(engine, group, selection->entities, &selection->count))
        return DCGM_ST_NOT_CONFIGURED;
    selection->fields = field_group_find(engine, wire_u32(request));
    return selection->fields ? DCGM_ST_OK : DCGM_ST_NO_DATA;
}

/* Samples to keep: what was asked for by number, else by age. */
static unsigned samples_kept(int64_t interval, double age, int samples)
{
    double wanted = samples > 0 ? samples : age * 1e6 / (double)interval + 1;
    if (!(wanted >= 1))
        return 1;
    return wanted > MOST_SAMPLES ? MOST_SAMPLES : (unsigned)wanted;
}

/* Whether a GPU's line of fields that its profiler lacks has a field. */
static bool lacks(unsigned gpu, uint16_t field)
{
    char text[256], *rest = text;
    struct place place = {.gpu = gpu, .gi = -1, .ci = -1};
    if (!scripted_line(place, "dcgm.profiler_lacks", text, sizeof text))
        return false;
    for (char *word; (word = strtok_r(rest, " ,", &rest));)
        if (atoi(word) == field)
            return true;
    return false;
}

/* The profiler takes a watch whole or not at all: of one model of GPU, and of
 * fields that all of them have. */
static dcgmReturn_t profiler_takes(struct engine *engine, const struct selection *selection)
{
    char first[DCGM_MAX_STR_LENGTH] = "", name[DCGM_MAX_STR_LENGTH];
    for (unsigned f = 0; f < selection->fields->count; f++) {
        uint16_t field = selection->fields->fields[f];
        if (!field_profiling(field))
            continue;
        if (profiler_taken())
            return DCGM_ST_IN_USE;
        for (unsigned e = 0; e < selection->count; e++) {
            struct place place;
            if (!topology_place(engine, selection->entities[e], &place))
                continue;
            if (!scripted_text(place.gpu, "name", name, sizeof name))
                name[0] = 0;
            if (!first[0])
                memcpy(first, name, sizeof first);
            if (strcmp(first, name))
                return DCGM_ST_GROUP_INCOMPATIBLE;
            if (lacks(place.gpu, field))
                return DCGM_ST_NOT_SUPPORTED;
        }
    }
    return DCGM_ST_OK;
}

dcgmReturn_t answer_watch(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)reply;
    struct selection selection;
    dcgmReturn_t status = select_fields(engine, request, &selection);
    int64_t interval = wire_i64(request);
    double age = wire_f64(request);
    int samples = (int)wire_u32(request);
    if (status != DCGM_ST_OK)
        return status;
    if (interval <= 0)
        return DCGM_ST_BADPARAM;
    if ((status = profiler_takes(engine, &selection)) != DCGM_ST_OK)
        return status;

    struct watcher watcher = {connection, interval, samples_kept(interval, age, samples)};
    for (unsigned e = 0; e < selection.count; e++)
        for (unsigned f = 0; f < selection.fields->count; f++)
            add_watcher(engine->watches,
                        find_or_make(engine->watches, selection.entities[e], field_find(selection.fields->fields[f])),
                        watcher);
    watches_update(engine, engine_now());
    pthread_cond_broadcast(&engine->wake);
    return DCGM_ST_OK;
}

dcgmReturn_t answer_unwatch(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)reply;
    struct selection selection;
    dcgmReturn_t status = select_fields(engine, request, &selection);
    if (status != DCGM_ST_OK)
        return status;
    for (unsigned e = 0; e < selection.count; e++)
        for (unsigned f = 0; f < selection.fields->count; f++) {
            struct watch *watch = watch_find(engine->watches, selection.entities[e], field_find(selection.fields->fields[f]));
            if (watch)
                drop_watcher(engine->watches, watch, connection);
        }
    return DCGM_ST_OK;
}

dcgmReturn_t answer_update(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request, (void)reply;
    watches_update(engine, engine_now());
    return DCGM_ST_OK;
}

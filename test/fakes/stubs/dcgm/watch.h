/* Watches: shared by what keeps them (watches.c) and what reports their values
 * (values.c). */
#ifndef STUB_DCGM_WATCH_H
#define STUB_DCGM_WATCH_H

#include "internal.h"

#define BUCKETS 4096

struct watcher {
    unsigned connection;
    int64_t interval; /* microseconds */
    unsigned samples;
};

/* One field of one entity. It outlives its watchers, as in the real engine:
 * what was sampled can still be asked for. */
struct watch {
    struct watch *next;
    struct entity entity;
    const struct field *field;
    struct watcher *watchers;
    unsigned watcher_count;
    int64_t sampled; /* when it was last looked at, 0 for never */
    int status;      /* why there are no samples */
    struct meter meter;
    struct value *ring;
    unsigned kept, newest, capacity;
};

struct watches {
    struct watch *buckets[BUCKETS];
    unsigned watchers;
};

/* The watch of a field of an entity, or NULL. */
struct watch *watch_find(struct watches *watches, struct entity entity, const struct field *field);
/* A sample by age, 0 being the newest, of watch->kept. */
const struct value *watch_sample(const struct watch *watch, unsigned age);

/* A group and a field group, resolved. */
struct selection {
    struct entity entities[DCGM_GROUP_MAX_ENTITIES_V2];
    unsigned count;
    const struct field_group *fields;
};

dcgmReturn_t select_fields(struct engine *engine, struct wire *request, struct selection *selection);

#endif

/* What the parts of an engine share. All of it is guarded by engine->lock,
 * which the caller of any function here holds. */
#ifndef STUB_DCGM_INTERNAL_H
#define STUB_DCGM_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "dcgm_structs.h"
#include "engine.h"
#include "fields.h"
#include "scripted.h"
#include "wire.h"

struct entity {
    uint32_t group; /* dcgm_field_entity_group_t */
    uint32_t id;
};

static inline bool same_entity(struct entity a, struct entity b)
{
    return a.group == b.group && a.id == b.id;
}

static inline struct entity request_entity(struct wire *request)
{
    struct entity entity;
    entity.group = wire_u32(request);
    entity.id = wire_u32(request);
    return entity;
}

/* One value of one field. Strings that do not fit are cut. */
struct value {
    int status;
    char type; /* DCGM_FT_… */
    int64_t at; /* microseconds since 1970 */
    int64_t i64;
    double f64;
    char text[DCGM_MAX_STR_LENGTH];
};

struct group {
    unsigned id;
    unsigned connection;
    char name[DCGM_MAX_STR_LENGTH];
    unsigned count;
    struct entity entities[DCGM_GROUP_MAX_ENTITIES_V2];
    uint32_t health; /* systems that are watched */
};

struct field_group {
    unsigned id;
    unsigned connection;
    char name[DCGM_MAX_STR_LENGTH];
    unsigned count;
    uint16_t fields[DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP];
};

struct connection {
    unsigned id;
    bool persist;
    bool used;
};

struct groups {
    unsigned next_id;
    struct group *groups[DCGM_MAX_NUM_GROUPS];
    struct field_group *field_groups[DCGM_MAX_NUM_FIELD_GROUPS];
};

struct watches;
struct topology;

#define MOST_CONNECTIONS 256

struct engine {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* a watch has changed, or the engine stops */
    pthread_t thread;
    bool automatic;
    bool stopping;
    unsigned next_connection;
    struct connection connections[MOST_CONNECTIONS];
    struct groups groups;
    struct watches *watches;
    struct topology *topology;
    int64_t events_at;   /* when XIDs were last looked for */
    size_t events_read;  /* how many of them are known */
    unsigned settings;   /* calls that would have changed something */
};

/* Microseconds since 1970: the timestamps of DCGM. */
int64_t engine_now(void);

/* groups.c */
struct group *group_find(struct engine *engine, unsigned id);
/* The entities of a group, of which some are standing: all GPUs, all
 * partitions. False: there is no such group. */
bool group_entities(struct engine *engine, unsigned id, struct entity *entities, unsigned *count);
struct field_group *field_group_find(struct engine *engine, unsigned id);
void groups_drop_connection(struct engine *engine, unsigned connection);
dcgmReturn_t answer_group_create(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_group_destroy(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_group_add(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_group_remove(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_group_info(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_field_group_create(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_field_group_destroy(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);

/* watches.c */
struct watches *watches_new(void);
void watches_free(struct watches *watches);
unsigned watches_count(const struct watches *watches);
void watches_drop_connection(struct engine *engine, unsigned connection);
/* Samples what is due; when the next is due, 0 where nothing is watched. */
int64_t watches_update(struct engine *engine, int64_t now);
/* Keeps an observation that came by itself (an XID), if it is watched. */
void watches_observe(struct engine *engine, struct entity entity, uint16_t field, const struct value *value);
/* Forgets the samples of an entity that is another one from now on. */
void watches_forget(struct engine *engine, struct entity entity);
dcgmReturn_t answer_watch(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_unwatch(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_update(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_latest(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_since(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);

/* topology.c: which entities there are. */
struct topology *topology_new(void);
void topology_free(struct topology *topology);
/* Looks again at GPUs and partitions, if the hardware has changed. */
void topology_refresh(struct engine *engine);
unsigned topology_gpus(const struct engine *engine);
bool topology_has(struct engine *engine, struct entity entity);
/* Which GPU and which instances an entity is. False: there is no such. */
bool topology_place(const struct engine *engine, struct entity entity, struct place *place);
/* The inverse, for events. */
bool topology_entity(const struct engine *engine, struct place place, struct entity *entity);
/* All entities of a group of them, at most DCGM_GROUP_MAX_ENTITIES_V2. */
unsigned topology_entities(const struct engine *engine, uint32_t group, struct entity *entities);
/* What a partition is; a GPU instance is known by its first compute instance.
 * NULL: there is none. */
const struct partition *topology_partition(const struct engine *engine, struct entity entity);
DcgmEntityStatus_t topology_status(const struct engine *engine, unsigned gpu);
dcgmReturn_t answer_devices(struct engine *engine, bool supported, struct wire *reply);
dcgmReturn_t answer_entities(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_gpu_status(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_hierarchy(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);

/* nvlink.c */
bool nvlink_is_5(unsigned gpu);
/* The sum over a GPU's links. False: it has none. */
bool nvlink_sum(unsigned gpu, const char *key, int64_t *sum);
dcgmReturn_t answer_nvlink_status(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);

/* reading.c: the value of a field at this moment. */
enum reading {
    READ_NOTHING, /* no sample is kept: the first half of a rate */
    READ_VALUE,
    READ_STATUS, /* value->status alone says what is wrong */
};
/* What a rate remembers of its last sample. */
struct meter {
    bool known;
    double counter;
    int64_t at;
};
/* meter NULL: a live value, read beside the watches. */
enum reading read_field(struct engine *engine, const struct field *field, struct entity entity,
                        struct meter *meter, int64_t now, struct value *value);
void blank(char type, int kind, struct value *value);

/* health.c */
dcgmReturn_t answer_health_set(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_health_get(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_health_check(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);

/* attributes.c */
dcgmReturn_t answer_device_attributes(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);
dcgmReturn_t answer_metric_groups(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply);

/* events.c: XIDs become values of field 230. */
void events_start(struct engine *engine);
void events_poll(struct engine *engine, int64_t now);

#endif

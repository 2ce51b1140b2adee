#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* The real engine keeps 0 and 1 for its own groups of all GPUs and switches. */
#define FIRST_ID 2

static unsigned next_id(struct engine *engine)
{
    if (engine->groups.next_id < FIRST_ID)
        engine->groups.next_id = FIRST_ID;
    return engine->groups.next_id++;
}

struct group *group_find(struct engine *engine, unsigned id)
{
    for (unsigned i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (engine->groups.groups[i] && engine->groups.groups[i]->id == id)
            return engine->groups.groups[i];
    return NULL;
}

struct field_group *field_group_find(struct engine *engine, unsigned id)
{
    for (unsigned i = 0; i < DCGM_MAX_NUM_FIELD_GROUPS; i++)
        if (engine->groups.field_groups[i] && engine->groups.field_groups[i]->id == id)
            return engine->groups.field_groups[i];
    return NULL;
}

static unsigned standing_entities(struct engine *engine, unsigned id, struct entity *entities)
{
    switch (id) {
    case DCGM_GROUP_ALL_GPUS:
        return topology_entities(engine, DCGM_FE_GPU, entities);
    case DCGM_GROUP_ALL_INSTANCES:
        return topology_entities(engine, DCGM_FE_GPU_I, entities);
    case DCGM_GROUP_ALL_COMPUTE_INSTANCES:
        return topology_entities(engine, DCGM_FE_GPU_CI, entities);
    case DCGM_GROUP_ALL_ENTITIES: {
        unsigned count = topology_entities(engine, DCGM_FE_GPU, entities);
        count += topology_entities(engine, DCGM_FE_GPU_I, entities + count);
        return count + topology_entities(engine, DCGM_FE_GPU_CI, entities + count);
    }
    default: /* there are no switches */
        return 0;
    }
}

bool group_entities(struct engine *engine, unsigned id, struct entity *entities, unsigned *count)
{
    if (id >= DCGM_GROUP_NULL) {
        *count = standing_entities(engine, id, entities);
        return id != DCGM_GROUP_NULL;
    }
    const struct group *group = group_find(engine, id);
    if (!group)
        return false;
    memcpy(entities, group->entities, group->count * sizeof *entities);
    *count = group->count;
    return true;
}

static unsigned group_of_type(unsigned type)
{
    switch (type) {
    case DCGM_GROUP_DEFAULT:
        return DCGM_GROUP_ALL_GPUS;
    case DCGM_GROUP_DEFAULT_INSTANCES:
        return DCGM_GROUP_ALL_INSTANCES;
    case DCGM_GROUP_DEFAULT_COMPUTE_INSTANCES:
        return DCGM_GROUP_ALL_COMPUTE_INSTANCES;
    case DCGM_GROUP_DEFAULT_EVERYTHING:
        return DCGM_GROUP_ALL_ENTITIES;
    default: /* empty, or switches, of which there are none */
        return DCGM_GROUP_NULL;
    }
}

dcgmReturn_t answer_group_create(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    unsigned type = wire_u32(request), slot = 0;
    if (type > DCGM_GROUP_DEFAULT_EVERYTHING)
        return DCGM_ST_BADPARAM;
    while (slot < DCGM_MAX_NUM_GROUPS && engine->groups.groups[slot])
        slot++;
    if (slot == DCGM_MAX_NUM_GROUPS)
        return DCGM_ST_MAX_LIMIT;

    struct group *group = calloc(1, sizeof *group);
    if (!group)
        return DCGM_ST_MEMORY;
    group->id = next_id(engine);
    group->connection = connection;
    wire_string(request, group->name, sizeof group->name);
    group->count = standing_entities(engine, group_of_type(type), group->entities);
    engine->groups.groups[slot] = group;
    wire_put_u32(reply, group->id);
    return DCGM_ST_OK;
}

dcgmReturn_t answer_group_destroy(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)reply;
    unsigned id = wire_u32(request);
    for (unsigned i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (engine->groups.groups[i] && engine->groups.groups[i]->id == id) {
            free(engine->groups.groups[i]);
            engine->groups.groups[i] = NULL;
            return DCGM_ST_OK;
        }
    return DCGM_ST_NOT_CONFIGURED;
}

dcgmReturn_t answer_group_add(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)reply;
    struct group *group = group_find(engine, wire_u32(request));
    struct entity entity = request_entity(request);
    if (!group)
        return DCGM_ST_NOT_CONFIGURED;
    struct place place;
    if (!topology_place(engine, entity, &place))
        return DCGM_ST_BADPARAM;
    if (topology_status(engine, place.gpu) == DcgmEntityStatusLost)
        return DCGM_ST_GPU_IS_LOST;
    for (unsigned i = 0; i < group->count; i++)
        if (same_entity(group->entities[i], entity))
            return DCGM_ST_BADPARAM;
    if (group->count == DCGM_GROUP_MAX_ENTITIES_V2)
        return DCGM_ST_MAX_LIMIT;
    group->entities[group->count++] = entity;
    return DCGM_ST_OK;
}

dcgmReturn_t answer_group_remove(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)reply;
    struct group *group = group_find(engine, wire_u32(request));
    struct entity entity = request_entity(request);
    if (!group)
        return DCGM_ST_NOT_CONFIGURED;
    for (unsigned i = 0; i < group->count; i++)
        if (same_entity(group->entities[i], entity)) {
            memmove(group->entities + i, group->entities + i + 1, (group->count - i - 1) * sizeof entity);
            group->count--;
            return DCGM_ST_OK;
        }
    return DCGM_ST_BADPARAM;
}

dcgmReturn_t answer_group_info(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    unsigned id = wire_u32(request), count;
    struct entity *entities = calloc(DCGM_GROUP_MAX_ENTITIES_V2, sizeof *entities);
    if (!entities || !group_entities(engine, id, entities, &count)) {
        free(entities);
        return DCGM_ST_NOT_CONFIGURED;
    }
    const struct group *group = group_find(engine, id);
    wire_put_string(reply, group ? group->name : "");
    wire_put_u32(reply, count);
    for (unsigned i = 0; i < count; i++) {
        wire_put_u32(reply, entities[i].group);
        wire_put_u32(reply, entities[i].id);
    }
    free(entities);
    return DCGM_ST_OK;
}

static bool name_taken(struct engine *engine, const char *name)
{
    for (unsigned i = 0; i < DCGM_MAX_NUM_FIELD_GROUPS; i++)
        if (engine->groups.field_groups[i] && !strcmp(engine->groups.field_groups[i]->name, name))
            return true;
    return false;
}

/* Reads name and fields of a request into a field group. */
static dcgmReturn_t read_field_group(struct engine *engine, struct wire *request, struct field_group *group)
{
    wire_string(request, group->name, sizeof group->name);
    group->count = wire_u32(request);
    if (group->count == 0 || group->count > DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP)
        return DCGM_ST_BADPARAM;
    for (unsigned i = 0; i < group->count; i++) {
        group->fields[i] = (uint16_t)wire_u32(request);
        if (!field_known(group->fields[i]))
            return DCGM_ST_UNKNOWN_FIELD;
    }
    return name_taken(engine, group->name) ? DCGM_ST_DUPLICATE_KEY : DCGM_ST_OK;
}

dcgmReturn_t answer_field_group_create(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    unsigned slot = 0;
    while (slot < DCGM_MAX_NUM_FIELD_GROUPS && engine->groups.field_groups[slot])
        slot++;
    if (slot == DCGM_MAX_NUM_FIELD_GROUPS)
        return DCGM_ST_MAX_LIMIT;
    struct field_group *group = calloc(1, sizeof *group);
    if (!group)
        return DCGM_ST_MEMORY;
    dcgmReturn_t status = read_field_group(engine, request, group);
    if (status != DCGM_ST_OK) {
        free(group);
        return status;
    }
    group->id = next_id(engine);
    group->connection = connection;
    engine->groups.field_groups[slot] = group;
    wire_put_u32(reply, group->id);
    return DCGM_ST_OK;
}

dcgmReturn_t answer_field_group_destroy(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)reply;
    unsigned id = wire_u32(request);
    for (unsigned i = 0; i < DCGM_MAX_NUM_FIELD_GROUPS; i++)
        if (engine->groups.field_groups[i] && engine->groups.field_groups[i]->id == id) {
            free(engine->groups.field_groups[i]);
            engine->groups.field_groups[i] = NULL;
            return DCGM_ST_OK;
        }
    return DCGM_ST_NO_DATA;
}

/* connection 0 is every connection: the engine stops. */
void groups_drop_connection(struct engine *engine, unsigned connection)
{
    struct groups *groups = &engine->groups;
    for (unsigned i = 0; i < DCGM_MAX_NUM_GROUPS; i++)
        if (groups->groups[i] && (!connection || groups->groups[i]->connection == connection)) {
            free(groups->groups[i]);
            groups->groups[i] = NULL;
        }
    for (unsigned i = 0; i < DCGM_MAX_NUM_FIELD_GROUPS; i++)
        if (groups->field_groups[i] && (!connection || groups->field_groups[i]->connection == connection)) {
            free(groups->field_groups[i]);
            groups->field_groups[i] = NULL;
        }
}

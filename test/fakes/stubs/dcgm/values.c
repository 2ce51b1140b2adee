/* Reports what was sampled and what is read live. */
#include "watch.h"

static void put_value(struct wire *reply, struct entity entity, uint16_t field, const struct value *value)
{
    wire_put_u32(reply, entity.group);
    wire_put_u32(reply, entity.id);
    wire_put_u32(reply, field);
    wire_put_u32(reply, (unsigned char)value->type);
    wire_put_u32(reply, (uint32_t)value->status);
    wire_put_i64(reply, value->at);
    if (value->type == DCGM_FT_STRING)
        wire_put_string(reply, value->text);
    else if (value->type == DCGM_FT_DOUBLE)
        wire_put_f64(reply, value->f64);
    else
        wire_put_i64(reply, value->i64);
}

/* An error is reported as an integer of zero, whatever the field's type. */
static struct value wrong(int status)
{
    return (struct value){.status = status, .type = DCGM_FT_INT64};
}

static struct value latest(struct engine *engine, struct entity entity, const struct field *field)
{
    const struct watch *watch = watch_find(engine->watches, entity, field);
    struct value scripted = {.type = field->type};
    if (!watch)
        return wrong(DCGM_ST_NOT_WATCHED);
    if (field->source == FROM_EVENTS && read_field(engine, field, entity, NULL, engine_now(), &scripted) == READ_STATUS)
        return wrong(scripted.status);
    if (watch->kept)
        return *watch_sample(watch, 0);
    return wrong(watch->watcher_count ? watch->status : DCGM_ST_NOT_WATCHED);
}

static struct value live(struct engine *engine, struct entity entity, const struct field *field, int64_t now)
{
    struct value value = {.type = field->type, .at = now};
    if (field->level != DCGM_FE_NONE && !topology_has(engine, entity))
        return wrong(DCGM_ST_BADPARAM);
    switch (read_field(engine, field, entity, NULL, now, &value)) {
    case READ_VALUE:
        return value;
    case READ_STATUS:
        return wrong(value.status);
    default:
        return wrong(DCGM_ST_NO_DATA);
    }
}

dcgmReturn_t answer_latest(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    struct entity entities[DCGM_GROUP_MAX_ENTITIES_V2];
    uint16_t ids[DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP];
    const struct field *fields[DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP];
    unsigned flags = wire_u32(request);
    unsigned entity_count = wire_u32(request), field_count = wire_u32(request);
    if (entity_count > DCGM_GROUP_MAX_ENTITIES_V2 || field_count > DCGM_MAX_FIELD_IDS_PER_FIELD_GROUP)
        return DCGM_ST_MAX_LIMIT;
    for (unsigned i = 0; i < entity_count; i++)
        entities[i] = request_entity(request);
    for (unsigned i = 0; i < field_count; i++) {
        ids[i] = (uint16_t)wire_u32(request);
        fields[i] = field_known(ids[i]) ? field_find(ids[i]) : NULL;
    }

    int64_t now = engine_now();
    for (unsigned e = 0; e < entity_count; e++)
        for (unsigned f = 0; f < field_count; f++) {
            struct value value = !fields[f]                       ? wrong(DCGM_ST_UNKNOWN_FIELD)
                                 : flags & DCGM_FV_FLAG_LIVE_DATA ? live(engine, entities[e], fields[f], now)
                                                                  : latest(engine, entities[e], fields[f]);
            put_value(reply, entities[e], ids[f], &value);
        }
    return DCGM_ST_OK;
}

dcgmReturn_t answer_since(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    struct selection selection;
    dcgmReturn_t status = select_fields(engine, request, &selection);
    int64_t since = wire_i64(request), next = since;
    if (status != DCGM_ST_OK)
        return status;
    struct wire values = {0};
    unsigned count = 0;
    for (unsigned e = 0; e < selection.count; e++)
        for (unsigned f = 0; f < selection.fields->count; f++) {
            const struct watch *watch = watch_find(engine->watches, selection.entities[e], field_find(selection.fields->fields[f]));
            for (unsigned i = watch ? watch->kept : 0; i > 0; i--) {
                const struct value *value = watch_sample(watch, i - 1);
                if (value->at < since)
                    continue;
                put_value(&values, selection.entities[e], watch->field->id, value);
                count++;
                if (value->at >= next)
                    next = value->at + 1;
            }
        }
    wire_put_i64(reply, next);
    wire_put_u32(reply, count);
    wire_put(reply, values.bytes, values.length);
    wire_free(&values);
    return DCGM_ST_OK;
}

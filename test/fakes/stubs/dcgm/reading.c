#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reading.h"
#include "status.h"

void blank(char type, int kind, struct value *value)
{
    static const char *const texts[] = {DCGM_STR_BLANK, DCGM_STR_NOT_FOUND, DCGM_STR_NOT_SUPPORTED, DCGM_STR_NOT_PERMISSIONED};
    value->status = DCGM_ST_OK;
    value->type = type;
    value->i64 = DCGM_INT64_BLANK + kind;
    value->f64 = DCGM_FP64_BLANK + kind;
    strcpy(value->text, texts[kind]);
}

enum reading blank_reading(const struct field *field, int kind, struct value *value)
{
    blank(field->type, kind, value);
    return READ_VALUE;
}

enum reading number_reading(double number, struct value *value)
{
    value->f64 = number;
    value->i64 = llround(number);
    return READ_VALUE;
}

/* What hardware.conf says of one field: a value, blank, not_supported, or
 * status:<code>. */
static enum reading scripted_reading(const struct field *field, const char *text, struct value *value)
{
    if (!strcmp(text, "blank"))
        return blank_reading(field, UNKNOWN, value);
    if (!strcmp(text, "not_supported"))
        return blank_reading(field, NOT_SUPPORTED, value);
    if (!strncmp(text, "status:", 7)) {
        if (!status_parse(text + 7, &value->status))
            abort();
        return READ_STATUS;
    }
    snprintf(value->text, sizeof value->text, "%s", text);
    value->f64 = strtod(text, NULL);
    value->i64 = strtoll(text, NULL, 0);
    return READ_VALUE;
}

/* The average of a counter since the last sample, in the counter's unit per
 * second. Nothing is known before there are two. */
static bool average(struct meter *meter, double counter, int64_t now, double *rate)
{
    bool known = meter && meter->known && now > meter->at;
    if (known)
        *rate = (counter - meter->counter) * 1e6 / (double)(now - meter->at);
    if (meter)
        *meter = (struct meter){.known = true, .counter = counter, .at = now};
    return known;
}

/* Reads what the profiler counts: blank until it has been counted for one
 * interval, and while it is paused. */
static enum reading profile_reading(const struct field *field, struct place place, struct meter *meter, int64_t now,
                                    struct value *value)
{
    char profiler[16] = "";
    double number, rate = 0;
    if (!scripted_number(place, field->key, &number))
        return blank_reading(field, NOT_SUPPORTED, value);
    bool known = average(meter, number, now, &rate);
    scripted_node_line("dcgm.profiler", profiler, sizeof profiler);
    if (!known || !strcmp(profiler, "paused"))
        return blank_reading(field, UNKNOWN, value);
    return number_reading((field->source == FROM_RATE ? rate : number) * field->scale, value);
}

/* The one rate that needs no profiler is of both directions together. */
static enum reading nvlink_reading(const struct field *field, struct place place, struct meter *meter, int64_t now,
                                   struct value *value)
{
    double sent, received, rate;
    if (!scripted_number(place, "nvlink.tx_bytes", &sent) || !scripted_number(place, "nvlink.rx_bytes", &received))
        return blank_reading(field, NOT_SUPPORTED, value);
    return average(meter, sent + received, now, &rate) ? number_reading(rate * field->scale, value) : READ_NOTHING;
}

static enum reading sum_reading(const struct field *field, struct place place, struct value *value)
{
    if (nvlink_is_5(place.gpu) != (field->source == FROM_LINKS5) || !nvlink_sum(place.gpu, field->key, &value->i64))
        return blank_reading(field, NOT_SUPPORTED, value);
    return READ_VALUE;
}

/* Where a field of an entity is really read: a partition has its parent's
 * value of what it has none of its own. */
static struct place source_of(const struct field *field, struct place place)
{
    if (field->level == DCGM_FE_GPU)
        place.gi = -1;
    if (field->level != DCGM_FE_GPU_CI)
        place.ci = -1;
    return place;
}

/* What the profiler counts on a level above the entity's is not known there:
 * unlike other fields it is not passed down. */
static bool above(const struct field *field, struct entity entity)
{
    if (!field_profiling(field->id))
        return false;
    return (entity.group == DCGM_FE_GPU_I && field->level == DCGM_FE_GPU)
           || (entity.group == DCGM_FE_GPU_CI && field->level != DCGM_FE_GPU_CI);
}

enum reading read_field(struct engine *engine, const struct field *field, struct entity entity,
                        struct meter *meter, int64_t now, struct value *value)
{
    struct place place = {.gi = -1, .ci = -1};
    char text[DCGM_MAX_STR_LENGTH], key[32];
    double number;
    if (field->source == FROM_NODE) {
        if (!scripted_node_text(field->key, value->text, sizeof value->text))
            return blank_reading(field, NOT_SUPPORTED, value);
        value->i64 = strtoll(value->text, NULL, 10);
        return READ_VALUE;
    }
    if (field->level != DCGM_FE_NONE && !topology_place(engine, entity, &place))
        return READ_NOTHING;
    struct place source = source_of(field, place);
    snprintf(key, sizeof key, "dcgm.field.%u", field->id);
    if (field->level != DCGM_FE_NONE && scripted_line(source, key, text, sizeof text))
        return scripted_reading(field, text, value);
    if (field->level != DCGM_FE_NONE && topology_status(engine, place.gpu) == DcgmEntityStatusLost)
        return blank_reading(field, UNKNOWN, value);
    if (above(field, entity))
        return READ_NOTHING;
    switch (field->source) {
    case FROM_ENGINE:
        return composed_reading(engine, field, entity, source, value);
    case FROM_TEXT:
        return scripted_text(source.gpu, field->key, value->text, sizeof value->text)
                   ? READ_VALUE
                   : blank_reading(field, NOT_SUPPORTED, value);
    case FROM_NUMBER:
        if (field->scale == 1 && field->type == DCGM_FT_INT64) /* exact, where a double is not */
            return scripted_integer(source, field->key, &value->i64) ? READ_VALUE : blank_reading(field, NOT_SUPPORTED, value);
        return scripted_number(source, field->key, &number)
                   ? number_reading(number * field->scale, value)
                   : blank_reading(field, NOT_SUPPORTED, value);
    case FROM_NVLINK5:
        return nvlink_is_5(source.gpu) && scripted_integer(source, field->key, &value->i64)
                   ? READ_VALUE
                   : blank_reading(field, NOT_SUPPORTED, value);
    case FROM_LINKS:
    case FROM_LINKS5:
        return sum_reading(field, source, value);
    case FROM_RATE:
        if (!field_profiling(field->id))
            return nvlink_reading(field, source, meter, now, value);
        return profile_reading(field, source, meter, now, value);
    case FROM_PROFILE:
        return profile_reading(field, source, meter, now, value);
    case FROM_EVENTS:
        return READ_NOTHING;
    default:
        return blank_reading(field, NOT_SUPPORTED, value);
    }
}

/* libdcgm.so.4: the functions that return values of fields. */
#define DCGM_API_EXPORT /* all that the headers declare public */

#include <string.h>

#include "dcgm_agent.h"
#include "faults.h"
#include "session.h"

/* One value as it travels. */
struct received {
    uint32_t entity_group;
    uint32_t entity;
    uint16_t field;
    uint16_t type;
    int status;
    int64_t at;
    union {
        int64_t i64;
        double f64;
        char text[DCGM_MAX_STR_LENGTH];
    } value;
};

static void receive(struct wire *reply, struct received *received)
{
    received->entity_group = wire_u32(reply);
    received->entity = wire_u32(reply);
    received->field = (uint16_t)wire_u32(reply);
    received->type = (uint16_t)wire_u32(reply);
    received->status = (int)wire_u32(reply);
    received->at = wire_i64(reply);
    if (received->type == DCGM_FT_STRING)
        wire_string(reply, received->value.text, sizeof received->value.text);
    else
        received->value.i64 = wire_i64(reply); /* a double has the same bytes */
}

static void copy_payload(const struct received *received, void *payload)
{
    if (received->type == DCGM_FT_STRING)
        strcpy(payload, received->value.text);
    else
        memcpy(payload, &received->value.i64, sizeof received->value.i64);
}

static void to_v1(const struct received *received, dcgmFieldValue_v1 *value)
{
    value->version = dcgmFieldValue_version1;
    value->fieldId = received->field;
    value->fieldType = received->type;
    value->status = received->status;
    value->ts = received->at;
    copy_payload(received, &value->value);
}

static void to_v2(const struct received *received, dcgmFieldValue_v2 *value)
{
    value->version = dcgmFieldValue_version2;
    value->entityGroupId = received->entity_group;
    value->entityId = received->entity;
    value->fieldId = received->field;
    value->fieldType = received->type;
    value->status = received->status;
    value->unused = 0;
    value->ts = received->at;
    copy_payload(received, &value->value);
}

static dcgmReturn_t latest(dcgmHandle_t handle, const dcgmGroupEntityPair_t *entities, unsigned entity_count,
                           const unsigned short *fields, unsigned field_count, unsigned flags, struct wire *reply)
{
    struct wire request = {0};
    wire_put_u32(&request, flags);
    wire_put_u32(&request, entity_count);
    wire_put_u32(&request, field_count);
    for (unsigned i = 0; i < entity_count; i++) {
        wire_put_u32(&request, (uint32_t)entities[i].entityGroupId);
        wire_put_u32(&request, entities[i].entityId);
    }
    for (unsigned i = 0; i < field_count; i++)
        wire_put_u32(&request, fields[i]);
    return session_call(handle, CALL_LATEST, &request, reply);
}

dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t handle, dcgmGroupEntityPair_t entities[], unsigned int entity_count,
                                         unsigned short fields[], unsigned int field_count, unsigned int flags,
                                         dcgmFieldValue_v2 values[])
{
    if (!entities || !entity_count || !fields || !field_count || !values)
        return DCGM_ST_BADPARAM;
    struct wire reply = {0};
    dcgmReturn_t status = latest(handle, entities, entity_count, fields, field_count, flags, &reply);
    for (size_t i = 0; status == DCGM_ST_OK && i < (size_t)entity_count * field_count; i++) {
        struct received received;
        receive(&reply, &received);
        to_v2(&received, &values[i]);
        if (received.type == DCGM_FT_STRING)
            unterminate("dcgmEntitiesGetLatestValues", values[i].value.blob, sizeof values[i].value.blob);
    }
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmEntityGetLatestValues(dcgmHandle_t handle, dcgm_field_entity_group_t entity_group, int entity,
                                       unsigned short fields[], unsigned int count, dcgmFieldValue_v1 values[])
{
    if (!fields || !count || !values)
        return DCGM_ST_BADPARAM;
    dcgmGroupEntityPair_t pair = {.entityGroupId = entity_group, .entityId = (dcgm_field_eid_t)entity};
    struct wire reply = {0};
    dcgmReturn_t status = latest(handle, &pair, 1, fields, count, 0, &reply);
    for (unsigned i = 0; status == DCGM_ST_OK && i < count; i++) {
        struct received received;
        receive(&reply, &received);
        to_v1(&received, &values[i]);
    }
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmGetLatestValuesForFields(dcgmHandle_t handle, int gpu, unsigned short fields[], unsigned int count,
                                          dcgmFieldValue_v1 values[])
{
    return dcgmEntityGetLatestValues(handle, DCGM_FE_GPU, gpu, fields, count, values);
}

dcgmReturn_t dcgmGetValuesSince_v2(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields, long long since,
                                   long long *next, dcgmFieldValueEntityEnumeration_f visit, void *data)
{
    if (!next || !visit)
        return DCGM_ST_BADPARAM;
    struct wire request = {0}, reply = {0};
    wire_put_u32(&request, (uint32_t)group);
    wire_put_u32(&request, (uint32_t)fields);
    wire_put_i64(&request, since);
    dcgmReturn_t status = session_call(handle, CALL_SINCE, &request, &reply);
    if (status == DCGM_ST_OK) {
        *next = wire_i64(&reply);
        uint32_t there = wire_u32(&reply);
        long long count = there ? claimed("dcgmGetValuesSince_v2", there) : 0;
        dcgmFieldValue_v1 value;
        struct received received;
        for (long long i = 0; i < count; i++) {
            if (i < there)
                receive(&reply, &received);
            to_v1(&received, &value);
            if (visit(received.entity_group, received.entity, &value, 1, data) < 0)
                break;
        }
    }
    wire_free(&reply);
    return status;
}

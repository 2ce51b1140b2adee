#include <stdio.h>

#include "reading.h"

/* The state of the fabric: DCGM's enumeration is NVML's, but DCGM has a state of
 * its own for a failure. The error is known once the state is final. */
static enum reading fabric_reading(const struct field *field, struct place place, struct value *value)
{
    int64_t state, status = 0;
    if (!scripted_integer(place, "fabric.state", &state))
        return blank_reading(field, NOT_SUPPORTED, value);
    scripted_integer(place, "fabric.status", &status);
    bool final = state == DcgmFMStatusSuccess;
    if (field->id == DCGM_FI_DEV_FABRIC_MANAGER_ERROR)
        return final ? number_reading((double)status, value) : blank_reading(field, UNKNOWN, value);
    return number_reading(final && status ? DcgmFMStatusFailure : (double)state, value);
}

static enum reading memory_reading(const struct field *field, struct place place, struct value *value)
{
    double total, used, reserved = 0;
    if (!scripted_number(place, "memory.total", &total) || !scripted_number(place, "memory.used", &used))
        return blank_reading(field, NOT_SUPPORTED, value);
    scripted_number(place, "memory.reserved", &reserved);
    if (field->id == DCGM_FI_DEV_FB_USED_RATIO)
        return number_reading(used / (total - reserved), value);
    return number_reading((total - reserved - used) / (1 << 20), value);
}

static enum reading text_reading(const char *text, struct value *value)
{
    snprintf(value->text, sizeof value->text, "%s", text);
    return READ_VALUE;
}

/* Name, UUID and the like, which partitions have of their own. */
static enum reading identity_reading(struct engine *engine, const struct field *field, struct entity entity,
                                     struct place place, struct value *value)
{
    char uuid[96] = "", spelled[128];
    scripted_text(place.gpu, "uuid", uuid, sizeof uuid);
    if (field->id == DCGM_FI_CUDA_GPU_VISIBLE_DEVICES) {
        if (place.ci >= 0)
            snprintf(spelled, sizeof spelled, "MIG-%s/%d/%d", uuid, place.gi, place.ci);
        else if (place.gi >= 0)
            snprintf(spelled, sizeof spelled, "MIG-%s/%d", uuid, place.gi);
        else
            snprintf(spelled, sizeof spelled, "%s%s", scripted_mig(place.gpu) ? "MIG-" : "", uuid);
        return text_reading(spelled, value);
    }
    if (place.gi < 0)
        return scripted_text(place.gpu, field->key, value->text, sizeof value->text)
                   ? READ_VALUE
                   : blank_reading(field, NOT_SUPPORTED, value);
    const struct partition *partition = topology_partition(engine, entity);
    if (!partition)
        return blank_reading(field, UNKNOWN, value);
    return text_reading(field->id == DCGM_FI_DEV_GPU_NAME ? partition->name : partition->uuid, value);
}

/* The fields that are made of several things. */
enum reading composed_reading(struct engine *engine, const struct field *field, struct entity entity,
                                   struct place place, struct value *value)
{
    int64_t major, minor;
    switch (field->id) {
    case DCGM_FI_SYSTEM_GPU_QUANTITY:
        return number_reading(topology_gpus(engine), value);
    case DCGM_FI_DEV_GPU_NAME:
    case DCGM_FI_DEV_GPU_UUID:
    case DCGM_FI_CUDA_GPU_VISIBLE_DEVICES:
        return identity_reading(engine, field, entity, place, value);
    case DCGM_FI_DEV_GPU_BRAND:
        return text_reading("NVIDIA", value);
    case DCGM_FI_DEV_NVML_INDEX:
        return number_reading(place.gpu, value);
    case DCGM_FI_CUDA_GPU_COMPUTE_CAPABILITY:
        if (!scripted_integer(place, "cuda.major", &major) || !scripted_integer(place, "cuda.minor", &minor))
            return blank_reading(field, NOT_SUPPORTED, value);
        return number_reading((double)(major << 16 | minor), value);
    case DCGM_FI_DEV_MIG_MODE:
        return number_reading(scripted_mig(place.gpu), value);
    case DCGM_FI_DEV_FABRIC_MANAGER_STATUS:
    case DCGM_FI_DEV_FABRIC_MANAGER_ERROR:
        return fabric_reading(field, place, value);
    case DCGM_FI_DEV_FB_FREE:
    case DCGM_FI_DEV_FB_USED_RATIO:
        return memory_reading(field, place, value);
    case DCGM_FI_DEV_GPU_VIRTUAL_MODE:
        return number_reading(0, value);
    default:
        return blank_reading(field, NOT_SUPPORTED, value);
    }
}

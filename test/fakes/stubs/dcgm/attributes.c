#include <string.h>

#include "internal.h"

/* What dcgmGetDeviceAttributes returns is read live from the fields of the same
 * meaning, as in the real library. */

static struct value live(struct engine *engine, unsigned gpu, uint16_t id)
{
    const struct field *field = field_find(id);
    struct value value = {.type = field->type};
    if (read_field(engine, field, (struct entity){DCGM_FE_GPU, gpu}, NULL, engine_now(), &value) != READ_VALUE)
        blank(field->type, 0, &value);
    return value;
}

/* A blank of 64 bits becomes the like one of 32. */
static unsigned live_number(struct engine *engine, unsigned gpu, uint16_t id)
{
    struct value value = live(engine, gpu, id);
    if (value.type == DCGM_FT_DOUBLE)
        return DCGM_FP64_IS_BLANK(value.f64) ? (unsigned)(DCGM_INT32_BLANK + (int)(value.f64 - DCGM_FP64_BLANK))
                                             : (unsigned)value.f64;
    return DCGM_INT64_IS_BLANK(value.i64) ? (unsigned)(DCGM_INT32_BLANK + (int)(value.i64 - DCGM_INT64_BLANK))
                                          : (unsigned)value.i64;
}

static void live_text(struct engine *engine, unsigned gpu, uint16_t id, char text[DCGM_MAX_STR_LENGTH])
{
    strcpy(text, live(engine, gpu, id).text);
}

static void identify(struct engine *engine, unsigned gpu, dcgmDeviceIdentifiers_t *identifiers)
{
    identifiers->version = dcgmDeviceIdentifiers_version1;
    live_text(engine, gpu, 51, identifiers->brandName);
    live_text(engine, gpu, 50, identifiers->deviceName);
    live_text(engine, gpu, 57, identifiers->pciBusId);
    live_text(engine, gpu, 53, identifiers->serial);
    live_text(engine, gpu, 54, identifiers->uuid);
    live_text(engine, gpu, 85, identifiers->vbios);
    live_text(engine, gpu, 82, identifiers->inforomImageVersion);
    live_text(engine, gpu, 1, identifiers->driverVersion);
    identifiers->pciDeviceId = live_number(engine, gpu, 58);
    identifiers->pciSubSystemId = live_number(engine, gpu, 59);
    identifiers->virtualizationMode = live_number(engine, gpu, 500);
}

dcgmReturn_t answer_device_attributes(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    unsigned gpu = wire_u32(request);
    dcgmDeviceAttributes_t attributes = {.version = dcgmDeviceAttributes_version3};
    if (topology_status(engine, gpu) == DcgmEntityStatusUnknown)
        return DCGM_ST_BADPARAM;
    identify(engine, gpu, &attributes.identifiers);
    attributes.clockSets.version = dcgmDeviceSupportedClockSets_version1;
    attributes.thermalSettings.version = dcgmDeviceThermals_version1;
    attributes.thermalSettings.slowdownTemp = live_number(engine, gpu, 158);
    attributes.thermalSettings.shutdownTemp = live_number(engine, gpu, 159);
    attributes.powerLimits.version = dcgmDevicePowerLimits_version1;
    attributes.powerLimits.curPowerLimit = live_number(engine, gpu, 160);
    attributes.powerLimits.minPowerLimit = live_number(engine, gpu, 161);
    attributes.powerLimits.maxPowerLimit = live_number(engine, gpu, 162);
    attributes.powerLimits.defaultPowerLimit = live_number(engine, gpu, 163);
    attributes.powerLimits.enforcedPowerLimit = live_number(engine, gpu, 164);
    attributes.memoryUsage.version = dcgmDeviceMemoryUsage_version1;
    attributes.memoryUsage.bar1Total = live_number(engine, gpu, 90);
    attributes.memoryUsage.fbTotal = live_number(engine, gpu, 250);
    attributes.memoryUsage.fbUsed = live_number(engine, gpu, 252);
    attributes.memoryUsage.fbFree = live_number(engine, gpu, 251);
    attributes.settings.migModeEnabled = live_number(engine, gpu, 67);
    attributes.settings.persistenceModeEnabled = live_number(engine, gpu, 66);
    attributes.settings.confidentialComputeMode = live_number(engine, gpu, 74);
    wire_put(reply, &attributes, sizeof attributes);
    return DCGM_ST_OK;
}

/* One group: the scripted models count everything at once. */
dcgmReturn_t answer_metric_groups(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    dcgmProfGetMetricGroups_t groups = {.version = dcgmProfGetMetricGroups_version3, .gpuId = wire_u32(request)};
    if (topology_status(engine, groups.gpuId) == DcgmEntityStatusUnknown)
        return DCGM_ST_BADPARAM;
    groups.numMetricGroups = 1;
    dcgmProfMetricGroupInfo_v2 *group = &groups.metricGroups[0];
    for (unsigned id = 1001; id <= 1016; id++)
        if (field_known((uint16_t)id) && field_find((uint16_t)id)->source != UNSUPPORTED)
            group->fieldIds[group->numFieldIds++] = (unsigned short)id;
    wire_put(reply, &groups, sizeof groups);
    return DCGM_ST_OK;
}

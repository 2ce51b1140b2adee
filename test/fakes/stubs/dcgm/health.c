#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dcgm_errors.h"
#include "internal.h"

/* The systems as hardware.conf names them (gpu.<i>.dcgm.health.<system>), with
 * the error that an incident there is given. */
static const struct {
    const char *name;
    dcgmHealthSystems_t system;
    unsigned error;
} systems[] = {
    {"pcie", DCGM_HEALTH_WATCH_PCIE, DCGM_FR_PCI_REPLAY_RATE},
    {"nvlink", DCGM_HEALTH_WATCH_NVLINK, DCGM_FR_NVLINK_DOWN},
    {"pmu", DCGM_HEALTH_WATCH_PMU, DCGM_FR_UNKNOWN},
    {"mcu", DCGM_HEALTH_WATCH_MCU, DCGM_FR_UNKNOWN},
    {"mem", DCGM_HEALTH_WATCH_MEM, DCGM_FR_VOLATILE_DBE_DETECTED},
    {"sm", DCGM_HEALTH_WATCH_SM, DCGM_FR_UNKNOWN},
    {"inforom", DCGM_HEALTH_WATCH_INFOROM, DCGM_FR_CORRUPT_INFOROM},
    {"thermal", DCGM_HEALTH_WATCH_THERMAL, DCGM_FR_CLOCKS_EVENT_THERMAL},
    {"power", DCGM_HEALTH_WATCH_POWER, DCGM_FR_CLOCKS_EVENT_POWER},
    {"driver", DCGM_HEALTH_WATCH_DRIVER, DCGM_FR_UNKNOWN},
    {"nvswitch_nonfatal", DCGM_HEALTH_WATCH_NVSWITCH_NONFATAL, DCGM_FR_NVSWITCH_NON_FATAL_ERROR},
    {"nvswitch_fatal", DCGM_HEALTH_WATCH_NVSWITCH_FATAL, DCGM_FR_NVSWITCH_FATAL_ERROR},
    {"all", DCGM_HEALTH_WATCH_ALL, DCGM_FR_XID_ERROR},
};

#define SYSTEMS (sizeof systems / sizeof systems[0])

dcgmReturn_t answer_health_set(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)reply;
    struct group *group = group_find(engine, wire_u32(request));
    if (!group)
        return DCGM_ST_NOT_CONFIGURED;
    group->health = wire_u32(request);
    return DCGM_ST_OK;
}

dcgmReturn_t answer_health_get(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    const struct group *group = group_find(engine, wire_u32(request));
    if (!group)
        return DCGM_ST_NOT_CONFIGURED;
    wire_put_u32(reply, group->health);
    return DCGM_ST_OK;
}

/* Reads "warn", or "fail and why", or "warn/101" for another error. */
static bool read_incident(unsigned gpu, unsigned system, dcgmIncidentInfo_t *incident)
{
    char key[64], text[512], *message;
    snprintf(key, sizeof key, "dcgm.health.%s", systems[system].name);
    if (!scripted_line((struct place){gpu, -1, -1}, key, text, sizeof text))
        return false;
    memset(incident, 0, sizeof *incident);
    message = strpbrk(text, " \t");
    if (message)
        *message++ = '\0';
    char *error = strchr(text, '/');
    if (error)
        *error++ = '\0';
    if (!strcmp(text, "warn"))
        incident->health = DCGM_HEALTH_RESULT_WARN;
    else if (!strcmp(text, "fail"))
        incident->health = DCGM_HEALTH_RESULT_FAIL;
    else
        return false;
    incident->system = systems[system].system;
    incident->error.code = error ? (unsigned)strtoul(error, NULL, 10) : systems[system].error;
    if (message)
        snprintf(incident->error.msg, sizeof incident->error.msg, "%s", message);
    else
        snprintf(incident->error.msg, sizeof incident->error.msg, "GPU %u: the %s watch says %s.", gpu, systems[system].name, text);
    incident->entityInfo.entityGroupId = DCGM_FE_GPU;
    incident->entityInfo.entityId = gpu;
    return true;
}

dcgmReturn_t answer_health_check(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    const struct group *group = group_find(engine, wire_u32(request));
    if (!group)
        return DCGM_ST_NOT_CONFIGURED;
    struct wire incidents = {0};
    uint32_t count = 0, worst = DCGM_HEALTH_RESULT_PASS;
    for (unsigned e = 0; e < group->count; e++)
        for (unsigned system = 0; group->entities[e].group == DCGM_FE_GPU && system < SYSTEMS; system++) {
            dcgmIncidentInfo_t incident;
            if (!(group->health & systems[system].system) || !read_incident(group->entities[e].id, system, &incident))
                continue;
            wire_put(&incidents, &incident, sizeof incident);
            count++;
            if (incident.health > worst)
                worst = incident.health;
        }
    wire_put_u32(reply, worst);
    wire_put_u32(reply, count);
    wire_put(reply, incidents.bytes, incidents.length);
    wire_free(&incidents);
    return DCGM_ST_OK;
}

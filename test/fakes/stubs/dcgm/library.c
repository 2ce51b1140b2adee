/* libdcgm.so.4: starting, connecting, groups, fields and watches. Each function
 * checks its arguments as the real one does and asks the engine. */
#define DCGM_API_EXPORT /* all that the headers declare public */

#include <string.h>

#include "dcgm_agent.h"
#include "faults.h"
#include "fields.h"
#include "session.h"
#include "version.h"

dcgmReturn_t dcgmInit(void)
{
    dcgmReturn_t status = (dcgmReturn_t)fault("dcgmInit");
    return status == DCGM_ST_OK ? session_init() : status;
}

dcgmReturn_t dcgmShutdown(void) { return session_shutdown(); }

dcgmReturn_t dcgmStartEmbedded(dcgmOperationMode_t mode, dcgmHandle_t *handle)
{
    if (!handle || (mode != DCGM_OPERATION_MODE_AUTO && mode != DCGM_OPERATION_MODE_MANUAL))
        return DCGM_ST_BADPARAM;
    dcgmReturn_t status = (dcgmReturn_t)fault("dcgmStartEmbedded");
    return status == DCGM_ST_OK ? session_embed(mode == DCGM_OPERATION_MODE_AUTO, handle) : status;
}

dcgmReturn_t dcgmStartEmbedded_v2(dcgmStartEmbeddedV2Params_v1 *params)
{
    if (!params)
        return DCGM_ST_BADPARAM;
    if (params->version != dcgmStartEmbeddedV2Params_version1 && params->version != dcgmStartEmbeddedV2Params_version2
        && params->version != dcgmStartEmbeddedV2Params_version3)
        return DCGM_ST_VER_MISMATCH;
    return dcgmStartEmbedded(params->opMode, &params->dcgmHandle); /* they begin alike */
}

dcgmReturn_t dcgmStopEmbedded(dcgmHandle_t handle) { return session_stop(handle); }

static dcgmReturn_t connect_to(const char *address, bool path, bool persist, unsigned timeout, dcgmHandle_t *handle)
{
    if (!address || !address[0] || !handle)
        return DCGM_ST_BADPARAM;
    return session_connect(address, path, persist, timeout, handle);
}

dcgmReturn_t dcgmConnect(const char *address, dcgmHandle_t *handle)
{
    return connect_to(address, false, false, 0, handle);
}

dcgmReturn_t dcgmConnect_v2(const char *address, dcgmConnectV2Params_t *params, dcgmHandle_t *handle)
{
    if (!params)
        return DCGM_ST_BADPARAM;
    if (params->version == dcgmConnectV2Params_version1)
        return connect_to(address, false, params->persistAfterDisconnect, 0, handle);
    if (params->version != dcgmConnectV2Params_version2)
        return DCGM_ST_VER_MISMATCH;
    return connect_to(address, params->addressIsUnixSocket, params->persistAfterDisconnect, params->timeoutMs, handle);
}

dcgmReturn_t dcgmConnect_v3(const char *address, dcgmConnectV3Params_t *params, dcgmHandle_t *handle)
{
    if (!params)
        return DCGM_ST_BADPARAM;
    if (params->version != dcgmConnectV3Params_version1)
        return DCGM_ST_VER_MISMATCH;
    return connect_to(address, false, params->persistAfterDisconnect, params->timeoutMs, handle);
}

dcgmReturn_t dcgmDisconnect(dcgmHandle_t handle) { return session_disconnect(handle); }

dcgmReturn_t dcgmVersionInfo(dcgmVersionInfo_t *info)
{
    if (!info)
        return DCGM_ST_BADPARAM;
    if (info->version != dcgmVersionInfo_version2)
        return DCGM_ST_VER_MISMATCH;
    version_text(info->rawBuildInfoString, sizeof info->rawBuildInfoString);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmHostengineVersionInfo(dcgmHandle_t handle, dcgmVersionInfo_t *info)
{
    if (!info)
        return DCGM_ST_BADPARAM;
    if (info->version != dcgmVersionInfo_version2)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0}, reply = {0};
    dcgmReturn_t status = session_call(handle, CALL_VERSION, &request, &reply);
    if (status == DCGM_ST_OK)
        wire_string(&reply, info->rawBuildInfoString, sizeof info->rawBuildInfoString);
    unterminate("dcgmHostengineVersionInfo", info->rawBuildInfoString, sizeof info->rawBuildInfoString);
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmGroupCreate(dcgmHandle_t handle, dcgmGroupType_t type, const char *name, dcgmGpuGrp_t *group)
{
    if (!name || !group)
        return DCGM_ST_BADPARAM;
    struct wire request = {0}, reply = {0};
    wire_put_u32(&request, (uint32_t)type);
    wire_put_string(&request, name);
    dcgmReturn_t status = session_call(handle, CALL_GROUP_CREATE, &request, &reply);
    if (status == DCGM_ST_OK)
        *group = wire_u32(&reply);
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmGroupDestroy(dcgmHandle_t handle, dcgmGpuGrp_t group)
{
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    return session_call(handle, CALL_GROUP_DESTROY, &request, NULL);
}

static dcgmReturn_t change_group(dcgmHandle_t handle, enum call call, dcgmGpuGrp_t group,
                                 dcgm_field_entity_group_t entity_group, dcgm_field_eid_t entity)
{
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    wire_put_u32(&request, (uint32_t)entity_group);
    wire_put_u32(&request, entity);
    return session_call(handle, call, &request, NULL);
}

dcgmReturn_t dcgmGroupAddEntity(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgm_field_entity_group_t entity_group,
                                dcgm_field_eid_t entity)
{
    return change_group(handle, CALL_GROUP_ADD, group, entity_group, entity);
}

dcgmReturn_t dcgmGroupAddDevice(dcgmHandle_t handle, dcgmGpuGrp_t group, unsigned int gpu)
{
    return change_group(handle, CALL_GROUP_ADD, group, DCGM_FE_GPU, gpu);
}

dcgmReturn_t dcgmGroupRemoveEntity(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgm_field_entity_group_t entity_group,
                                   dcgm_field_eid_t entity)
{
    return change_group(handle, CALL_GROUP_REMOVE, group, entity_group, entity);
}

dcgmReturn_t dcgmGroupRemoveDevice(dcgmHandle_t handle, dcgmGpuGrp_t group, unsigned int gpu)
{
    return change_group(handle, CALL_GROUP_REMOVE, group, DCGM_FE_GPU, gpu);
}

dcgmReturn_t dcgmGroupGetInfo(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmGroupInfo_t *info)
{
    if (!info)
        return DCGM_ST_BADPARAM;
    if (info->version != dcgmGroupInfo_version3)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0}, reply = {0};
    wire_put_u32(&request, (uint32_t)group);
    dcgmReturn_t status = session_call(handle, CALL_GROUP_INFO, &request, &reply);
    if (status == DCGM_ST_OK) {
        wire_string(&reply, info->groupName, sizeof info->groupName);
        info->count = wire_u32(&reply);
        for (unsigned i = 0; i < info->count; i++) {
            info->entityList[i].entityGroupId = wire_u32(&reply);
            info->entityList[i].entityId = wire_u32(&reply);
        }
    }
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t handle, int count, const unsigned short *fields, const char *name,
                                  dcgmFieldGrp_t *group)
{
    if (count < 1 || !fields || !name || !group)
        return DCGM_ST_BADPARAM;
    struct wire request = {0}, reply = {0};
    wire_put_string(&request, name);
    wire_put_u32(&request, (uint32_t)count);
    for (int i = 0; i < count; i++)
        wire_put_u32(&request, fields[i]);
    dcgmReturn_t status = session_call(handle, CALL_FIELD_GROUP_CREATE, &request, &reply);
    if (status == DCGM_ST_OK)
        *group = wire_u32(&reply);
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmFieldGroupDestroy(dcgmHandle_t handle, dcgmFieldGrp_t group)
{
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    return session_call(handle, CALL_FIELD_GROUP_DESTROY, &request, NULL);
}

dcgmReturn_t dcgmWatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields, long long interval,
                             double age, int samples)
{
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    wire_put_u32(&request, (uint32_t)fields);
    wire_put_i64(&request, interval);
    wire_put_f64(&request, age);
    wire_put_u32(&request, (uint32_t)samples);
    return session_call(handle, CALL_WATCH, &request, NULL);
}

dcgmReturn_t dcgmUnwatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields)
{
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    wire_put_u32(&request, (uint32_t)fields);
    return session_call(handle, CALL_UNWATCH, &request, NULL);
}

dcgmReturn_t dcgmUpdateAllFields(dcgmHandle_t handle, int wait)
{
    (void)wait;
    struct wire request = {0};
    return session_call(handle, CALL_UPDATE, &request, NULL);
}

int DcgmFieldsInit(void) { return 0; }
int DcgmFieldsTerm(void) { return 0; }

dcgm_field_meta_p DcgmFieldGetById(unsigned short id) { return field_known(id) ? field_metadata(id) : NULL; }

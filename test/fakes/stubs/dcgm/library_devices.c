/* libdcgm.so.4: what devices there are, how they are, and the part of the
 * real library that is not used here. */
#define DCGM_API_EXPORT /* all that the headers declare public */

#include <stdbool.h>
#include <string.h>

#include "dcgm_agent.h"
#include "dcgm_errors.h"
#include "dcgm_test_apis.h"
#include "faults.h"
#include "session.h"

/* Asks for a structure that travels as it is: both ends are built from the
 * same headers. Its version comes first and is the caller's. */
static dcgmReturn_t ask_structure(dcgmHandle_t handle, enum call call, struct wire *request, void *structure, size_t size)
{
    struct wire reply = {0};
    dcgmReturn_t status = session_call(handle, call, request, &reply);
    if (status == DCGM_ST_OK)
        wire_get(&reply, structure, size);
    wire_free(&reply);
    return status;
}

static dcgmReturn_t ask_list(dcgmHandle_t handle, enum call call, struct wire *request, unsigned *list, int *count, int most)
{
    struct wire reply = {0};
    dcgmReturn_t status = session_call(handle, call, request, &reply);
    if (status == DCGM_ST_OK) {
        *count = (int)wire_u32(&reply);
        if (*count > most)
            status = DCGM_ST_INSUFFICIENT_SIZE;
        for (int i = 0; status == DCGM_ST_OK && i < *count; i++)
            list[i] = wire_u32(&reply);
    }
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmGetAllDevices(dcgmHandle_t handle, unsigned int gpus[DCGM_MAX_NUM_DEVICES], int *count)
{
    struct wire request = {0};
    return gpus && count ? ask_list(handle, CALL_ALL_DEVICES, &request, gpus, count, DCGM_MAX_NUM_DEVICES) : DCGM_ST_BADPARAM;
}

dcgmReturn_t dcgmGetAllSupportedDevices(dcgmHandle_t handle, unsigned int gpus[DCGM_MAX_NUM_DEVICES], int *count)
{
    struct wire request = {0};
    return gpus && count ? ask_list(handle, CALL_SUPPORTED_DEVICES, &request, gpus, count, DCGM_MAX_NUM_DEVICES) : DCGM_ST_BADPARAM;
}

dcgmReturn_t dcgmGetEntityGroupEntities(dcgmHandle_t handle, dcgm_field_entity_group_t group, dcgm_field_eid_t *entities,
                                        int *count, unsigned int flags)
{
    if (!entities || !count)
        return DCGM_ST_BADPARAM;
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    wire_put_u32(&request, flags);
    dcgmReturn_t status = ask_list(handle, CALL_ENTITIES, &request, entities, count, *count);
    *count = (int)claimed("dcgmGetEntityGroupEntities", *count);
    return status;
}

dcgmReturn_t dcgmGetGpuStatus(dcgmHandle_t handle, unsigned int gpu, DcgmEntityStatus_t *status)
{
    if (!status)
        return DCGM_ST_BADPARAM;
    struct wire request = {0}, reply = {0};
    wire_put_u32(&request, gpu);
    dcgmReturn_t result = session_call(handle, CALL_GPU_STATUS, &request, &reply);
    if (result == DCGM_ST_OK)
        *status = (DcgmEntityStatus_t)wire_u32(&reply);
    wire_free(&reply);
    return result;
}

dcgmReturn_t dcgmGetDeviceAttributes(dcgmHandle_t handle, unsigned int gpu, dcgmDeviceAttributes_t *attributes)
{
    if (!attributes)
        return DCGM_ST_BADPARAM;
    if (attributes->version != dcgmDeviceAttributes_version3)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0};
    wire_put_u32(&request, gpu);
    return ask_structure(handle, CALL_DEVICE_ATTRIBUTES, &request, attributes, sizeof *attributes);
}

dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t handle, dcgmMigHierarchy_v2 *hierarchy)
{
    if (!hierarchy)
        return DCGM_ST_BADPARAM;
    if (hierarchy->version != dcgmMigHierarchy_version2)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0};
    dcgmReturn_t status = ask_structure(handle, CALL_HIERARCHY, &request, hierarchy, sizeof *hierarchy);
    hierarchy->count = (unsigned)claimed("dcgmGetGpuInstanceHierarchy", hierarchy->count);
    return status;
}

dcgmReturn_t dcgmGetNvLinkLinkStatus(dcgmHandle_t handle, dcgmNvLinkStatus_v5 *links)
{
    if (!links)
        return DCGM_ST_BADPARAM;
    if (links->version != dcgmNvLinkStatus_version5)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0};
    dcgmReturn_t status = ask_structure(handle, CALL_NVLINK_STATUS, &request, links, sizeof *links);
    links->numGpus = (unsigned)claimed("dcgmGetNvLinkLinkStatus", links->numGpus);
    return status;
}

dcgmReturn_t dcgmProfGetSupportedMetricGroups(dcgmHandle_t handle, dcgmProfGetMetricGroups_t *groups)
{
    if (!groups)
        return DCGM_ST_BADPARAM;
    if (groups->version != dcgmProfGetMetricGroups_version3)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0};
    wire_put_u32(&request, groups->gpuId);
    return ask_structure(handle, CALL_METRIC_GROUPS, &request, groups, sizeof *groups);
}

dcgmReturn_t dcgmHealthSet(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmHealthSystems_t systems)
{
    struct wire request = {0};
    wire_put_u32(&request, (uint32_t)group);
    wire_put_u32(&request, (uint32_t)systems);
    return session_call(handle, CALL_HEALTH_SET, &request, NULL);
}

dcgmReturn_t dcgmHealthSet_v2(dcgmHandle_t handle, dcgmHealthSetParams_v2 *params)
{
    if (!params)
        return DCGM_ST_BADPARAM;
    if (params->version != dcgmHealthSetParams_version2)
        return DCGM_ST_VER_MISMATCH;
    return dcgmHealthSet(handle, params->groupId, params->systems);
}

dcgmReturn_t dcgmHealthGet(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmHealthSystems_t *systems)
{
    if (!systems)
        return DCGM_ST_BADPARAM;
    struct wire request = {0}, reply = {0};
    wire_put_u32(&request, (uint32_t)group);
    dcgmReturn_t status = session_call(handle, CALL_HEALTH_GET, &request, &reply);
    if (status == DCGM_ST_OK)
        *systems = (dcgmHealthSystems_t)wire_u32(&reply);
    wire_free(&reply);
    return status;
}

dcgmReturn_t dcgmHealthCheck(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmHealthResponse_t *response)
{
    if (!response)
        return DCGM_ST_BADPARAM;
    if (response->version != dcgmHealthResponse_version5)
        return DCGM_ST_VER_MISMATCH;
    struct wire request = {0}, reply = {0};
    wire_put_u32(&request, (uint32_t)group);
    dcgmReturn_t status = session_call(handle, CALL_HEALTH_CHECK, &request, &reply);
    if (status == DCGM_ST_OK) {
        response->overallHealth = (dcgmHealthWatchResults_t)wire_u32(&reply);
        response->incidentCount = wire_u32(&reply);
        for (unsigned i = 0; i < response->incidentCount; i++)
            wire_get(&reply, &response->incidents[i], sizeof response->incidents[i]);
        for (unsigned i = 0; i < DCGM_HEALTH_WATCH_MAX_INCIDENTS_V2; i++)
            unterminate("dcgmHealthCheck", response->incidents[i].error.msg, sizeof response->incidents[i].error.msg);
        response->incidentCount = (unsigned)claimed("dcgmHealthCheck", response->incidentCount);
    }
    wire_free(&reply);
    return status;
}

/* What changes something: it is counted, and nothing changes. */
static dcgmReturn_t setting(dcgmHandle_t handle)
{
    struct wire request = {0};
    return session_call(handle, CALL_SETTING, &request, NULL);
}

dcgmReturn_t dcgmPolicySet(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmPolicy_t *policy, dcgmStatus_t statuses)
{
    (void)group, (void)policy, (void)statuses;
    return setting(handle);
}

dcgmReturn_t dcgmPolicyRegister_v2(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmPolicyCondition_t condition,
                                   fpRecvUpdates callback, uint64_t data)
{
    (void)group, (void)condition, (void)callback, (void)data;
    return setting(handle);
}

dcgmReturn_t dcgmConfigSet(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmConfig_t *config, dcgmStatus_t statuses)
{
    (void)group, (void)config, (void)statuses;
    return setting(handle);
}

dcgmReturn_t dcgmProfPause(dcgmHandle_t handle) { return setting(handle); }
dcgmReturn_t dcgmAttachDriver(dcgmHandle_t handle) { return setting(handle); }
dcgmReturn_t dcgmDetachDriver(dcgmHandle_t handle) { return setting(handle); }

/* What the binding refers to and is not used here. */
#define UNSUPPORTED(function, ...) \
    dcgmReturn_t function(__VA_ARGS__) { return DCGM_ST_NOT_SUPPORTED; }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
UNSUPPORTED(dcgmGetDeviceTopology, dcgmHandle_t handle, unsigned int gpu, dcgmDeviceTopology_v2 *topology)
UNSUPPORTED(dcgmGetNvLinkP2PStatus, dcgmHandle_t handle, dcgmNvLinkP2PStatus_v1 *links)
UNSUPPORTED(dcgmGetCpuHierarchy, dcgmHandle_t handle, dcgmCpuHierarchy_v1 *hierarchy)
UNSUPPORTED(dcgmGetCpuHierarchy_v2, dcgmHandle_t handle, dcgmCpuHierarchy_v2 *hierarchy)
UNSUPPORTED(dcgmPolicyGet, dcgmHandle_t handle, dcgmGpuGrp_t group, int count, dcgmPolicy_t *policy, dcgmStatus_t statuses)
UNSUPPORTED(dcgmPolicyUnregister, dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmPolicyCondition_t condition)
UNSUPPORTED(dcgmWatchPidFields, dcgmHandle_t handle, dcgmGpuGrp_t group, long long interval, double age, int samples)
UNSUPPORTED(dcgmGetPidInfo, dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmPidInfo_t *info)
UNSUPPORTED(dcgmIntrospectGetHostengineMemoryUsage, dcgmHandle_t handle, dcgmIntrospectMemory_t *memory, int wait)
UNSUPPORTED(dcgmIntrospectGetHostengineCpuUtilization, dcgmHandle_t handle, dcgmIntrospectCpuUtil_t *processor, int wait)
UNSUPPORTED(dcgmRunDiagnostic, dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmDiagnosticLevel_t level, dcgmDiagResponse_v12 *response)
UNSUPPORTED(dcgmInjectFieldValue, dcgmHandle_t handle, unsigned int gpu, dcgmInjectFieldValue_t *value)
UNSUPPORTED(dcgmCreateFakeEntities, dcgmHandle_t handle, dcgmCreateFakeEntities_t *entities)
#pragma GCC diagnostic pop

const dcgm_error_meta_t *dcgmGetErrorMeta(dcgmError_t error)
{
    (void)error;
    return NULL;
}

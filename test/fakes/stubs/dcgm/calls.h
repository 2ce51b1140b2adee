/* The functions of libdcgm that a host engine answers. Their numbers are what
 * travels; their names are what hardware.conf calls them
 * (node.dcgm.return.<function>, node.dcgm.hang.<function>). */
#ifndef STUB_DCGM_CALLS_H
#define STUB_DCGM_CALLS_H

#define CALLS(call)                            \
    call(INSPECT, "inspect")                   \
    call(CONNECT, "dcgmConnect")               \
    call(VERSION, "dcgmHostengineVersionInfo") \
    call(ALL_DEVICES, "dcgmGetAllDevices")     \
    call(SUPPORTED_DEVICES, "dcgmGetAllSupportedDevices") \
    call(ENTITIES, "dcgmGetEntityGroupEntities") \
    call(GPU_STATUS, "dcgmGetGpuStatus")       \
    call(DEVICE_ATTRIBUTES, "dcgmGetDeviceAttributes") \
    call(HIERARCHY, "dcgmGetGpuInstanceHierarchy") \
    call(NVLINK_STATUS, "dcgmGetNvLinkLinkStatus") \
    call(GROUP_CREATE, "dcgmGroupCreate")      \
    call(GROUP_DESTROY, "dcgmGroupDestroy")    \
    call(GROUP_ADD, "dcgmGroupAddEntity")      \
    call(GROUP_REMOVE, "dcgmGroupRemoveEntity") \
    call(GROUP_INFO, "dcgmGroupGetInfo")       \
    call(FIELD_GROUP_CREATE, "dcgmFieldGroupCreate") \
    call(FIELD_GROUP_DESTROY, "dcgmFieldGroupDestroy") \
    call(WATCH, "dcgmWatchFields")             \
    call(UNWATCH, "dcgmUnwatchFields")         \
    call(UPDATE, "dcgmUpdateAllFields")        \
    call(LATEST, "dcgmEntitiesGetLatestValues") \
    call(SINCE, "dcgmGetValuesSince_v2")       \
    call(HEALTH_SET, "dcgmHealthSet")          \
    call(HEALTH_GET, "dcgmHealthGet")          \
    call(HEALTH_CHECK, "dcgmHealthCheck")      \
    call(METRIC_GROUPS, "dcgmProfGetSupportedMetricGroups") \
    call(SETTING, "setting")

enum call {
#define CALL_NUMBER(number, name) CALL_##number,
    CALLS(CALL_NUMBER)
#undef CALL_NUMBER
    CALL_COUNT
};

/* The name of a call, or NULL. */
const char *call_name(enum call call);

#endif

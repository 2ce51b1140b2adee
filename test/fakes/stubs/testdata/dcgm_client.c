/* A client of libdcgm.so.4 in C, for what no binding does: wrong versions of
 * structures, missing arguments, calls out of order, threads. It is linked with
 * the library; its only argument is the address of a host engine, a Unix
 * socket. It prints what is wrong and ends with 1, or ends with 0. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dcgm_agent.h"

static int failures;

static void check(const char *what, int got, int want)
{
    if (got == want)
        return;
    printf("%s: %d (%s), want %d\n", what, got, errorString(got), want);
    failures++;
}

static void check_order(void)
{
    dcgmHandle_t handle, again;
    check("start before init", dcgmStartEmbedded(DCGM_OPERATION_MODE_AUTO, &handle), DCGM_ST_UNINITIALIZED);
    check("shutdown before init", dcgmShutdown(), DCGM_ST_UNINITIALIZED);
    check("ask before init", dcgmUpdateAllFields(1, 1), DCGM_ST_UNINITIALIZED);
    check("init", dcgmInit(), DCGM_ST_OK);
    check("ask without a connection", dcgmUpdateAllFields(4711, 1), DCGM_ST_CONNECTION_NOT_VALID);
    check("stop nothing", dcgmStopEmbedded(4711), DCGM_ST_CONNECTION_NOT_VALID);
    check("start", dcgmStartEmbedded(DCGM_OPERATION_MODE_AUTO, &handle), DCGM_ST_OK);
    check("start again", dcgmStartEmbedded(DCGM_OPERATION_MODE_AUTO, &again), DCGM_ST_OK);
    check("the same engine", (int)again, (int)handle);
    check("disconnect an embedded engine", dcgmDisconnect(handle), DCGM_ST_BADPARAM);
    check("stop", dcgmStopEmbedded(handle), DCGM_ST_OK);
    check("stop again", dcgmStopEmbedded(handle), DCGM_ST_CONNECTION_NOT_VALID);
    check("shutdown", dcgmShutdown(), DCGM_ST_OK);
}

static void check_versions(dcgmHandle_t handle)
{
    static dcgmMigHierarchy_v2 hierarchy = {.version = dcgmMigHierarchy_version2 + 1};
    static dcgmHealthResponse_t health = {.version = dcgmHealthResponse_version5 - 1};
    static dcgmGroupInfo_t group = {.version = dcgmGroupInfo_version2};
    dcgmNvLinkStatus_v5 links = {.version = dcgmNvLinkStatus_version4};
    dcgmDeviceAttributes_t attributes = {.version = 0};
    dcgmProfGetMetricGroups_t metrics = {.version = 1};
    dcgmVersionInfo_t version = {.version = 1};
    dcgmConnectV2Params_t params = {.version = 77};
    dcgmConnectV3Params_t newer = {.version = 77};
    dcgmHandle_t other;
    check("hierarchy", dcgmGetGpuInstanceHierarchy(handle, &hierarchy), DCGM_ST_VER_MISMATCH);
    check("health", dcgmHealthCheck(handle, 0, &health), DCGM_ST_VER_MISMATCH);
    check("group", dcgmGroupGetInfo(handle, 0, &group), DCGM_ST_VER_MISMATCH);
    check("links", dcgmGetNvLinkLinkStatus(handle, &links), DCGM_ST_VER_MISMATCH);
    check("attributes", dcgmGetDeviceAttributes(handle, 0, &attributes), DCGM_ST_VER_MISMATCH);
    check("metrics", dcgmProfGetSupportedMetricGroups(handle, &metrics), DCGM_ST_VER_MISMATCH);
    check("version", dcgmVersionInfo(&version), DCGM_ST_VER_MISMATCH);
    check("engine's version", dcgmHostengineVersionInfo(handle, &version), DCGM_ST_VER_MISMATCH);
    check("connect", dcgmConnect_v2("127.0.0.1", &params, &other), DCGM_ST_VER_MISMATCH);
    check("connect by string", dcgmConnect_v3("tcp://127.0.0.1", &newer, &other), DCGM_ST_VER_MISMATCH);
}

static void check_arguments(dcgmHandle_t handle)
{
    dcgmGroupEntityPair_t pair = {DCGM_FE_GPU, 0};
    unsigned short field = DCGM_FI_DEV_GPU_TEMP_CELSIUS;
    dcgmFieldValue_v2 value;
    dcgmGpuGrp_t group;
    int count = 0;
    check("values of nothing", dcgmEntitiesGetLatestValues(handle, &pair, 0, &field, 1, 0, &value), DCGM_ST_BADPARAM);
    check("values of no field", dcgmEntitiesGetLatestValues(handle, &pair, 1, &field, 0, 0, &value), DCGM_ST_BADPARAM);
    check("values to nowhere", dcgmEntitiesGetLatestValues(handle, &pair, 1, &field, 1, 0, NULL), DCGM_ST_BADPARAM);
    check("a group without a name", dcgmGroupCreate(handle, DCGM_GROUP_EMPTY, NULL, &group), DCGM_ST_BADPARAM);
    check("a group of no type", dcgmGroupCreate(handle, 99, "name", &group), DCGM_ST_BADPARAM);
    check("too short a list", dcgmGetEntityGroupEntities(handle, DCGM_FE_GPU, &pair.entityId, &count, 0), DCGM_ST_INSUFFICIENT_SIZE);
    check("no hierarchy", dcgmGetGpuInstanceHierarchy(handle, NULL), DCGM_ST_BADPARAM);
    check("an empty address", dcgmConnect("", &handle), DCGM_ST_BADPARAM);
}

static dcgmHandle_t shared;

static void *ask(void *unused)
{
    unsigned gpus[DCGM_MAX_NUM_DEVICES];
    int count, status;
    (void)unused;
    do
        status = dcgmGetAllDevices(shared, gpus, &count);
    while (status == DCGM_ST_OK);
    check("a call that is cut off", status, DCGM_ST_CONNECTION_NOT_VALID);
    return NULL;
}

/* Ends a connection that four threads ask over. */
static void check_threads(const char *address)
{
    dcgmConnectV3Params_t params = {.version = dcgmConnectV3Params_version1};
    pthread_t threads[4];
    check("connect", dcgmConnect_v3(address, &params, &shared), DCGM_ST_OK);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, ask, NULL);
    usleep(20000);
    check("disconnect", dcgmDisconnect(shared), DCGM_ST_OK);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check("disconnect again", dcgmDisconnect(shared), DCGM_ST_CONNECTION_NOT_VALID);
}

static void *hang(void *unused)
{
    unsigned gpus[DCGM_MAX_NUM_DEVICES];
    int count;
    (void)unused;
    check("a call that hangs", dcgmGetAllSupportedDevices(shared, gpus, &count), DCGM_ST_CONNECTION_NOT_VALID);
    return NULL;
}

/* Ends a connection under a call that the engine never answers: the script
 * has dcgmGetAllSupportedDevices hang. */
static void check_hang(const char *address)
{
    dcgmConnectV3Params_t params = {.version = dcgmConnectV3Params_version1};
    pthread_t thread;
    check("connect", dcgmConnect_v3(address, &params, &shared), DCGM_ST_OK);
    pthread_create(&thread, NULL, hang, NULL);
    usleep(50000);
    check("disconnect", dcgmDisconnect(shared), DCGM_ST_OK);
    pthread_join(thread, NULL);
}

/* What a connection has made outlives it where that was asked for. */
static void check_persistence(const char *path)
{
    dcgmConnectV2Params_t params = {.version = dcgmConnectV2Params_version2, .addressIsUnixSocket = 1, .persistAfterDisconnect = 1};
    static dcgmGroupInfo_t info = {.version = dcgmGroupInfo_version3};
    dcgmHandle_t handle;
    dcgmGpuGrp_t group;
    check("connect", dcgmConnect_v2(path, &params, &handle), DCGM_ST_OK);
    check("create", dcgmGroupCreate(handle, DCGM_GROUP_DEFAULT, "kept", &group), DCGM_ST_OK);
    check("disconnect", dcgmDisconnect(handle), DCGM_ST_OK);
    check("connect", dcgmConnect_v2(path, &params, &handle), DCGM_ST_OK);
    check("the group is there", dcgmGroupGetInfo(handle, group, &info), DCGM_ST_OK);
    check("its GPUs", (int)info.count, 2);
    check("its name", strcmp(info.groupName, "kept"), 0);
    check("destroy", dcgmGroupDestroy(handle, group), DCGM_ST_OK);
    check("disconnect", dcgmDisconnect(handle), DCGM_ST_OK);
}

int main(int argc, char **argv)
{
    dcgmConnectV3Params_t params = {.version = dcgmConnectV3Params_version1, .timeoutMs = 1000};
    dcgmHandle_t handle;
    if (argc != 2 || strncmp(argv[1], "unix://", 7))
        return 2;
    alarm(100);
    check_order();
    check("init", dcgmInit(), DCGM_ST_OK);
    check("connect", dcgmConnect_v3(argv[1], &params, &handle), DCGM_ST_OK);
    check("connect without a server", dcgmConnect_v3("unix:///no/server", &params, &handle), DCGM_ST_CONNECTION_NOT_VALID);
    check_versions(handle);
    check_arguments(handle);
    check_persistence(argv[1] + 7);
    for (int i = 0; i < 20; i++)
        check_threads(argv[1]);
    check_hang(argv[1]);
    check("shutdown ends connections", dcgmShutdown(), DCGM_ST_OK);
    check("ask after shutdown", dcgmUpdateAllFields(handle, 1), DCGM_ST_UNINITIALIZED);
    return failures != 0;
}

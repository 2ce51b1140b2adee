#include <stdlib.h>
#include <string.h>

#include "topology.h"

static void put_ids(struct wire *reply, const uint32_t *ids, unsigned count)
{
    wire_put_u32(reply, count);
    for (unsigned i = 0; i < count; i++)
        wire_put_u32(reply, ids[i]);
}

dcgmReturn_t answer_devices(struct engine *engine, bool supported, struct wire *reply)
{
    uint32_t ids[DCGM_MAX_NUM_DEVICES];
    unsigned count = 0;
    for (unsigned gpu = 0; gpu < topology_gpus(engine); gpu++) {
        DcgmEntityStatus_t status = topology_status(engine, gpu);
        if (status == DcgmEntityStatusOk || (!supported && status != DcgmEntityStatusUnknown))
            ids[count++] = gpu;
    }
    put_ids(reply, ids, count);
    return DCGM_ST_OK;
}

dcgmReturn_t answer_entities(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    struct entity entities[DCGM_GROUP_MAX_ENTITIES_V2];
    uint32_t group = wire_u32(request), flags = wire_u32(request);
    if (group == DCGM_FE_GPU)
        return answer_devices(engine, flags & DCGM_GEGE_FLAG_ONLY_SUPPORTED, reply);
    if (group == DCGM_FE_CPU || group == DCGM_FE_CPU_CORE)
        return DCGM_ST_MODULE_NOT_LOADED;
    if (group >= DCGM_FE_COUNT)
        return DCGM_ST_NOT_SUPPORTED;
    unsigned count = topology_entities(engine, group, entities);
    wire_put_u32(reply, count);
    for (unsigned i = 0; i < count; i++)
        wire_put_u32(reply, entities[i].id);
    return DCGM_ST_OK;
}

dcgmReturn_t answer_gpu_status(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection;
    wire_put_u32(reply, topology_status(engine, wire_u32(request)));
    return DCGM_ST_OK;
}

static void describe(unsigned gpu, struct entity entity, struct entity parent, const struct partition *partition,
                     dcgmMigHierarchyInfo_v2 *info)
{
    bool compute = entity.group == DCGM_FE_GPU_CI;
    memset(info, 0, sizeof *info);
    info->entity.entityGroupId = entity.group;
    info->entity.entityId = entity.id;
    info->parent.entityGroupId = parent.group;
    info->parent.entityId = parent.id;
    scripted_text(gpu, "uuid", info->info.gpuUuid, sizeof info->info.gpuUuid);
    info->info.nvmlGpuIndex = gpu;
    info->info.nvmlInstanceId = (unsigned)partition->gi;
    info->info.nvmlComputeInstanceId = compute ? (unsigned)partition->ci : (unsigned)-1;
    info->info.nvmlMigProfileId = compute ? partition->compute_profile : partition->profile;
    info->info.nvmlProfileSlices = compute ? partition->compute_slices : partition->slices;
}

static void describe_gpu(unsigned gpu, const struct view *view, dcgmMigHierarchy_v2 *hierarchy)
{
    for (unsigned i = 0; i < view->instance_count; i++) {
        struct entity instance = {DCGM_FE_GPU_I, gpu * IDS_PER_GPU + i};
        describe(gpu, instance, (struct entity){DCGM_FE_GPU, gpu}, &view->instances[i].partition,
                 &hierarchy->entityList[hierarchy->count++]);
        for (unsigned c = 0; c < view->compute_count; c++)
            if (view->computes[c].instance == i)
                describe(gpu, (struct entity){DCGM_FE_GPU_CI, gpu * IDS_PER_GPU + c}, instance,
                         &view->computes[c].partition, &hierarchy->entityList[hierarchy->count++]);
    }
}

dcgmReturn_t answer_hierarchy(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request;
    dcgmMigHierarchy_v2 *hierarchy = calloc(1, sizeof *hierarchy);
    if (!hierarchy)
        return DCGM_ST_MEMORY;
    hierarchy->version = dcgmMigHierarchy_version2;
    for (unsigned gpu = 0; gpu < topology_gpus(engine); gpu++)
        if (engine->topology->known[gpu])
            describe_gpu(gpu, &engine->topology->views[gpu], hierarchy);
    wire_put(reply, hierarchy, sizeof *hierarchy);
    free(hierarchy);
    return DCGM_ST_OK;
}

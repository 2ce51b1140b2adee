#include <stdlib.h>
#include <string.h>

#include "topology.h"

struct topology *topology_new(void) { return calloc(1, sizeof(struct topology)); }
void topology_free(struct topology *topology) { free(topology); }

unsigned topology_gpus(const struct engine *engine) { return engine->topology->gpus; }

static unsigned instance_of(struct view *view, const struct partition *partition)
{
    for (unsigned i = 0; i < view->instance_count; i++)
        if (view->instances[i].gi == partition->gi)
            return i;
    view->instances[view->instance_count] = (struct instance){partition->gi, *partition};
    return view->instance_count++;
}

static void look(unsigned gpu, struct view *view)
{
    struct partition partitions[2 * IDS_PER_GPU];
    memset(view, 0, sizeof *view);
    view->lost = scripted_absent(gpu) || scripted_lost(gpu);
    if (view->lost)
        return;
    unsigned count = scripted_partitions(gpu, partitions, 2 * IDS_PER_GPU);
    for (unsigned i = 0; i < count; i++) {
        if (view->instance_count == IDS_PER_GPU)
            break;
        unsigned instance = instance_of(view, &partitions[i]);
        if (partitions[i].ci >= 0 && view->compute_count < IDS_PER_GPU)
            view->computes[view->compute_count++] = (struct compute){instance, partitions[i]};
    }
}

/* What was sampled under an id that means something else now is forgotten. */
static void forget_changed(struct engine *engine, unsigned gpu, const struct view *before, const struct view *after)
{
    for (unsigned i = 0; i < IDS_PER_GPU; i++) {
        const struct partition *old = &before->instances[i].partition, *new = &after->instances[i].partition;
        if (i < before->instance_count
            && (i >= after->instance_count || old->gi != new->gi || old->profile != new->profile))
            watches_forget(engine, (struct entity){DCGM_FE_GPU_I, gpu * IDS_PER_GPU + i});
        old = &before->computes[i].partition, new = &after->computes[i].partition;
        if (i < before->compute_count
            && (i >= after->compute_count || old->gi != new->gi || old->ci != new->ci || old->profile != new->profile))
            watches_forget(engine, (struct entity){DCGM_FE_GPU_CI, gpu * IDS_PER_GPU + i});
    }
}

void topology_refresh(struct engine *engine)
{
    struct topology *topology = engine->topology;
    uint64_t generation = scripted_generation();
    if (topology->looked && topology->generation == generation)
        return;
    if (!topology->looked) {
        topology->gpus = scripted_gpus();
        for (unsigned gpu = 0; gpu < topology->gpus; gpu++)
            topology->known[gpu] = !scripted_absent(gpu);
    }
    for (unsigned gpu = 0; gpu < topology->gpus; gpu++) {
        struct view after;
        look(gpu, &after);
        if (topology->looked && !after.lost)
            forget_changed(engine, gpu, &topology->views[gpu], &after);
        /* The partitions of a GPU that is lost stay known, as the GPU does. */
        if (after.lost)
            topology->views[gpu].lost = true;
        else
            topology->views[gpu] = after;
    }
    topology->looked = true;
    topology->generation = generation;
}

bool topology_place(const struct engine *engine, struct entity entity, struct place *place)
{
    const struct topology *topology = engine->topology;
    unsigned gpu = entity.group == DCGM_FE_GPU ? entity.id : entity.id / IDS_PER_GPU;
    unsigned index = entity.id % IDS_PER_GPU;
    if (gpu >= topology->gpus || !topology->known[gpu])
        return false;
    const struct view *view = &topology->views[gpu];
    *place = (struct place){.gpu = gpu, .gi = -1, .ci = -1};
    switch (entity.group) {
    case DCGM_FE_GPU:
        return true;
    case DCGM_FE_GPU_I:
        if (index >= view->instance_count)
            return false;
        place->gi = view->instances[index].gi;
        return true;
    case DCGM_FE_GPU_CI:
        if (index >= view->compute_count)
            return false;
        place->gi = view->computes[index].partition.gi;
        place->ci = view->computes[index].partition.ci;
        return true;
    default:
        return false;
    }
}

bool topology_has(struct engine *engine, struct entity entity)
{
    struct place place;
    return topology_place(engine, entity, &place);
}

unsigned topology_entities(const struct engine *engine, uint32_t group, struct entity *entities)
{
    const struct topology *topology = engine->topology;
    unsigned count = 0;
    for (unsigned gpu = 0; gpu < topology->gpus; gpu++) {
        if (!topology->known[gpu])
            continue;
        const struct view *view = &topology->views[gpu];
        unsigned parts = group == DCGM_FE_GPU_I ? view->instance_count : group == DCGM_FE_GPU_CI ? view->compute_count : 0;
        if (group == DCGM_FE_GPU)
            entities[count++] = (struct entity){group, gpu};
        for (unsigned i = 0; i < parts; i++)
            entities[count++] = (struct entity){group, gpu * IDS_PER_GPU + i};
    }
    return count;
}

bool topology_entity(const struct engine *engine, struct place place, struct entity *entity)
{
    struct entity entities[DCGM_GROUP_MAX_ENTITIES_V2];
    uint32_t group = place.gi < 0 ? DCGM_FE_GPU : place.ci < 0 ? DCGM_FE_GPU_I : DCGM_FE_GPU_CI;
    unsigned count = topology_entities(engine, group, entities);
    for (unsigned i = 0; i < count; i++) {
        struct place other;
        if (topology_place(engine, entities[i], &other) && other.gpu == place.gpu && other.gi == place.gi
            && other.ci == place.ci) {
            *entity = entities[i];
            return true;
        }
    }
    return false;
}

const struct partition *topology_partition(const struct engine *engine, struct entity entity)
{
    struct place place;
    if (!topology_place(engine, entity, &place) || entity.group == DCGM_FE_GPU)
        return NULL;
    const struct view *view = &engine->topology->views[place.gpu];
    unsigned index = entity.id % IDS_PER_GPU;
    if (entity.group == DCGM_FE_GPU_CI)
        return &view->computes[index].partition;
    for (unsigned i = 0; i < view->compute_count; i++) /* an instance is known by its first */
        if (view->computes[i].instance == index)
            return &view->computes[i].partition;
    return NULL;
}

DcgmEntityStatus_t topology_status(const struct engine *engine, unsigned gpu)
{
    if (gpu >= engine->topology->gpus || !engine->topology->known[gpu])
        return DcgmEntityStatusUnknown;
    return engine->topology->views[gpu].lost ? DcgmEntityStatusLost : DcgmEntityStatusOk;
}

#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define NVLINK_5 7 /* NVML's number of its version */

static double version_of(unsigned gpu)
{
    double version = 0;
    scripted_number((struct place){gpu, -1, -1}, "nvlink.version", &version);
    return version;
}

bool nvlink_is_5(unsigned gpu) { return version_of(gpu) >= NVLINK_5; }

bool nvlink_sum(unsigned gpu, const char *key, int64_t *sum)
{
    double links = 0;
    scripted_number((struct place){gpu, -1, -1}, "nvlink.count", &links);
    *sum = 0;
    for (unsigned link = 0; link < (unsigned)links; link++) {
        char of_link[64];
        int64_t count;
        snprintf(of_link, sizeof of_link, "nvlink.%u.%s", link, key);
        if (scripted_integer((struct place){gpu, -1, -1}, of_link, &count))
            *sum += count;
    }
    return links > 0;
}

/* In MIG mode the driver reports all links as down. */
static dcgmNvLinkLinkState_t state_of(unsigned gpu, unsigned link)
{
    char key[32];
    double active;
    snprintf(key, sizeof key, "nvlink.%u.state", link);
    if (!scripted_number((struct place){gpu, -1, -1}, key, &active))
        return DcgmNvLinkLinkStateNotSupported;
    return active && !scripted_mig(gpu) ? DcgmNvLinkLinkStateUp : DcgmNvLinkLinkStateDown;
}

/* There are no switches in it: those are entities of their own, which need a
 * module that is not here. */
dcgmReturn_t answer_nvlink_status(struct engine *engine, unsigned connection, struct wire *request, struct wire *reply)
{
    (void)connection, (void)request;
    dcgmNvLinkStatus_v5 *status = calloc(1, sizeof *status);
    if (!status)
        return DCGM_ST_MEMORY;
    status->version = dcgmNvLinkStatus_version5;
    for (unsigned gpu = 0; gpu < topology_gpus(engine); gpu++) {
        DcgmEntityStatus_t entity = topology_status(engine, gpu);
        if (entity == DcgmEntityStatusUnknown)
            continue;
        dcgmNvLinkGpuLinkStatus_v4 *links = &status->gpus[status->numGpus++];
        links->entityId = gpu;
        for (unsigned link = 0; entity == DcgmEntityStatusOk && link < DCGM_NVLINK_MAX_LINKS_PER_GPU; link++)
            links->linkState[link] = state_of(gpu, link);
    }
    wire_put(reply, status, sizeof *status);
    free(status);
    return DCGM_ST_OK;
}

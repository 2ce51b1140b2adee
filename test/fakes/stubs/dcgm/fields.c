#include "fields.h"

#include <stdlib.h>
#include <string.h>

#include "scripted.h"
#include "version.h"

#define TEXT DCGM_FT_STRING
#define INTEGER DCGM_FT_INT64
#define DOUBLE DCGM_FT_DOUBLE
#define NODE DCGM_FE_NONE
#define GPU DCGM_FE_GPU
#define GI DCGM_FE_GPU_I
#define CI DCGM_FE_GPU_CI
#define MIB (1.0 / (1 << 20))

/* Types and levels are those of dcgm_fields.cpp, units those of dcgm_fields.h.
 * Energy is mJ, throttled time ns, clocks MHz, memory MiB; hardware.conf has
 * joules, ns, MHz and bytes. */
static const struct field fields[] = {
    {1, TEXT, NODE, 0, FROM_NODE, "driver_version", 0},
    {2, TEXT, NODE, 0, FROM_NODE, "nvml_version", 0},
    {4, INTEGER, NODE, 0, FROM_ENGINE, NULL, 0},
    {5, INTEGER, NODE, 0, FROM_NODE, "cuda_version", 0},
    {50, TEXT, CI, 0, FROM_ENGINE, "name", 0},
    {51, TEXT, GPU, 0, FROM_ENGINE, NULL, 0},
    {52, INTEGER, GPU, 0, FROM_ENGINE, NULL, 0},
    {53, TEXT, GPU, 0, FROM_TEXT, "serial", 0},
    {54, TEXT, CI, 0, FROM_ENGINE, "uuid", 0},
    {55, INTEGER, GPU, 0, FROM_NUMBER, "minor", 1},
    {57, TEXT, GPU, 0, FROM_TEXT, "pci.bus_id", 0},
    {58, INTEGER, GPU, 0, FROM_NUMBER, "pci.device_id", 1},
    {59, INTEGER, GPU, 0, FROM_NUMBER, "pci.subsystem_id", 1},
    {63, INTEGER, GPU, 0, FROM_ENGINE, NULL, 0},
    {65, INTEGER, GPU, 0, FROM_NUMBER, "compute_mode", 1},
    {66, INTEGER, GPU, 0, FROM_NUMBER, "persistence_mode", 1},
    {67, INTEGER, GPU, 0, FROM_ENGINE, NULL, 0},
    {68, TEXT, CI, 0, FROM_ENGINE, NULL, 0},
    {82, TEXT, GPU, 0, FROM_TEXT, "inforom.image", 0},
    {85, TEXT, GPU, 0, FROM_TEXT, "vbios", 0},
    {90, INTEGER, GPU, 0, FROM_NUMBER, "bar1.total", MIB},
    {92, INTEGER, GPU, 0, FROM_NUMBER, "bar1.used", MIB},
    {94, INTEGER, GPU, 0, FROM_NUMBER, "gpm", 1},
    {100, INTEGER, GPU, 0, FROM_NUMBER, "clocks.sm", 1},
    {101, INTEGER, GPU, 0, FROM_NUMBER, "clocks.memory", 1},
    {102, INTEGER, GPU, 0, FROM_NUMBER, "clocks.video", 1},
    {112, INTEGER, GPU, 0, FROM_NUMBER, "clocks_event_reasons", 1},
    {113, INTEGER, GPU, 0, FROM_NUMBER, "clocks.max.sm", 1},
    {114, INTEGER, GPU, 0, FROM_NUMBER, "clocks.max.memory", 1},
    {115, INTEGER, GPU, 0, FROM_NUMBER, "clocks.max.video", 1},
    {140, INTEGER, GPU, 0, FROM_NUMBER, "temperature.memory", 1},
    {150, INTEGER, GPU, 0, FROM_NUMBER, "temperature.gpu", 1},
    {151, INTEGER, GPU, 0, FROM_NUMBER, "temperature.memory.max", 1},
    {152, INTEGER, GPU, 0, FROM_NUMBER, "temperature.gpu.max", 1},
    {155, DOUBLE, GPU, 0, FROM_NUMBER, "power.draw", 1},
    {156, INTEGER, GPU, 0, FROM_NUMBER, "energy", 1000},
    {157, DOUBLE, GPU, 0, FROM_NUMBER, "power.draw", 1},
    {158, INTEGER, GPU, 0, FROM_NUMBER, "temperature.gpu.slowdown", 1},
    {159, INTEGER, GPU, 0, FROM_NUMBER, "temperature.gpu.shutdown", 1},
    {160, DOUBLE, GPU, 0, FROM_NUMBER, "power.limit", 1},
    {161, DOUBLE, GPU, 0, FROM_NUMBER, "power.min_limit", 1},
    {162, DOUBLE, GPU, 0, FROM_NUMBER, "power.max_limit", 1},
    {163, DOUBLE, GPU, 0, FROM_NUMBER, "power.default_limit", 1},
    {164, DOUBLE, GPU, 0, FROM_NUMBER, "power.limit", 1},
    {170, INTEGER, GPU, 0, FROM_ENGINE, NULL, 0},
    {171, INTEGER, GPU, 0, FROM_ENGINE, NULL, 0},
    {172, TEXT, GPU, 0, FROM_TEXT, "fabric.cluster", 0},
    {173, INTEGER, GPU, 0, FROM_NUMBER, "fabric.clique", 1},
    {174, INTEGER, GPU, 405, FROM_NUMBER, "fabric.health_mask", 1},
    {175, INTEGER, GPU, 405, FROM_NUMBER, "fabric.health_summary", 1},
    {190, INTEGER, GPU, 0, FROM_NUMBER, "pstate", 1},
    {202, INTEGER, GPU, 0, FROM_NUMBER, "pcie.replays", 1},
    {203, INTEGER, GPU, 0, FROM_NUMBER, "utilization.gpu", 1},
    {204, INTEGER, GPU, 0, FROM_NUMBER, "utilization.memory", 1},
    {206, INTEGER, GPU, 0, FROM_NUMBER, "utilization.encoder", 1},
    {207, INTEGER, GPU, 0, FROM_NUMBER, "utilization.decoder", 1},
    {230, INTEGER, CI, 0, FROM_EVENTS, NULL, 0},
    {235, INTEGER, GPU, 0, FROM_NUMBER, "pcie.generation", 1},
    {236, INTEGER, GPU, 0, FROM_NUMBER, "pcie.width", 1},
    {237, INTEGER, GPU, 0, FROM_NUMBER, "pcie.generation", 1},
    {238, INTEGER, GPU, 0, FROM_NUMBER, "pcie.width", 1},
    {240, INTEGER, GPU, 0, FROM_NUMBER, "throttle.power_cap", 1},
    {241, INTEGER, GPU, 0, FROM_NUMBER, "throttle.thermal", 1},
    {242, INTEGER, GPU, 0, FROM_NUMBER, "throttle.sync_boost", 1},
    {243, INTEGER, GPU, 0, FROM_NUMBER, "throttle.board_limit", 1},
    {244, INTEGER, GPU, 0, FROM_NUMBER, "throttle.low_utilization", 1},
    {245, INTEGER, GPU, 0, FROM_NUMBER, "throttle.reliability", 1},
    {246, INTEGER, GPU, 0, FROM_NUMBER, "throttle.app_clocks", 1},
    {247, INTEGER, GPU, 0, FROM_NUMBER, "throttle.base_clocks", 1},
    {250, INTEGER, GI, 0, FROM_NUMBER, "memory.total", MIB},
    {251, INTEGER, GI, 0, FROM_ENGINE, NULL, 0},
    {252, INTEGER, GI, 0, FROM_NUMBER, "memory.used", MIB},
    {253, INTEGER, GI, 0, FROM_NUMBER, "memory.reserved", MIB},
    {254, DOUBLE, GI, 0, FROM_ENGINE, NULL, 0},
    {300, INTEGER, GPU, 0, FROM_NUMBER, "ecc.mode", 1},
    {301, INTEGER, GPU, 0, FROM_NUMBER, "ecc.mode", 1},
    {310, INTEGER, GPU, 0, FROM_NUMBER, "ecc.volatile.corrected", 1},
    {311, INTEGER, GPU, 0, FROM_NUMBER, "ecc.volatile.uncorrected", 1},
    {312, INTEGER, GPU, 0, FROM_NUMBER, "ecc.corrected", 1},
    {313, INTEGER, GPU, 0, FROM_NUMBER, "ecc.uncorrected", 1},
    {390, INTEGER, GPU, 0, FROM_NUMBER, "retired_pages.corrected", 1},
    {391, INTEGER, GPU, 0, FROM_NUMBER, "retired_pages.uncorrected", 1},
    {392, INTEGER, GPU, 0, FROM_NUMBER, "retired_pages.pending", 1},
    {393, INTEGER, GPU, 0, FROM_NUMBER, "remapped_rows.uncorrected", 1},
    {394, INTEGER, GPU, 0, FROM_NUMBER, "remapped_rows.corrected", 1},
    {395, INTEGER, GPU, 0, FROM_NUMBER, "remapped_rows.failure", 1},
    {396, INTEGER, GPU, 0, FROM_NUMBER, "remapped_rows.pending", 1},
    {409, INTEGER, GPU, 0, FROM_LINKS, "errors.crc_flit", 1},
    {419, INTEGER, GPU, 0, FROM_LINKS, "errors.crc_data", 1},
    {429, INTEGER, GPU, 0, FROM_LINKS, "errors.replay", 1},
    {439, INTEGER, GPU, 0, FROM_LINKS, "errors.recovery", 1},
    {449, INTEGER, GPU, 0, FROM_RATE, NULL, 1e-6},
    {500, INTEGER, GPU, 0, FROM_ENGINE, NULL, 0},
    {572, TEXT, GPU, 403, FROM_TEXT, "platform.chassis_serial", 0},
    {573, INTEGER, GPU, 403, FROM_NUMBER, "platform.slot", 1},
    {574, INTEGER, GPU, 403, FROM_NUMBER, "platform.tray", 1},
    {577, INTEGER, GPU, 403, FROM_NUMBER, "module_id", 1},
    {1001, DOUBLE, CI, 0, FROM_PROFILE, "profiling.graphics", 1},
    {1002, DOUBLE, CI, 0, FROM_PROFILE, "profiling.sm", 1},
    {1003, DOUBLE, CI, 0, FROM_PROFILE, "profiling.sm_occupancy", 1},
    {1004, DOUBLE, CI, 0, FROM_PROFILE, "profiling.tensor", 1},
    {1005, DOUBLE, GI, 0, FROM_PROFILE, "profiling.dram", 1},
    {1006, DOUBLE, CI, 0, FROM_PROFILE, "profiling.fp64", 1},
    {1007, DOUBLE, CI, 0, FROM_PROFILE, "profiling.fp32", 1},
    {1008, DOUBLE, CI, 0, FROM_PROFILE, "profiling.fp16", 1},
    {1009, INTEGER, GPU, 0, FROM_RATE, "pcie.tx_bytes", 1},
    {1010, INTEGER, GPU, 0, FROM_RATE, "pcie.rx_bytes", 1},
    {1011, INTEGER, GPU, 0, FROM_RATE, "nvlink.tx_bytes", 1},
    {1012, INTEGER, GPU, 0, FROM_RATE, "nvlink.rx_bytes", 1},
    {1016, DOUBLE, CI, 0, FROM_PROFILE, "profiling.integer", 1},
    {1017, DOUBLE, GI, 0, FROM_PROFILE, "profiling.decoder", 1},
    {1025, DOUBLE, GI, 0, FROM_PROFILE, "profiling.jpeg", 1},
    {1033, DOUBLE, GI, 0, FROM_PROFILE, "profiling.ofa", 1},
    {1091, INTEGER, GPU, 406, FROM_NUMBER, "pcie.tx_bytes", 1},
    {1092, INTEGER, GPU, 406, FROM_NUMBER, "pcie.rx_bytes", 1},
    {1201, INTEGER, GPU, 0, FROM_NVLINK5, "nvlink.tx_bytes", 1},
    {1203, INTEGER, GPU, 0, FROM_NVLINK5, "nvlink.rx_bytes", 1},
    {1204, INTEGER, GPU, 0, FROM_LINKS5, "errors.malformed", 1},
    {1205, INTEGER, GPU, 0, FROM_LINKS5, "errors.overrun", 1},
    {1206, INTEGER, GPU, 0, FROM_LINKS5, "errors.receive", 1},
    {1207, INTEGER, GPU, 0, FROM_LINKS5, "errors.remote", 1},
    {1208, INTEGER, GPU, 0, FROM_LINKS5, "errors.general", 1},
    {1209, INTEGER, GPU, 0, FROM_LINKS5, "errors.integrity", 1},
    {1210, INTEGER, GPU, 0, FROM_LINKS5, "errors.discards", 1},
    {1211, INTEGER, GPU, 0, FROM_LINKS5, "errors.recovered", 1},
    {1212, INTEGER, GPU, 0, FROM_LINKS5, "errors.unrecovered", 1},
    {1214, INTEGER, GPU, 0, FROM_LINKS5, "errors.symbol", 1},
    {1219, INTEGER, GPU, 0, FROM_LINKS5, "errors.effective", 1},
    {1420, INTEGER, GPU, 403, FROM_NUMBER, "throttle.power_cap", 1},
    {1421, INTEGER, GPU, 403, FROM_NUMBER, "throttle.sync_boost", 1},
    {1422, INTEGER, GPU, 403, FROM_NUMBER, "throttle.sw_thermal", 1},
    {1423, INTEGER, GPU, 403, FROM_NUMBER, "throttle.hw_thermal", 1},
    {1424, INTEGER, GPU, 403, FROM_NUMBER, "throttle.hw_power_brake", 1},
    {1523, INTEGER, GPU, 405, FROM_NUMBER, "recovery_action", 1},
    {1603, INTEGER, GPU, 406, FROM_NUMBER, "clocks.sm", 1e6},
    {1604, INTEGER, GPU, 406, FROM_NUMBER, "clocks.memory", 1e6},
    {1605, INTEGER, GPU, 406, FROM_NUMBER, "clocks.video", 1e6},
    {1611, DOUBLE, GPU, 406, FROM_NUMBER, "energy", 1},
};

#define FIELDS (sizeof fields / sizeof *fields)

/* The numbers that dcgm_fields.h gives to fields. Those that have no row above
 * are known and unsupported here. */
static const struct {
    uint16_t first, last, since;
} ranges[] = {
    {1, 6, 0},       {50, 77, 0},     {80, 94, 0},     {100, 102, 0},   {110, 115, 0},   {120, 120, 0},   {130, 130, 0},
    {140, 140, 0},   {150, 153, 0},   {155, 167, 0},   {170, 175, 0},   {190, 191, 0},   {200, 207, 0},   {230, 230, 0},
    {235, 238, 0},   {240, 247, 0},   {250, 254, 0},   {285, 287, 0},   {300, 301, 0},   {310, 346, 0},   {350, 363, 0},
    {385, 396, 0},   {400, 489, 0},   {491, 513, 0},   {520, 534, 0},   {571, 577, 403}, {580, 592, 405}, {701, 707, 0},
    {780, 843, 0},   {856, 897, 0},   {1001, 1034, 0}, {1040, 1083, 0}, {1084, 1096, 406}, {1100, 1104, 0}, {1110, 1112, 0},
    {1120, 1120, 0}, {1130, 1133, 0}, {1140, 1141, 0}, {1200, 1220, 0}, {1300, 1310, 0}, {1400, 1442, 403}, {1501, 1509, 404},
    {1523, 1524, 405}, {1525, 1533, 406}, {1600, 1612, 406},
};

/* Rows for all numbers, made at the first question: a row's address is the
 * field's identity. */
static const struct field *rows[DCGM_FI_MAX_FIELDS];
static struct field unsupported[DCGM_FI_MAX_FIELDS];
static dcgm_field_meta_t metadata[DCGM_FI_MAX_FIELDS];

__attribute__((constructor)) static void make_rows(void)
{
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        for (uint16_t id = ranges[i].first; id <= ranges[i].last; id++) {
            unsupported[id] = (struct field){.id = id, .type = INTEGER, .level = GPU, .since = ranges[i].since};
            rows[id] = &unsupported[id];
        }
    for (size_t i = 0; i < FIELDS; i++)
        rows[fields[i].id] = &fields[i];
    for (uint16_t id = 0; id < DCGM_FI_MAX_FIELDS; id++) {
        if (!rows[id])
            continue;
        metadata[id] = (dcgm_field_meta_t){
            .fieldId = id,
            .fieldType = rows[id]->type,
            .size = rows[id]->type == TEXT ? 0 : 8,
            .scope = rows[id]->level == NODE ? DCGM_FS_GLOBAL : DCGM_FS_ENTITY,
            .entityLevel = rows[id]->level,
        };
        if (rows[id]->key)
            strncpy(metadata[id].tag, rows[id]->key, sizeof metadata[id].tag - 1);
    }
}

const struct field *field_find(uint16_t id) { return id < DCGM_FI_MAX_FIELDS ? rows[id] : NULL; }

bool field_known(uint16_t id)
{
    const struct field *field = field_find(id);
    return field && field->since <= version_number();
}

bool field_profiling(uint16_t id) { return (id >= 1001 && id <= 1096) || id == 1532 || id == 1533; }

bool profiler_taken(void)
{
    char text[16];
    return scripted_node_line("dcgm.profiler", text, sizeof text) && !strcmp(text, "other");
}

dcgm_field_meta_p field_metadata(uint16_t id) { return field_find(id) ? &metadata[id] : NULL; }

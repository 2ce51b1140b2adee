#include "model.h"

#include <string.h>

/* Units are those of the names: bytes, percent (utilization), watts, joules,
 * degrees Celsius, MHz, nanoseconds (throttle), ratios (profiling). Enumerations
 * are NVML's numbers. No default moves; counters move where a script says so. */

const struct setting model_node[] = {
    {"driver_version", "580.65.06"},
    {"cuda_version", "13000"},
    {"persistence_mode", "1"},
    {NULL, NULL},
};

const struct setting model_common[] = {
    {"brand", "14"}, /* NVML_BRAND_NVIDIA */
    {"persistence_mode", "1"},
    {"compute_mode", "0"},
    {"display_active", "0"},
    {"addressing_mode", "1"}, /* HMM */
    {"pstate", "0"},
    {"event_types", "0x1f"}, /* single and double bit ECC errors, states, Xids, clocks */
    {"clocks_event_reasons", "0x1"}, /* idle */
    {"utilization.gpu", "0"},
    {"utilization.memory", "0"},
    {"utilization.encoder", "0"},
    {"utilization.decoder", "0"},
    {"utilization.jpeg", "0"},
    {"utilization.ofa", "0"},
    {"temperature.gpu", "32"},
    {"temperature.memory", "41"},
    {"temperature.gpu.shutdown", "92"},
    {"temperature.gpu.slowdown", "89"},
    {"temperature.gpu.max", "87"},
    {"temperature.memory.max", "95"},
    {"energy", "250000"},
    {"memory.used", "0"},
    {"pcie.tx_bytes", "0"},
    {"pcie.rx_bytes", "0"},
    {"pcie.tx_rate", "0"}, /* KB/s, as measured for 20 ms */
    {"pcie.rx_rate", "0"},
    {"pcie.replays", "0"},
    {"pcie.width", "16"},
    {"nvlink.tx_bytes", "0"},
    {"nvlink.rx_bytes", "0"},
    {"throttle.power_cap", "0"},
    {"throttle.thermal", "0"},
    {"throttle.sync_boost", "0"},
    {"throttle.board_limit", "0"},
    {"throttle.low_utilization", "0"},
    {"throttle.reliability", "0"},
    {"throttle.app_clocks", "0"},
    {"throttle.base_clocks", "0"},
    {"throttle.sw_thermal", "0"},
    {"throttle.hw_thermal", "0"},
    {"throttle.hw_power_brake", "0"},
    {"ecc.mode", "1"},
    {"ecc.corrected", "0"}, /* lifetime */
    {"ecc.uncorrected", "0"},
    {"ecc.volatile.corrected", "0"}, /* since the driver was loaded */
    {"ecc.volatile.uncorrected", "0"},
    {"remapped_rows.corrected", "0"},
    {"remapped_rows.uncorrected", "0"},
    {"remapped_rows.pending", "0"},
    {"remapped_rows.failure", "0"},
    {"recovery_action", "0"}, /* none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset */
    {"fabric.state", "3"}, /* completed */
    {"fabric.status", "0"},
    {"fabric.clique", "0"},
    {"fabric.cluster", "00000000-0000-0000-0000-000000000000"},
    {"fabric.health_mask", "0"},
    {"profiling.graphics", "0"},
    {"profiling.sm", "0"},
    {"profiling.sm_occupancy", "0"},
    {"profiling.tensor", "0"},
    {"profiling.integer", "0"},
    {"profiling.dram", "0"},
    {"profiling.fp64", "0"},
    {"profiling.fp32", "0"},
    {"profiling.fp16", "0"},
    {"profiling.decoder", "0"},
    {"profiling.encoder", "0"},
    {"profiling.jpeg", "0"},
    {"profiling.ofa", "0"},
    {"mig.mode", "0"},
    {NULL, NULL},
};

const struct setting model_link[] = {
    {"state", "1"},
    {"remote.type", "2"}, /* NVML_NVLINK_DEVICE_TYPE_SWITCH */
    {"errors.crc_flit", "0"},
    {"errors.crc_data", "0"},
    {"errors.replay", "0"},
    {"errors.recovery", "0"},
    {"errors.ecc", "0"},
    {"errors.malformed", "0"}, /* from here on of NVLink 5 */
    {"errors.overrun", "0"},
    {"errors.receive", "0"},
    {"errors.remote", "0"},
    {"errors.general", "0"},
    {"errors.integrity", "0"},
    {"errors.discards", "0"},
    {"errors.recovered", "0"},
    {"errors.unrecovered", "0"},
    {"errors.effective", "0"},
    {"errors.symbol", "0"},
    {NULL, NULL},
};

const struct setting model_partition[] = {
    {"memory.used", "0"},
    {"memory.reserved", "0"},
    {NULL, NULL},
};

static const struct setting h100[] = {
    {"name", "NVIDIA H100 80GB HBM3"},
    {"pci.device_id", "0x233010DE"},
    {"pci.subsystem_id", "0x16C110DE"},
    {"board_part_number", "692-2G520-0200-000"},
    {"vbios", "96.00.74.00.01"},
    {"architecture", "9"},
    {"cuda.major", "9"},
    {"cuda.minor", "0"},
    {"cores", "16896"},
    {"multiprocessors", "132"},
    {"memory.total", "85520809984"},
    {"memory.reserved", "653262848"},
    {"bar1.total", "137438953472"},
    {"bar1.used", "1048576"},
    {"power.draw", "70.5"},
    {"power.limit", "700"},
    {"power.default_limit", "700"},
    {"power.min_limit", "200"},
    {"power.max_limit", "700"},
    {"clocks.sm", "345"},
    {"clocks.graphics", "345"},
    {"clocks.memory", "2619"},
    {"clocks.video", "765"},
    {"clocks.max.sm", "1980"},
    {"clocks.max.graphics", "1980"},
    {"clocks.max.memory", "2619"},
    {"clocks.max.video", "1545"},
    {"pcie.generation", "5"},
    {"nvlink.count", "18"},
    {"nvlink.version", "6"}, /* NVML_NVLINK_VERSION_4_0 */
    {"nvlink.speed", "26562"}, /* MB/s of a link */
    {"gpm", "1"},
    {NULL, NULL},
};

static const struct setting a100[] = {
    {"name", "NVIDIA A100-SXM4-80GB"},
    {"mig.resets", "1"},
    {"pci.device_id", "0x20B210DE"},
    {"pci.subsystem_id", "0x147F10DE"},
    {"board_part_number", "692-2G506-0212-002"},
    {"vbios", "92.00.45.00.03"},
    {"architecture", "7"},
    {"cuda.major", "8"},
    {"cuda.minor", "0"},
    {"cores", "6912"},
    {"multiprocessors", "108"},
    {"memory.total", "85899345920"},
    {"memory.reserved", "655556608"},
    {"bar1.total", "137438953472"},
    {"bar1.used", "1048576"},
    {"power.draw", "61.2"},
    {"power.limit", "400"},
    {"power.default_limit", "400"},
    {"power.min_limit", "100"},
    {"power.max_limit", "400"},
    {"clocks.sm", "210"},
    {"clocks.graphics", "210"},
    {"clocks.memory", "1593"},
    {"clocks.video", "585"},
    {"clocks.max.sm", "1410"},
    {"clocks.max.graphics", "1410"},
    {"clocks.max.memory", "1593"},
    {"clocks.max.video", "1290"},
    {"pcie.generation", "4"},
    {"pcie.tx_bytes", "none"},
    {"pcie.rx_bytes", "none"},
    {"nvlink.count", "12"},
    {"nvlink.version", "4"}, /* NVML_NVLINK_VERSION_3_0 */
    {"nvlink.speed", "25781"},
    {"fabric.state", "none"},
    {"throttle.sw_thermal", "none"},
    {"throttle.hw_thermal", "none"},
    {"throttle.hw_power_brake", "none"},
    {"gpm", "0"},
    {NULL, NULL},
};

static const struct setting b200[] = {
    {"name", "NVIDIA B200"},
    {"pci.device_id", "0x290110DE"},
    {"pci.subsystem_id", "0x199910DE"},
    {"board_part_number", "692-2G525-0220-002"},
    {"vbios", "97.00.82.00.2A"},
    {"platform.chassis_serial", "1821325191344"},
    {"platform.slot", "9"},
    {"platform.tray", "4"},
    {"architecture", "10"},
    {"cuda.major", "10"},
    {"cuda.minor", "0"},
    {"cores", "18944"},
    {"multiprocessors", "148"},
    {"memory.total", "192265846784"},
    {"memory.reserved", "787480576"},
    {"bar1.total", "274877906944"},
    {"bar1.used", "1048576"},
    {"power.draw", "141.3"},
    {"power.limit", "1000"},
    {"power.default_limit", "1000"},
    {"power.min_limit", "200"},
    {"power.max_limit", "1000"},
    {"clocks.sm", "120"},
    {"clocks.graphics", "120"},
    {"clocks.memory", "3996"},
    {"clocks.video", "555"},
    {"clocks.max.sm", "1965"},
    {"clocks.max.graphics", "1965"},
    {"clocks.max.memory", "3996"},
    {"clocks.max.video", "1905"},
    {"pcie.generation", "5"},
    {"nvlink.count", "18"},
    {"nvlink.version", "7"}, /* NVML_NVLINK_VERSION_5_0 */
    {"nvlink.speed", "53125"},
    {"gpm", "1"},
    {NULL, NULL},
};

/* Where GPU instances of 1, 2, 4 and 8 memory slices may begin. */
#define SINGLES {{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}}
#define PAIRS {{0, 2}, {2, 2}, {4, 2}}
#define WIDE_SINGLES {{0, 2}, {2, 2}, {4, 2}, {6, 2}}
#define HALVES {{0, 4}, {4, 4}}
#define FIRST_HALF {{0, 4}}
#define WHOLE {{0, 8}}

/* id, index, name, slices, multiprocessors, copy engines, decoders, encoders,
 * JPEG engines, optical flow accelerators, MiB, how many, placements. */
static const struct mig_profile h100_profiles[] = {
    {19, 0, "1g.10gb", 1, 16, 1, 1, 0, 1, 0, 9984, 7, 7, SINGLES},
    {20, 7, "1g.10gb+me", 1, 16, 1, 1, 0, 1, 1, 9984, 1, 7, SINGLES},
    {15, 9, "1g.20gb", 1, 26, 1, 1, 0, 1, 0, 20096, 4, 4, WIDE_SINGLES},
    {14, 1, "2g.20gb", 2, 32, 2, 2, 0, 2, 0, 20096, 3, 3, PAIRS},
    {9, 2, "3g.40gb", 3, 60, 3, 3, 0, 3, 0, 40448, 2, 2, HALVES},
    {5, 3, "4g.40gb", 4, 64, 4, 4, 0, 4, 0, 40448, 1, 1, FIRST_HALF},
    {0, 4, "7g.80gb", 7, 132, 8, 7, 0, 7, 1, 81152, 1, 1, WHOLE},
};

static const struct mig_profile a100_profiles[] = {
    {19, 0, "1g.10gb", 1, 14, 1, 0, 0, 0, 0, 9728, 7, 7, SINGLES},
    {20, 7, "1g.10gb+me", 1, 14, 1, 1, 0, 1, 1, 9728, 1, 7, SINGLES},
    {15, 9, "1g.20gb", 1, 14, 1, 1, 0, 0, 0, 19968, 4, 4, WIDE_SINGLES},
    {14, 1, "2g.20gb", 2, 28, 2, 1, 0, 0, 0, 19968, 3, 3, PAIRS},
    {9, 2, "3g.40gb", 3, 42, 3, 2, 0, 0, 0, 40192, 2, 2, HALVES},
    {5, 3, "4g.40gb", 4, 56, 4, 2, 0, 0, 0, 40192, 1, 1, FIRST_HALF},
    {0, 4, "7g.80gb", 7, 98, 7, 5, 0, 1, 1, 80640, 1, 1, WHOLE},
};

static const struct mig_profile b200_profiles[] = {
    {19, 0, "1g.23gb", 1, 18, 1, 1, 0, 1, 0, 22528, 7, 7, SINGLES},
    {20, 7, "1g.23gb+me", 1, 18, 1, 1, 0, 1, 1, 22528, 1, 7, SINGLES},
    {15, 9, "1g.45gb", 1, 30, 1, 1, 0, 1, 0, 45440, 4, 4, WIDE_SINGLES},
    {14, 1, "2g.45gb", 2, 36, 2, 2, 0, 2, 0, 45440, 3, 3, PAIRS},
    {9, 2, "3g.90gb", 3, 70, 3, 3, 0, 3, 0, 91136, 2, 2, HALVES},
    {5, 3, "4g.90gb", 4, 72, 4, 4, 0, 4, 0, 91136, 1, 1, FIRST_HALF},
    {0, 4, "7g.180gb", 7, 148, 8, 7, 0, 7, 1, 182784, 1, 1, WHOLE},
};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct model models[] = {
    {"H100", h100, h100_profiles, COUNT(h100_profiles)},
    {"A100", a100, a100_profiles, COUNT(a100_profiles)},
    {"B200", b200, b200_profiles, COUNT(b200_profiles)},
};

const struct model *model_named(const char *name)
{
    for (size_t i = 0; name && i < COUNT(models); i++)
        if (!strcmp(models[i].name, name))
            return &models[i];
    return &models[0];
}

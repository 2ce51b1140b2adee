package smi

import (
	"fmt"
	"io"
	"strings"
)

// Decode decodes one text of at most MaxBytes.
func Decode(from io.Reader) (Log, error) {
	root, schema, err := readTree(from)
	if err != nil {
		return Log{}, fmt.Errorf("decode what nvidia-smi printed: %w", err)
	}
	log := Log{
		Schema: schema, Timestamp: root.string("timestamp"),
		DriverVersion: root.string("driver_version"), CUDAVersion: root.string("cuda_version"),
		AttachedGPUs: root.number("attached_gpus"),
	}
	for _, gpu := range root.all("gpu") {
		log.GPUs = append(log.GPUs, decodeGPU(gpu))
	}
	return log, nil
}

func decodeGPU(n *node) GPU {
	g := GPU{
		tree: n, ID: n.id,
		UUID: n.string("uuid"), Name: n.string("product_name"), Brand: n.string("product_brand"),
		Architecture: n.string("product_architecture"), Serial: n.string("serial"),
		BoardPartNumber: n.string("board_part_number"), VBIOS: n.string("vbios_version"),
		Minor: n.number("minor_number"), PCIBusID: n.string("pci/pci_bus_id"),
		PersistenceMode: n.flag("persistence_mode"), ComputeMode: n.string("compute_mode"),
		PerformanceState: n.string("performance_state"), RecoveryAction: n.string("gpu_recovery_action"),
		AddressingMode: n.string("addressing_mode"),
		Memory:         decodeMemory(n.at("fb_memory_usage")),
		BAR1:           decodeMemory(n.at("bar1_memory_usage")),
		Utilization: Utilization{
			GPU: n.number("utilization/gpu_util"), Memory: n.number("utilization/memory_util"),
			Encoder: n.number("utilization/encoder_util"), Decoder: n.number("utilization/decoder_util"),
			JPEG: n.number("utilization/jpeg_util"), OFA: n.number("utilization/ofa_util"),
		},
		ModulePower: decodePower(n.at("module_power_readings")),
		MemoryPower: decodePower(n.at("gpu_memory_power_readings")),
		Temperature: decodeTemperature(n.at("temperature")),
		Clocks:      decodeClocks(n.at("clocks")),
		MaxClocks:   decodeClocks(n.at("max_clocks")),
		ECC: ECC{
			Mode: n.flag("ecc_mode/current_ecc"), PendingMode: n.flag("ecc_mode/pending_ecc"),
			Volatile: decodeECC(n.at("ecc_errors/volatile")), Aggregate: decodeECC(n.at("ecc_errors/aggregate")),
		},
		Rows: decodeRows(n.at("remapped_rows")),
		Pages: RetiredPages{
			SingleBit: n.number("retired_pages/multiple_single_bit_retirement/retired_count"),
			DoubleBit: n.number("retired_pages/double_bit_retirement/retired_count"),
			Pending:   n.flag("retired_pages/pending_retirement"),
		},
		PCIe: decodePCIe(n.at("pci")),
		Fabric: Fabric{
			State: n.string("fabric/state"), Status: n.string("fabric/status"), Clique: n.string("fabric/cliqueId"),
			ClusterUUID: n.string("fabric/clusterUuid"), Health: n.string("fabric/health/summary"),
		},
		FanSpeed: n.number("fan_speed"), Voltage: n.number("voltage/graphics_volt"),
		MIG: decodeMIG(n),
	}
	// Drivers with the schema v11 have another name for it.
	g.Power = decodePower(n.at("gpu_power_readings"))
	if n.at("gpu_power_readings").name == "" {
		g.Power = decodePower(n.at("power_readings"))
	}
	g.EventReasons, g.EventCounters = decodeEvents(n)
	for _, p := range n.at("processes").all("process_info") {
		g.Processes = append(g.Processes, Process{
			PID: p.number("pid"), Type: p.string("type"), Name: p.string("process_name"), Memory: p.number("used_memory"),
			GPUInstance: p.number("gpu_instance_id"), ComputeInstance: p.number("compute_instance_id"),
		})
	}
	return g
}

func decodeMemory(n *node) Memory {
	return Memory{Total: n.number("total"), Reserved: n.number("reserved"), Used: n.number("used"), Free: n.number("free")}
}

func decodePower(n *node) Power {
	return Power{
		Draw:    n.number("power_draw"),
		Average: n.number("average_power_draw"), Instant: n.number("instant_power_draw"),
		// An enforced limit is what is in effect, where it is printed.
		Limit:     n.number("current_power_limit", "enforced_power_limit", "power_limit"),
		Requested: n.number("requested_power_limit", "power_limit"),
		Default:   n.number("default_power_limit"), Minimum: n.number("min_power_limit"), Maximum: n.number("max_power_limit"),
		State: n.string("power_state"),
	}
}

func decodeTemperature(n *node) Temperature {
	return Temperature{
		GPU: n.number("gpu_temp"), Memory: n.number("memory_temp"), Target: n.number("gpu_target_temperature"),
		Shutdown: n.number("gpu_temp_max_threshold"), Slowdown: n.number("gpu_temp_slow_threshold"),
		MaxOperating: n.number("gpu_temp_max_gpu_threshold"), MemoryMaxOperating: n.number("gpu_temp_max_mem_threshold"),
		Margin:         n.number("gpu_temp_tlimit"),
		ShutdownMargin: n.number("gpu_temp_max_tlimit_threshold"), SlowdownMargin: n.number("gpu_temp_slow_tlimit_threshold"),
		MaxOperatingMargin: n.number("gpu_temp_max_gpu_tlimit_threshold"), MemoryMargin: n.number("gpu_temp_max_mem_tlimit_threshold"),
	}
}

func decodeClocks(n *node) Clocks {
	return Clocks{Graphics: n.number("graphics_clock"), SM: n.number("sm_clock"), Memory: n.number("mem_clock"), Video: n.number("video_clock")}
}

func decodeECC(n *node) ECCErrors {
	return ECCErrors{
		SRAMCorrectable: n.number("sram_correctable"), SRAMUncorrectable: n.number("sram_uncorrectable"),
		SRAMUncorrectableParity: n.number("sram_uncorrectable_parity"), SRAMUncorrectableSECDED: n.number("sram_uncorrectable_secded"),
		DRAMCorrectable: n.number("dram_correctable"), DRAMUncorrectable: n.number("dram_uncorrectable"),
		SingleBit: n.number("single_bit/total"), DoubleBit: n.number("double_bit/total"),
		SRAMThresholdExceeded: n.flag("sram_threshold_exceeded"),
	}
}

func decodeRows(n *node) RemappedRows {
	banks := n.at("row_remapper_histogram")
	return RemappedRows{
		Correctable: n.number("remapped_row_corr"), Uncorrectable: n.number("remapped_row_unc"),
		Pending: n.flag("remapped_row_pending"), Failure: n.flag("remapped_row_failure"),
		BanksMax: banks.number("row_remapper_histogram_max"), BanksHigh: banks.number("row_remapper_histogram_high"),
		BanksPartial: banks.number("row_remapper_histogram_partial"), BanksLow: banks.number("row_remapper_histogram_low"),
		BanksNone: banks.number("row_remapper_histogram_none"),
	}
}

func decodePCIe(n *node) PCIe {
	link := n.at("pci_gpu_link_info")
	return PCIe{
		Generation: link.number("pcie_gen/current_link_gen"), MaxGeneration: link.number("pcie_gen/max_link_gen"),
		DeviceMaxGeneration: link.number("pcie_gen/max_device_link_gen"), HostMaxGeneration: link.number("pcie_gen/max_host_link_gen"),
		Width: link.number("link_widths/current_link_width"), MaxWidth: link.number("link_widths/max_link_width"),
		Transmitted: n.number("tx_util"), Received: n.number("rx_util"),
		Replays: n.number("replay_counter"), ReplayRollovers: n.number("replay_rollover_counter"),
	}
}

// decodeEvents reads why clocks are lowered. Drivers with the schema v11 call
// the reasons those of throttling.
func decodeEvents(n *node) (reasons map[string]bool, counters map[string]Number) {
	reasons, counters = make(map[string]bool), make(map[string]Number)
	for _, block := range []struct{ name, prefix string }{
		{"clocks_event_reasons", "clocks_event_reason_"},
		{"clocks_throttle_reasons", "clocks_throttle_reason_"},
	} {
		for _, child := range n.at(block.name).children {
			name, ours := strings.CutPrefix(child.name, block.prefix)
			if active := parseFlag(child.text); ours && active.Known {
				reasons[name] = active.Value
			}
		}
	}
	for _, child := range n.at("clocks_event_reasons_counters").children {
		name, ours := strings.CutPrefix(child.name, "clocks_event_reasons_counters_")
		if counter := parseNumber(child.text); ours && counter.Known {
			counters[name] = counter
		}
	}
	return reasons, counters
}

func decodeMIG(n *node) MIG {
	m := MIG{Mode: n.flag("mig_mode/current_mig"), PendingMode: n.flag("mig_mode/pending_mig")}
	for _, d := range n.at("mig_devices").all("mig_device") {
		m.Devices = append(m.Devices, MIGDevice{
			Index: d.number("index"), GPUInstance: d.number("gpu_instance_id"), ComputeInstance: d.number("compute_instance_id"),
			UUID:            d.string("uuid"),
			Multiprocessors: d.number("device_attributes/shared/multiprocessor_count"),
			Memory:          decodeMemory(d.at("fb_memory_usage")), BAR1: decodeMemory(d.at("bar1_memory_usage")),
			SRAMUncorrectable: d.number("ecc_error_count/volatile_count/sram_uncorrectable"),
		})
	}
	return m
}

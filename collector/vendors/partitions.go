package vendors

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Partition is a profile into which the GPUs of a model can be partitioned.
type Partition struct {
	Profile string
	Memory  int64   // bytes
	SMs     float64 // share of the GPU's streaming multiprocessors, at least so many
	Size    float64 // share of the GPU that it occupies: of its compute slices or of its memory, whichever is larger
}

// partitionedModel is the MIG profiles of a GPU. The memory is that which the driver
// gives a device of the profile.
type partitionedModel struct {
	words    []string // the model's name has one of them as a word
	needs    string   // and this word; empty: no other
	memory   int64    // of the GPU, MiB; distinguishes models with the same word
	sms      float64  // of the GPU without MIG
	slices   float64  // compute slices
	profiles []partitionedProfile
}

type partitionedProfile struct {
	name   string
	slices float64 // compute slices
	sms    float64
	memory int64 // MiB
}

// partitionedModels returns the table. Sources: the tables of simulated GPUs in go-nvml
// (A30, A100, H100, H200, B200), whose multiprocessors are those of 7 equal slices: an
// H100 gives a 3g.40gb more than the 48 of the table. For B300 and RTX PRO 6000 the
// names are those of NVIDIA's MIG User Guide, the memory is that of the name, and the
// multiprocessors are the GPU's divided by its slices.
func partitionedModels() []partitionedModel {
	return []partitionedModel{
		{words: []string{"A30"}, memory: 24576, sms: 56, slices: 4, profiles: []partitionedProfile{
			{"1g.6gb", 1, 14, 5836}, {"2g.12gb", 2, 28, 11672}, {"4g.24gb", 4, 56, 23344},
		}},
		{words: []string{"A100", "A800"}, memory: 40960, sms: 108, slices: 7, profiles: []partitionedProfile{
			{"1g.5gb", 1, 14, 4864}, {"1g.10gb", 1, 14, 9856}, {"2g.10gb", 2, 28, 9856},
			{"3g.20gb", 3, 42, 19968}, {"4g.20gb", 4, 56, 19968}, {"7g.40gb", 7, 98, 40192},
		}},
		{words: []string{"A100", "A800"}, memory: 81920, sms: 108, slices: 7, profiles: []partitionedProfile{
			{"1g.10gb", 1, 14, 9856}, {"1g.20gb", 1, 14, 19968}, {"2g.20gb", 2, 28, 19968},
			{"3g.40gb", 3, 42, 40192}, {"4g.40gb", 4, 56, 40192}, {"7g.80gb", 7, 98, 80384},
		}},
		{words: []string{"H100", "H800"}, memory: 81920, sms: 132, slices: 7, profiles: []partitionedProfile{
			{"1g.10gb", 1, 16, 10240}, {"1g.20gb", 1, 16, 20480}, {"2g.20gb", 2, 32, 20480},
			{"3g.40gb", 3, 48, 40960}, {"4g.40gb", 4, 64, 40960}, {"7g.80gb", 7, 112, 81920},
		}},
		{words: []string{"H200"}, memory: 144384, sms: 132, slices: 7, profiles: []partitionedProfile{
			{"1g.18gb", 1, 16, 18432}, {"1g.35gb", 1, 16, 35840}, {"2g.35gb", 2, 32, 35840},
			{"3g.71gb", 3, 48, 72704}, {"4g.71gb", 4, 64, 72704}, {"7g.141gb", 7, 112, 144384},
		}},
		{words: []string{"B200", "GB200"}, memory: 184320, sms: 148, slices: 7, profiles: []partitionedProfile{
			{"1g.23gb", 1, 18, 23552}, {"1g.45gb", 1, 18, 46080}, {"2g.45gb", 2, 36, 46080},
			{"3g.90gb", 3, 54, 92160}, {"4g.90gb", 4, 72, 92160}, {"7g.180gb", 7, 126, 184320},
		}},
		{words: []string{"B300"}, memory: 275456, sms: 160, slices: 7, profiles: []partitionedProfile{
			{"1g.34gb", 1, 20, 34 << 10}, {"1g.67gb", 1, 20, 67 << 10}, {"2g.67gb", 2, 40, 67 << 10},
			{"3g.135gb", 3, 60, 135 << 10}, {"4g.135gb", 4, 80, 135 << 10}, {"7g.269gb", 7, 140, 269 << 10},
		}},
		{words: []string{"6000"}, needs: "Blackwell", memory: 98304, sms: 188, slices: 4, profiles: []partitionedProfile{
			{"1g.24gb", 1, 47, 24 << 10}, {"2g.48gb", 2, 94, 48 << 10}, {"4g.96gb", 4, 188, 96 << 10},
		}},
	}
}

// memoryDiffers is the share by which the memory that a GPU reports, or that its name
// has, may differ from the table's: firmware and ECC reserve some of it.
const memoryDiffers = 0.08

// Partitions returns the profiles of a GPU by the name of its model, as NVML gives it,
// smallest first. The memory is that of the whole GPU, bytes; 0 if it is unknown, which is
// enough if the name has it or one GPU has the name. A model that is not in the table, and
// one that is no GPU, have none.
func Partitions(model string, memory int64) (all []Partition) {
	found := partitioned(model, memory)
	if found == nil {
		return nil
	}
	for _, p := range found.profiles {
		share := math.Max(p.slices/found.slices, math.Round(8*float64(p.memory)/float64(found.memory))/8)
		all = append(all, Partition{Profile: p.name, Memory: p.memory << 20, SMs: p.sms / found.sms, Size: share})
	}
	slices.SortStableFunc(all, func(a, b Partition) int {
		if a.Size != b.Size {
			return int(math.Copysign(1, a.Size-b.Size))
		}
		return int(math.Copysign(1, a.SMs-b.SMs))
	})
	return all
}

// PartitionOf returns the profile of a GPU with this name.
func PartitionOf(model, profile string) (Partition, bool) {
	for _, p := range Partitions(model, 0) {
		if p.Profile == profile {
			return p, true
		}
	}
	return Partition{}, false
}

// Shareable reports whether claims can share a GPU of the model by time-slicing or MPS,
// as NVIDIA's driver prepares it.
func Shareable(model string) bool {
	return slices.ContainsFunc([]string{"NVIDIA ", "Tesla ", "Quadro "}, func(brand string) bool { return strings.HasPrefix(model, brand) })
}

// partitioned returns the row of the only model with this name and memory.
func partitioned(model string, memory int64) (found *partitionedModel) {
	words := strings.FieldsFunc(model, func(r rune) bool { return r == ' ' || r == '-' })
	sizes := []int64{memory >> 20}
	for _, word := range words {
		if size, err := strconv.ParseUint(strings.TrimSuffix(word, "GB"), 10, 16); err == nil && strings.HasSuffix(word, "GB") {
			sizes = append(sizes, int64(size)<<10)
		}
	}
	models := partitionedModels()
	for i := range models {
		m := &models[i]
		other := func(size int64) bool {
			return size > 0 && math.Abs(float64(size)/float64(m.memory)-1) > memoryDiffers
		}
		switch {
		case !slices.ContainsFunc(m.words, func(word string) bool { return slices.Contains(words, word) }), slices.ContainsFunc(sizes, other),
			m.needs != "" && !slices.Contains(words, m.needs):
		case found != nil:
			return nil
		default:
			found = m
		}
	}
	return found
}

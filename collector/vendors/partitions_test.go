package vendors

import (
	"testing"
)

func TestPartitions(t *testing.T) {
	for _, tt := range []struct {
		model  string
		memory int64 // GiB
		first  string
		last   string
	}{
		{"NVIDIA A30", 24, "1g.6gb", "4g.24gb"},
		{"NVIDIA A100-SXM4-40GB", 40, "1g.5gb", "7g.40gb"},
		{"NVIDIA A100-SXM4-80GB", 80, "1g.10gb", "7g.80gb"},
		{"NVIDIA A100-SXM4-80GB", 0, "1g.10gb", "7g.80gb"},
		{"NVIDIA A100 80GB PCIe", 0, "1g.10gb", "7g.80gb"},
		{"NVIDIA H100 80GB HBM3", 79, "1g.10gb", "7g.80gb"},
		{"NVIDIA H200", 140, "1g.18gb", "7g.141gb"},
		{"NVIDIA B200", 179, "1g.23gb", "7g.180gb"},
		{"NVIDIA GB200", 185, "1g.23gb", "7g.180gb"},
		{"NVIDIA RTX PRO 6000 Blackwell Server Edition", 95, "1g.24gb", "4g.96gb"},
		{"NVIDIA RTX 6000 Ada Generation", 48, "", ""},
		{"NVIDIA RTX PRO 6000 Ada", 96, "", ""},
		{"NVIDIA H100 NVL", 94, "", ""}, // its profiles are others
		{"NVIDIA A100", 0, "", ""},      // of 40 or 80 GiB
		{"NVIDIA L40S", 45, "", ""},
		{"AMD Instinct MI300X", 192, "", ""},
		{"", 80, "", ""},
	} {
		all := Partitions(tt.model, tt.memory<<30)
		if len(all) == 0 {
			if tt.first != "" {
				t.Errorf("%s of %d GiB has no profiles", tt.model, tt.memory)
			}
			continue
		}
		if all[0].Profile != tt.first || all[len(all)-1].Profile != tt.last {
			t.Errorf("%s of %d GiB: the profiles are %s to %s, want %q to %q", tt.model, tt.memory, all[0].Profile, all[len(all)-1].Profile, tt.first, tt.last)
		}
		for i, p := range all {
			if i > 0 && p.Size < all[i-1].Size || p.SMs <= 0 || p.SMs > 1 || p.Size <= 0 || p.Size > 1 || p.Memory <= 0 {
				t.Errorf("%s: %+v after %+v", tt.model, p, all[max(0, i-1)])
			}
			if same, known := PartitionOf(tt.model, p.Profile); tt.memory == 0 && (!known || same != p) {
				t.Errorf("%s of %s is %+v", p.Profile, tt.model, same)
			}
		}
	}
	if p, known := PartitionOf("NVIDIA A100-SXM4-40GB", "3g.20gb"); !known || p.Size != 0.5 || p.SMs != 42.0/108 {
		t.Errorf("3g.20gb is %+v", p)
	}
	if _, known := PartitionOf("NVIDIA H100 80GB HBM3", "3g.20gb"); known {
		t.Error("an H100 has the profile 3g.20gb")
	}
}

func TestShareable(t *testing.T) {
	for model, want := range map[string]bool{"NVIDIA L4": true, "Tesla T4": true, "tpu-v4-podslice": false, "AMD Instinct MI300X": false, "": false} {
		if got := Shareable(model); got != want {
			t.Errorf("%s: %v", model, got)
		}
	}
}

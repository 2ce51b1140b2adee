package vendors

import "testing"

// TestTable checks that no two rows claim the same devices, and that rows are
// found by each of their keys.
func TestTable(t *testing.T) {
	drivers, numbers, names := make(map[string]bool), make(map[uint16]bool), make(map[string]bool)
	for _, row := range All() {
		if drivers[row.Driver] || numbers[row.PCI] || names[row.Name] {
			t.Errorf("%s: driver %q, PCI %04x: two rows are about the same devices", row.Name, row.Driver, row.PCI)
		}
		drivers[row.Driver] = row.Driver != ""
		numbers[row.PCI] = row.PCI != 0
		names[row.Name] = row.Name != ""
		if row.PCI != 0 && ByPCI(uint64(row.PCI)) != row.Name {
			t.Errorf("%04x is of %q, want %q", row.PCI, ByPCI(uint64(row.PCI)), row.Name)
		}
		if row.Name != "" && DriverOf(row.Name) != row.Driver {
			t.Errorf("%s has driver %q, want %q", row.Name, DriverOf(row.Name), row.Driver)
		}
		if row.Driver != "" && ByDriver(row.Driver).Driver != row.Driver {
			t.Errorf("%s has the row of %q", row.Driver, ByDriver(row.Driver).Driver)
		}
		if (row.Driver == "") != (row.Kind == Unknown) || row.Kind == Channel && row.IsMeasured() {
			t.Errorf("%s %s has kind %d and sources %q", row.Name, row.Driver, row.Kind, row.Sources)
		}
	}
	if ByPCI(0) != "" || ByPCI(0x110de) != "" || DriverOf("") != "" || DriverOf("other") != "" || IsMeasured("") || IsMeasured("other.example.com") || IsLogical("") || IsLogical("other.example.com") || ByDriver("").Kind != Unknown || ByDriver("other.example.com").Kind != Unknown {
		t.Error("an unknown vendor or driver has a row")
	}
}

// BenchmarkByDriver looks up the last row, which a step does for each device.
func BenchmarkByDriver(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if ByDriver("gpu.example.com").Kind != GPU {
			b.Fatal("it has no row")
		}
	}
}

package device

// Process is what one process does on a whole device. Processes of partitions
// are not told.
type Process struct {
	PID         int     // in this program's pid namespace
	Memory      float64 // device memory that it uses, bytes, or Unknown
	Utilization float64 // share of time with its work on the device since the list before, 0 to 1, or Unknown
	Proxied     bool    // it works through a server (MPS), which may be told to do its work
}

package nvml

// Options are what the source can be told. The zero value is what it does by
// itself.
type Options struct {
	Library   string // path of libnvidia-ml.so.1; empty: where the system finds it
	Links     bool   // read each NVLink by itself, not only their sum
	Profiling bool   // read engine activity (GPM)
}

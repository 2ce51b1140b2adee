package main

import (
	"errors"
	"flag"
	"fmt"
	"io"

	"github.com/dra-exporter/dra-exporter/test/suites/gpukit/direct"
)

const sessionUsage = `Usage: gpukit session [FLAGS]

Initializes NVIDIA's management library by nvmlInitWithFlags, asks for the number of
GPUs, and shuts it down. Prints one JSON object: the return codes, and before, during
and after the session the files /dev/nvidia* that this process has open, and the
kernel's count of who uses the driver.

It never changes a setting of a GPU.

Flags:
`

// runSession runs `gpukit session`.
func runSession(arguments []string, out, help io.Writer) error {
	flags := flag.NewFlagSet("gpukit session", flag.ContinueOnError)
	library := flags.String("library", "libnvidia-ml.so.1", "`path` or soname of NVIDIA's management library")
	bits := flags.Uint("flags", 0, "`number` for nvmlInitWithFlags: 1 NO_GPUS, 2 NO_ATTACH, 3 both")
	references := flags.String("references", direct.References, "`file` with the kernel's count of who uses the driver")
	if err := parseFlags(flags, arguments, sessionUsage, help); err != nil {
		return err
	}
	switch {
	case *library == "":
		return errors.New("--library: must be a path or a soname")
	case *bits > direct.NoGPUs|direct.NoAttach:
		return fmt.Errorf("--flags=%d: must be 0 to 3", *bits)
	}
	s, err := direct.Try(*library, uint32(*bits), *references)
	if err != nil {
		return err
	}
	return direct.EncodeSession(out, s)
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// behaviour is how the driver misbehaves. The zero value does all at once and
// well, but never makes a binding condition true by itself.
type behaviour struct {
	PrepareDelay   metav1.Duration  `json:"prepareDelay,omitempty"`   // before a claim is prepared
	PrepareError   string           `json:"prepareError,omitempty"`   // why no claim can be prepared
	BindingDelay   *metav1.Duration `json:"bindingDelay,omitempty"`   // from allocation to the conditions; absent: they stay as they are
	BindingFailure string           `json:"bindingFailure,omitempty"` // then the failure conditions become true instead, with this message
	Unhealthy      []string         `json:"unhealthy,omitempty"`      // devices reported as unhealthy to the kubelet
	HealthMessage  string           `json:"healthMessage,omitempty"`  // why
	Passthrough    []passthrough    `json:"passthrough,omitempty"`    // devices that are passed to virtual machines
}

// behaviourFile is the path of a file that holds a behaviour in YAML. It is
// read again each time, so that a test may change it under a running driver. No
// path and no such file are the zero value.
type behaviourFile string

func (f behaviourFile) read() (b behaviour, err error) {
	if f == "" {
		return b, nil
	}
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return b, fmt.Errorf("read behaviour: %w", err)
	}
	if err := yaml.UnmarshalStrict(data, &b); err != nil {
		return b, fmt.Errorf("parse %s: %w", f, err)
	}
	return b, nil
}

func (b behaviour) isUnhealthy(device string) bool { return slices.Contains(b.Unhealthy, device) }

package exporter

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/exposition"
)

// series is one series of a page, with its labels.
type series struct {
	exposition.Series

	added   []addedLabel    // by relabeling
	holders map[string]bool // as in holderLabels
}

type addedLabel struct{ name, value string }

// get returns the value of a label; empty without it, as in Prometheus.
func (s series) get(name string) string {
	if name == "" {
		return ""
	}
	for i := len(s.added) - 1; i >= 0; i-- {
		if s.added[i].name == name {
			return s.added[i].value
		}
	}
	if name == "__name__" {
		return s.Name
	}
	return s.Labels.Get(name)
}

// valueKey is what a reading is of.
type valueKey struct {
	device   int
	quantity device.Quantity
	details  [2]string
}

// seriesValue is what the series of one reading give, by the parts of the device: a series
// is of one part, and a part can have several series.
type seriesValue struct {
	rule  *metricRule
	parts map[string]*partValue
	order []*partValue // in the order of the page: sums of decimal fractions depend on it
}

// partValue is the value of one part of a device, or of the device as a whole. Where
// several pods hold the device, exporters repeat the series for each of them, or give
// the share of each of them beside the series of the device.
type partValue struct {
	number    float64
	measured  device.Window
	ofPod     bool // its series have labels of a pod
	ambiguous bool // its series differ
}

func (v *seriesValue) add(s series, number float64, measured device.Window) {
	key, ofPod := v.rule.part(s), s.ofPod()
	p, ok := v.parts[key]
	switch {
	case !ok:
		p = &partValue{number: number, measured: measured, ofPod: ofPod}
		v.parts[key] = p
		v.order = append(v.order, p)
	case v.rule.combine == combineMax:
		p.add(max(p.number, number), measured)
	case p.ofPod && !ofPod:
		*p = partValue{number: number, measured: measured}
	case !p.ofPod && ofPod: // the series of the device is known
	case p.number == number:
		p.add(number, measured)
	default:
		p.ambiguous = true
	}
}

func (p *partValue) add(number float64, measured device.Window) {
	p.number = number
	p.measured.From, p.measured.To = min(p.measured.From, measured.From), max(p.measured.To, measured.To)
}

// reading is the reading of a device. What is ambiguous or impossible is a problem,
// and no reading.
func (v *seriesValue) reading(key valueKey, name string, problems *problems) (device.Reading, bool) {
	quantity := device.Specs()[key.quantity].Name
	result, measured := 0.0, v.order[0].measured
	for _, part := range v.order {
		switch {
		case part.ambiguous && v.rule.combine == "":
			problems.add("%s: several series give %s of %s: match one of them, or combine them", v.rule.metric, quantity, name)
			return device.Reading{}, false
		case part.ambiguous:
			problems.add("%s: several series give %s of the same part of %s: name the labels of its parts", v.rule.metric, quantity, name)
			return device.Reading{}, false
		case part.number < 0 && key.quantity != device.Temperature, v.rule.ratio && part.number > 1:
			problems.add("%s: %v is impossible for %s of %s: is the unit right?", v.rule.metric, part.number, quantity, name)
			return device.Reading{}, false
		}
		result += part.number
		measured.From, measured.To = min(measured.From, part.measured.From), max(measured.To, part.measured.To)
	}
	if v.rule.combine == combineMean {
		result /= float64(len(v.order))
	}
	return device.Reading{Quantity: key.quantity, Details: key.details, Value: result, Measured: measured}, !math.IsInf(result, 0)
}

// holderLabels are the labels by which exporters say who uses a device. Series that
// differ only in these are of the same part of the device. Those that are true are of
// one pod. dcgm-exporter's labels of claims begin with draPrefix.
func holderLabels() map[string]bool {
	return map[string]bool{
		"pod": true, "pod_name": true, "pod_uid": true, "container": true, "container_name": true, // dcgm-exporter, Furiosa, Google, AMD
		"exported_pod": true, "exported_container": true, "k8s_pod_name": true, "k8s_pod_uid": true, "k8s_container_name": true,
		"namespace": false, "pod_namespace": false, "exported_namespace": false, "k8s_namespace_name": false,
		"vgpu": false, "hpc_job": false,
		"job_id": false, "job_user": false, "job_partition": false,
	}
}

const draPrefix = "dra_"

func (s series) isHolder(label string) bool {
	_, ok := s.holders[label]
	return ok || strings.HasPrefix(label, draPrefix)
}

// ofPod reports whether a series is of one pod.
func (s series) ofPod() bool {
	for _, label := range s.Labels {
		if s.holders[label.Name] && label.Value != "" {
			return true
		}
	}
	return false
}

// part is what tells the parts of a device apart: the labels that the rule names, or
// else all labels but those of the holders. Without a sum or a mean, a device has one.
func (r *metricRule) part(s series) string {
	if r.combine != combineSum && r.combine != combineMean {
		return ""
	}
	const separator = "\xff" // is in no label
	var labels []string
	for _, name := range r.parts {
		labels = append(labels, s.get(name))
	}
	if len(r.parts) == 0 {
		for _, label := range s.Labels {
			if label.Value != "" && !s.isHolder(label.Name) {
				labels = append(labels, label.Name+separator+label.Value)
			}
		}
		slices.Sort(labels)
	}
	return strings.Join(labels, separator)
}

// problems are reasons why parts of a page were left out.
type problems struct {
	errs []error
	more int
}

func (p *problems) add(format string, args ...any) {
	if len(p.errs) == maxProblems {
		p.more++
		return
	}
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

func (p *problems) err() error {
	if p.more > 0 {
		return errors.Join(append(slices.Clip(p.errs), fmt.Errorf("and %d more", p.more))...)
	}
	return errors.Join(p.errs...)
}

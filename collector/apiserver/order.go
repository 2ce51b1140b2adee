package apiserver

import (
	"cmp"

	"github.com/dra-exporter/dra-exporter/collector/dra"
)

func comparePods(a, b dra.Pod) int {
	return cmp.Or(cmp.Compare(a.Ref.Namespace, b.Ref.Namespace), cmp.Compare(a.Ref.Name, b.Ref.Name))
}

func compareClaims(a, b dra.ClaimRef) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

func compareDevices(a, b dra.PublishedDevice) int {
	return cmp.Or(cmp.Compare(a.ID.Driver, b.ID.Driver), cmp.Compare(a.ID.Pool, b.ID.Pool), cmp.Compare(a.ID.Name, b.ID.Name))
}

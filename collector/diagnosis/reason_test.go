package diagnosis

import (
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/inventory"
)

// left makes a count of what the stages leave: published, class, selectors,
// untainted, free, best node.
func left(counts ...int) inventory.Count {
	var c inventory.Count
	copy(c.Left[:], counts)
	return c
}

func incomplete(c inventory.Count, n int) inventory.Count { c.Incomplete = n; return c }

func exactly(name string, count int64) Request {
	return Request{Request: inventory.Request{Class: "gpu"}, Parent: name, Name: name, Count: count}
}

// Each reason that follows from counts, at its boundary.
func TestCheckRequest(t *testing.T) {
	for _, test := range []struct {
		name    string
		request Request
		count   inventory.Count
		reason  dra.PendingReason
		reached dra.Stage
		message string
	}{
		{"enough everywhere", exactly("main", 2), left(8, 6, 5, 4, 3, 2), dra.ReasonNone, dra.Stages, ""},
		{"no class", exactly("main", 1), inventory.Count{NoClass: true}, dra.ReasonNoDeviceClass, dra.StagePublished,
			"request main: device class gpu does not exist"},
		{"nothing published", exactly("main", 1), left(0, 0, 0, 0, 0, 0), dra.ReasonNoMatchingDevice, dra.StageClass,
			"request main asks for 1 device, and no device is published"},
		{"the class selects none", exactly("main", 1), left(8, 0, 0, 0, 0, 0), dra.ReasonNoMatchingDevice, dra.StageClass,
			"request main asks for 1 device, and class gpu selects none of 8 devices"},
		{"the selectors match none", exactly("main", 2), left(8, 6, 0, 0, 0, 0), dra.ReasonNoMatchingDevice, dra.StageSelectors,
			"request main asks for 2 devices, and its selectors match none of 6 devices of class gpu"},
		{"the class leaves too few, the selectors none", exactly("main", 2), left(8, 1, 0, 0, 0, 0), dra.ReasonNoMatchingDevice, dra.StageSelectors,
			"request main asks for 2 devices, and its selectors match none of 1 device of class gpu"},
		{"the selectors leave too few", exactly("main", 3), left(8, 6, 2, 2, 2, 2), dra.ReasonInsufficient, dra.StageSelectors,
			"request main asks for 3 devices, and only 2 of the 8 published match"},
		{"the class leaves too few", exactly("main", 9), left(10, 8, 8, 0, 0, 0), dra.ReasonInsufficient, dra.StageClass,
			"request main asks for 9 devices, and only 8 of the 10 published match"},
		{"all are tainted", exactly("main", 1), left(8, 8, 8, 0, 0, 0), dra.ReasonTainted, dra.StageUntainted,
			"request main asks for 1 device; 8 of 8 devices that match have taints which it does not tolerate"},
		{"too many are tainted", exactly("main", 2), left(8, 8, 8, 1, 1, 1), dra.ReasonTainted, dra.StageUntainted,
			"request main asks for 2 devices; 7 of 8 devices that match have taints which it does not tolerate"},
		{"too few are free", exactly("main", 2), left(8, 8, 8, 8, 1, 1), dra.ReasonInsufficient, dra.StageFree,
			"request main asks for 2 devices; of 8 devices that match and have no untolerated taint, 1 can still be allocated"},
		{"an incomplete pool has them", exactly("main", 2), incomplete(left(8, 8, 8, 8, 1, 1), 1), dra.ReasonPoolIncomplete, dra.StageFree,
			"request main asks for 2 devices; 1 can be allocated, and 1 more once all slices of their pools are published"},
		{"an incomplete pool has too few", exactly("main", 3), incomplete(left(8, 8, 8, 8, 1, 1), 1), dra.ReasonInsufficient, dra.StageFree,
			"request main asks for 3 devices; of 8 devices that match and have no untolerated taint, 1 can still be allocated"},
		{"no node has enough", exactly("main", 4), left(8, 8, 8, 8, 6, 3), dra.ReasonFragmented, dra.StageBestNode,
			"request main asks for 4 devices; 6 are free, but no node has more than 3 of them"},
		{"free where no node reaches", exactly("main", 1), left(8, 8, 8, 8, 6, 0), dra.ReasonFragmented, dra.StageBestNode,
			"request main asks for 1 device; 6 are free, but no node can reach any of them"},
		{"all of a node, and none matches", exactly("main", 0), left(8, 8, 0, 0, 0, 0), dra.ReasonNoMatchingDevice, dra.StageSelectors,
			"request main asks for all matching devices of a node, and its selectors match none of 8 devices of class gpu"},
		{"all of a node, and some are free", exactly("main", 0), left(8, 8, 8, 8, 2, 2), dra.ReasonNone, dra.Stages, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := checkRequest(test.request, test.count)
			if want := (finding{test.reason, test.reached, test.message}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

// Of several requests the one that fails first decides, of alternatives the
// one that comes furthest.
func TestCheckClaim(t *testing.T) {
	alternative := func(parent, name string) Request {
		return Request{Request: inventory.Request{Class: "gpu"}, Parent: parent, Name: parent + "/" + name, Count: 1}
	}
	unmatched, tainted, held, enough := left(8, 8, 0, 0, 0, 0), left(8, 8, 8, 0, 0, 0), left(8, 8, 8, 8, 0, 0), left(8, 8, 8, 8, 8, 8)
	for _, test := range []struct {
		name     string
		requests []Request
		counts   []inventory.Count
		reason   dra.PendingReason
	}{
		{"two that do", []Request{exactly("a", 1), exactly("b", 1)}, []inventory.Count{enough, enough}, dra.ReasonNone},
		{"the second fails", []Request{exactly("a", 1), exactly("b", 1)}, []inventory.Count{enough, held}, dra.ReasonInsufficient},
		{"both fail, the first earlier", []Request{exactly("a", 1), exactly("b", 1)}, []inventory.Count{tainted, held}, dra.ReasonTainted},
		{"both fail, the second earlier", []Request{exactly("a", 1), exactly("b", 1)}, []inventory.Count{held, unmatched}, dra.ReasonNoMatchingDevice},
		{"one alternative does", []Request{alternative("a", "x"), alternative("a", "y")}, []inventory.Count{unmatched, enough}, dra.ReasonNone},
		{"the first alternative does", []Request{alternative("a", "x"), alternative("a", "y")}, []inventory.Count{enough, unmatched}, dra.ReasonNone},
		{"no alternative does", []Request{alternative("a", "x"), alternative("a", "y")}, []inventory.Count{held, unmatched}, dra.ReasonInsufficient},
		{"the last alternative comes furthest", []Request{alternative("a", "x"), alternative("a", "y")}, []inventory.Count{unmatched, tainted}, dra.ReasonTainted},
		{"an alternative without a class stops the scheduler", []Request{alternative("a", "x"), alternative("a", "y")}, []inventory.Count{enough, {NoClass: true}}, dra.ReasonNoDeviceClass},
		{"so does a later request", []Request{exactly("a", 1), exactly("b", 1)}, []inventory.Count{unmatched, {NoClass: true}}, dra.ReasonNoDeviceClass},
		{"lists side by side", []Request{alternative("a", "x"), alternative("b", "x")}, []inventory.Count{enough, tainted}, dra.ReasonTainted},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkClaim(test.requests, test.counts); got.reason != test.reason {
				t.Errorf("got %q (%s), want %q", got.reason, got.message, test.reason)
			}
		})
	}
}

package diagnosis

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/dra-exporter/dra-exporter/collector/allocator"
	"github.com/dra-exporter/dra-exporter/collector/dra"
)

// The detail of a claim that is pending for several reasons at once.
func TestDetail(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.node("n2", nil)
	w.class("gpu", `device.driver == "d"`)
	w.pool("d", "n1", device("a", "model", "x"), device("b", "model", "x"), tainted(device("c", "model", "x"), "d/lost", resourcev1.DeviceTaintEffectNoSchedule))
	w.pool("d", "n2", device("a", "model", "y"), device("b", "model", "x"), device("e"))
	w.pool("net", "n1", devicesNamed(2)...)
	driver, pool := "d", "n2"
	w.hold("train", "n1", `device.attributes["d"].?model.orValue("") == "x"`)
	w.rule("maintenance", "repair", resourcev1.DeviceTaintEffectNoExecute, resourcev1.DeviceTaintSelector{Driver: &driver, Pool: &pool})
	w.claim("c", spec(deviceRequest("main", 3, `device.attributes["d"].model == "x"`)))
	v := w.diagnoser().Explain(t.Context(), question("c"))[0]
	if v.Reason != dra.ReasonTainted {
		t.Errorf("reason %q: %s", v.Reason, v.Message)
	}
	got, err := json.MarshalIndent(v.Detail, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "Selectors": [
  {
   "Where": "request main",
   "Expression": "device.attributes[\"d\"].model == \"x\"",
   "Device": "d/n2/e",
   "Message": "no such key: model. consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
  }
 ],
 "Removed": [
  {
   "Request": "main",
   "Stage": 1,
   "Count": 2,
   "Because": "class gpu",
   "Taint": null,
   "Rule": "",
   "Examples": [
    {
     "Driver": "net",
     "Pool": "n1",
     "Name": "dev-0"
    },
    {
     "Driver": "net",
     "Pool": "n1",
     "Name": "dev-1"
    }
   ]
  },
  {
   "Request": "main",
   "Stage": 2,
   "Count": 2,
   "Because": "device.attributes[\"d\"].model == \"x\"",
   "Taint": null,
   "Rule": "",
   "Examples": [
    {
     "Driver": "d",
     "Pool": "n2",
     "Name": "a"
    },
    {
     "Driver": "d",
     "Pool": "n2",
     "Name": "e"
    }
   ]
  },
  {
   "Request": "main",
   "Stage": 3,
   "Count": 1,
   "Because": "taint d/lost:NoSchedule of the driver",
   "Taint": {
    "Key": "d/lost",
    "Value": "",
    "Effect": "NoSchedule"
   },
   "Rule": "",
   "Examples": [
    {
     "Driver": "d",
     "Pool": "n1",
     "Name": "c"
    }
   ]
  },
  {
   "Request": "main",
   "Stage": 3,
   "Count": 1,
   "Because": "taint repair:NoExecute of the rule maintenance",
   "Taint": {
    "Key": "repair",
    "Value": "",
    "Effect": "NoExecute"
   },
   "Rule": "maintenance",
   "Examples": [
    {
     "Driver": "d",
     "Pool": "n2",
     "Name": "b"
    }
   ]
  },
  {
   "Request": "main",
   "Stage": 4,
   "Count": 1,
   "Because": "held",
   "Taint": null,
   "Rule": "",
   "Examples": [
    {
     "Driver": "d",
     "Pool": "n1",
     "Name": "a"
    }
   ]
  }
 ],
 "Holders": [
  {
   "Request": "main",
   "Claim": {
    "Namespace": "team",
    "Name": "train"
   },
   "Pods": [
    "pod-of-train"
   ],
   "Devices": [
    {
     "Driver": "d",
     "Pool": "n1",
     "Name": "a"
    }
   ]
  }
 ],
 "HoldersInAll": 1,
 "OnOneNode": {
  "main": 2
 },
 "Nodes": [
  {
   "Node": "n1",
   "Free": {
    "main": 1
   },
   "Message": "too few free devices for request main"
  }
 ],
 "Fits": ""
}`
	if string(got) != want {
		t.Errorf("detail:\n%s", got)
	}
}

// The detail counts all holders of devices and names a few, and lists of many
// taints those of most devices.
func TestDetailCountsWhatItDoesNotList(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	var devices []resourcev1.Device
	for i := range 60 {
		d := device(fmt.Sprintf("dev-%d", i), "index", i)
		if i >= 45 {
			d = tainted(d, fmt.Sprintf("unhealthy-%d", i), resourcev1.DeviceTaintEffectNoSchedule)
		}
		devices = append(devices, d)
	}
	w.pool("d", "n1", devices...)
	for i := range 45 {
		w.hold(fmt.Sprintf("train-%d", i), "n1", fmt.Sprintf(`device.attributes["d"].index == %d`, i))
	}
	w.claim("c", spec(deviceRequest("main", 2)))
	detail := w.diagnoser().Explain(t.Context(), question("c"))[0].Detail
	if len(detail.Holders) != maxHolders || detail.HoldersInAll != 45 || detail.OnOneNode["main"] != 45 {
		t.Errorf("%d holders of %d; one node could give %v", len(detail.Holders), detail.HoldersInAll, detail.OnOneNode)
	}
	var taints []string
	for _, removal := range detail.Removed {
		if removal.Stage == dra.StageUntainted {
			taints = append(taints, fmt.Sprintf("%d by %s", removal.Count, removal.Because))
		}
	}
	if len(taints) != maxTaints+1 || taints[0] != "1 by taint unhealthy-45:NoSchedule of the driver" || taints[maxTaints] != "7 by one of 7 other taints" {
		t.Errorf("taints: %q", taints)
	}
}

// Nodes and what is missing there, for a claim that fits and for one that is
// tied to where another claim of the pod is.
func TestDetailNodes(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.node("n2", nil)
	w.class("gpu", `device.driver == "d"`)
	w.pool("d", "n1", devicesNamed(1)...)
	w.pool("d", "n2", devicesNamed(3)...)
	w.hold("first", "n1")
	w.claim("c", spec(deviceRequest("main", 2)))
	fits := w.diagnoser().Explain(t.Context(), question("c"))[0]
	if fits.Detail.Fits != "n2" || fmt.Sprint(fits.Detail.Nodes) != "[{n2 map[main:3] }]" {
		t.Errorf("fits: %+v", fits.Detail)
	}
	tied := w.diagnoser().Explain(t.Context(), question("first", "c"))
	if want := "[{n2 map[main:3] another claim of the pod is allocated on node n1}]"; fmt.Sprint(tied[1].Detail.Nodes) != want {
		t.Errorf("nodes are %v, want %s", tied[1].Detail.Nodes, want)
	}
	if tied[1].Message != "the pod's other claims are allocated on a node without enough free devices for this one" {
		t.Errorf("message %q", tied[1].Message)
	}
}

// A node whose devices do not satisfy the constraints together is not said to
// lack room.
func TestDetailOfConstraints(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	w.pool("d", "n1", device("a", "numa", 0), device("b", "numa", 1))
	s := spec(deviceRequest("main", 2))
	s.Devices.Constraints = []resourcev1.DeviceConstraint{matchAttribute("d/numa")}
	w.claim("c", s)
	v := w.diagnoser().Explain(t.Context(), question("c"))[0]
	if want := "[{n1 map[main:2] enough free devices for each request, but none that satisfy the constraints}]"; fmt.Sprint(v.Detail.Nodes) != want {
		t.Errorf("%s: nodes are %v, want %s", v.Reason, v.Detail.Nodes, want)
	}
}

// As much as the API allows: 32 requests over slices of 128 devices.
func TestManyRequests(t *testing.T) {
	w := newTestCluster(t)
	w.class("gpu", `device.driver == "d"`)
	for n := range 3 {
		name := fmt.Sprintf("n%d", n)
		w.node(name, nil)
		var devices []resourcev1.Device
		for i := range 128 {
			devices = append(devices, device(fmt.Sprintf("dev-%d", i), "index", i, "node", name))
		}
		w.pool("d", name, devices...)
	}
	var fits, not resourcev1.ResourceClaimSpec
	for i := range 32 {
		name := fmt.Sprintf("r%d", i)
		fits.Devices.Requests = append(fits.Devices.Requests, deviceRequest(name, 1, fmt.Sprintf(`device.attributes["d"].index >= %d`, i*4)))
		not.Devices.Requests = append(not.Devices.Requests, deviceRequest(name, 1, fmt.Sprintf(`device.attributes["d"].index == %d`, i/2)))
	}
	w.claim("fits", fits)
	w.claim("not", not)
	diagnoses := w.diagnoser().Explain(t.Context(), question("fits"))
	if v := diagnoses[0]; v.Reason != dra.ReasonNone || len(v.Requests) != 32 || v.Requests[31].Left != [dra.Stages]int{384, 384, 12, 12, 12, 4} {
		t.Errorf("%q %q %v", v.Reason, v.Message, v.Requests)
	}
	// Each two requests want the same device, and there are three of each on as
	// many nodes.
	v := w.diagnoser().Explain(t.Context(), question("not"))[0]
	if v.Reason != dra.ReasonFragmented {
		t.Errorf("%q %q", v.Reason, v.Message)
	}
}

// A claim for which the allocator's search would not end in reasonable time.
func TestEndlessSearch(t *testing.T) {
	w := newTestCluster(t)
	w.node("n1", nil)
	w.class("gpu", `device.driver == "d"`)
	var devices []resourcev1.Device
	for i := range 128 {
		devices = append(devices, device(fmt.Sprintf("dev-%d", i), "group", i%10))
	}
	w.pool("d", "n1", devices...)
	s, group := spec(deviceRequest("main", 11)), resourcev1.FullyQualifiedName("d/group")
	s.Devices.Constraints = []resourcev1.DeviceConstraint{{DistinctAttribute: &group}}
	w.claim("c", s)
	began := time.Now()
	d := w.diagnoser()
	d.searchLimit = allocator.SearchLimit
	v := d.Explain(t.Context(), question("c"))[0]
	if v.Reason != dra.ReasonUndetermined || v.Message != "the diagnosis needs more than 250ms for a search for devices on one node: this applies to 1 of the 1 nodes that were tried" {
		t.Errorf("%q %q", v.Reason, v.Message)
	}
	if took := time.Since(began); took > 20*time.Second { // it is bounded; how fast the machine is does not matter
		t.Errorf("took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if v := w.diagnoser().Explain(ctx, question("c"))[0]; v.Reason != dra.ReasonPendingDiagnosis || v.Message == "" {
		t.Errorf("where the context has ended: %q %q", v.Reason, v.Message)
	}
}

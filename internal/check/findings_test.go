package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dra-exporter/dra-exporter/collector/clock"
	"github.com/dra-exporter/dra-exporter/collector/device"
	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/collector/node"
	"github.com/dra-exporter/dra-exporter/collector/source"
)

// findingsCase is facts and their expected findings, each as OUTCOME SUBJECT
// and a part of its text or remedy.
type findingsCase struct {
	name     string
	findings []Finding
	want     []want
}

type want struct {
	outcome Outcome
	subject string
	words   string
}

func has(findings []Finding, w want) bool {
	for _, f := range findings {
		if f.Outcome == w.outcome && f.Subject == w.subject && strings.Contains(f.Text+" "+f.Remedy, w.words) {
			return true
		}
	}
	return false
}

func spelled(findings []Finding) string {
	var text strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&text, "%s %s: %s -> %s\n", f.Outcome, f.Subject, f.Text, f.Remedy)
	}
	return text.String()
}

func checkFindings(t *testing.T, cases []findingsCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wrong := map[Outcome]bool{}
			for _, w := range c.want {
				wrong[w.outcome] = true
				if !has(c.findings, w) {
					t.Errorf("no %s about %q with %q:\n%s", w.outcome, w.subject, w.words, spelled(c.findings))
				}
			}
			for _, f := range c.findings {
				if !wrong[f.Outcome] && (f.Outcome == Failure || f.Outcome == Warning) {
					t.Errorf("an unexpected %s: %s: %s", f.Outcome, f.Subject, f.Text)
				}
				if (f.Outcome == Failure || f.Outcome == Warning) && (f.Remedy == "" || f.Page == "") {
					t.Errorf("%s says nothing of what to do", f.Subject)
				}
			}
		})
	}
}

func id(driver, name string) dra.DeviceID { return dra.DeviceID{Driver: driver, Pool: "n", Name: name} }

func TestKubelet(t *testing.T) {
	well := kubelet{Socket: "/s/kubelet.sock", IsSocket: true, Answered: true, Status: source.Status{Up: true}}
	listing := dra.PodResources{
		Pods: []dra.PodRef{{Namespace: "a", Name: "p"}},
		Assignments: []dra.Assignment{
			{Claim: dra.ClaimRef{Namespace: "a", Name: "c"}, Device: id("d", "gpu-0"), Container: "x"},
			{Claim: dra.ClaimRef{Namespace: "a", Name: "c"}, Device: id("d", "gpu-0"), Container: "y"},
		},
	}
	but := func(change func(*kubelet)) []Finding {
		k := well
		change(&k)
		return kubeletFindings(k)
	}
	failed := func(reason source.Reason) func(*kubelet) {
		return func(k *kubelet) {
			k.Answered, k.Status = false, source.Status{Reason: reason, Message: "malformed", Errors: 1}
		}
	}
	checkFindings(t, []findingsCase{
		{"one claim of two containers", but(func(k *kubelet) { k.Listing = listing }), []want{{OK, "PodResources", "1 pod, 1 claim with 1 device,"}}},
		{"no folder in a container", but(func(k *kubelet) { k.FolderError, k.Container = fs.ErrNotExist, true }), []want{{Failure, "socket", "Mount"}}},
		{"no folder on a host", but(func(k *kubelet) { k.FolderError = fs.ErrNotExist }), []want{{Failure, "socket", "--kubelet.pod-resources-socket"}}},
		{"an empty folder", but(func(k *kubelet) { k.SocketError = fs.ErrNotExist }), []want{{Failure, "socket", "is not in it"}}},
		{"not root", but(func(k *kubelet) { k.UID, k.SocketError = 65532, fs.ErrPermission }), []want{{Failure, "socket", "Run as root"}}},
		{"root, and refused", but(func(k *kubelet) { failed(source.ReasonPermission)(k) }), []want{{Failure, "socket", "security module"}}},
		{"a file", but(func(k *kubelet) { k.IsSocket = false }), []want{{Failure, "socket", "is not a socket"}}},
		{"hung", but(failed(source.ReasonTimeout)), []want{{Failure, "PodResources", "does not answer"}}},
		{"not asked in time", but(func(k *kubelet) { k.Answered, k.Status = false, source.Status{} }), []want{{Failure, "PodResources", "does not answer"}}},
		{"no listener", but(failed(source.ReasonUnavailable)), []want{{Failure, "PodResources", "refuses connections"}}},
		{"another answer", but(failed(source.ReasonInvalid)), []want{{Failure, "PodResources", "malformed"}}},
		{"it lists no claims", but(func(k *kubelet) { k.Using = []dra.PodRef{{Namespace: "a", Name: "p"}} }),
			[]want{{Warning, "claims", "a/p"}}},
		{"it lists a claim that is not prepared", but(func(k *kubelet) {
			k.Using = []dra.PodRef{{Namespace: "a", Name: "p"}}
			k.Listing.WithoutDevices = []dra.ClaimRef{{Namespace: "a", Name: "c"}}
		}), []want{{OK, "PodResources", "0 claims with 0 devices"}, {OK, "claims", "1 claim without devices"}}},
		{"it lists those that are used", but(func(k *kubelet) { k.Using, k.Listing = []dra.PodRef{{Namespace: "a", Name: "p"}}, listing }), []want{{OK, "PodResources", ""}}},
	})
}

func TestAPIServer(t *testing.T) {
	well := API{Host: "https://k", Version: "v1.37.1", Major: 1, Minor: 37, Groups: []string{"v1"}, Access: []Permission{{Verb: "list", Resource: "pods", For: "pods are unknown", Allowed: true}}}
	but := func(change func(*API)) []Finding {
		a := well
		change(&a)
		return APIFindings(a, "the-role")
	}
	checkFindings(t, []findingsCase{
		{"well", APIFindings(well, ""), []want{{OK, "version", "v1.37.1"}, {OK, "permissions", "1 of 1"}}},
		{"not wanted", but(func(a *API) { a.Disabled = true }), []want{{Skipped, "connection", "--kubernetes.disable"}}},
		{"no way", but(func(a *API) { a.ConfigError = errors.New("no pod") }), []want{{Failure, "connection", "--kubeconfig"}}},
		{"no answer", but(func(a *API) { a.VersionError = errors.New("connection refused") }), []want{{Failure, "connection", "NetworkPolicy"}}},
		{"a foreign certificate", but(func(a *API) { a.VersionError = errors.New("tls: x509: unknown authority") }), []want{{Failure, "connection", "ca.crt"}}},
		{"an old token", but(func(a *API) { a.VersionError = errors.New("Unauthorized") }), []want{{Failure, "connection", "token"}}},
		{"too old", but(func(a *API) { a.Version, a.Minor, a.Groups = "v1.33.2", 33, []string{"v1beta1"} }),
			[]want{{Failure, "version", "v1.33.2 at https://k is too old"}, {Failure, "resource.k8s.io", "not as v1"}}},
		{"not served", but(func(a *API) { a.Groups = nil }), []want{{Failure, "resource.k8s.io", "is not served"}}},
		{"not allowed", but(func(a *API) { a.Access = []Permission{{Verb: "get", Group: "g", Resource: "r", For: "lost"}} }), []want{{Failure, "get r.g", "the-role"}}},
		{"not allowed, and reported once", but(func(a *API) {
			a.Access = []Permission{{Verb: "list", Resource: "pods", For: "lost"}}
			a.Statuses = []source.Status{{Name: "pods", Reason: source.ReasonPermission, Message: "forbidden: second"}}
		}), []want{{Failure, "list pods", "lost"}}},
		{"optional", but(func(a *API) { a.Access = []Permission{{Verb: "list", Resource: "podgroups", Optional: true}} }), []want{{Skipped, "list podgroups", "not needed"}}},
		{"no reviews", but(func(a *API) { a.Access[0].Error = errors.New("not found") }), []want{{Skipped, "permissions", "not found"}}},
		{"a watch that fails", but(func(a *API) {
			a.Access[0].Error = nil
			a.Statuses = []source.Status{{Name: "pods", Reason: source.ReasonUnavailable, Message: "went away", Errors: 1}}
		}), []want{{Failure, "pods", "went away"}}},
		{"waiting for what is not allowed", but(func(a *API) {
			a.Access = []Permission{{Verb: "list", Resource: "pods", For: "lost"}}
			a.Statuses = []source.Status{{Name: "resourceclaims"}}
		}), []want{{Failure, "list pods", "lost"}, {Skipped, "resourceclaims", "missing permissions"}}},
		{"not read in time", but(func(a *API) { a.Statuses = []source.Status{{Name: "pods"}} }), []want{{Failure, "pods", "--timeout"}}},
	})
	for name, c := range map[string]struct {
		n    NodeName
		want Outcome
	}{
		"known":                  {NodeName{Name: "n", Exists: true, Known: true, APIPods: 3, KubeletPods: 3}, OK},
		"another's":              {NodeName{Name: "n", APIPods: 0, KubeletPods: 3}, Failure},
		"no node":                {NodeName{Name: "n", Known: true, APIPods: 0, KubeletPods: 0}, Failure},
		"nothing to compare":     {NodeName{Name: "n", APIPods: -1, KubeletPods: 3}, Skipped},
		"not given":              {NodeName{Missing: errors.New("set --node.name")}, Failure},
		"a node without pods":    {NodeName{Name: "n", APIPods: 0, KubeletPods: 0}, OK},
		"the kubelet is unknown": {NodeName{Name: "n", APIPods: 0, KubeletPods: -1}, OK},
	} {
		if got := nodeNameFindings(c.n); len(got) != 1 || got[0].Outcome != c.want {
			t.Errorf("%s: %swant %s", name, spelled(got), c.want)
		}
	}
}

func gpu(source, uuid, address string, quantities ...device.Quantity) device.Sample {
	sample := device.Sample{Source: source, At: clock.Instant{Elapsed: 1}, Device: device.Device{
		UUID: uuid, Vendor: "nvidia", Model: "NVIDIA H100", PCIBusID: address, DriverVersion: "580.65.06",
		Minor: device.Unknown, Placement: device.Unknown, GPUInstance: device.Unknown, ComputeInstance: device.Unknown,
	}}
	for _, quantity := range quantities {
		sample.Readings = append(sample.Readings, device.Reading{Quantity: quantity})
	}
	return sample
}

func whole() []device.Quantity { return expected(device.Device{}) }

func TestSources(t *testing.T) {
	up := source.Status{Name: "nvml", Up: true, LastSuccess: clock.Instant{Elapsed: 1}}
	gone := source.Status{Name: "nvml", Reason: source.ReasonLibraryMissing, Message: "no library", Errors: 1}
	bus := []PCIFunction{{Address: "0000:10:00.0", Vendor: "nvidia", Driver: "nvidia", GPU: true}}
	two := append(bus[:1:1], PCIFunction{Address: "0000:20:00.0", Vendor: "nvidia", Driver: "nvidia", GPU: true})
	hung := source.Status{Name: "nvml", Reason: source.ReasonTimeout, Errors: 3, HungSince: clock.Instant{Elapsed: 1}}
	part := gpu("nvml", "MIG-1", "", device.MemoryUsed, device.MemorySize)
	part.Device.ParentUUID, part.Device.Profile = "GPU-0", "1g.10gb"
	quiet := gpu("nvml", "MIG-2", "", device.Utilization, device.MemoryUsed, device.MemorySize)
	quiet.Device.ParentUUID, quiet.Device.Profile = "GPU-0", "1g.10gb"
	board := gpu("nvml", "GPU-0", "", whole()...)
	board.Device.Hardware = device.Hardware{
		Serial: "1650923004310", BoardPartNumber: "692-2G525", VBIOS: "97.00", Index: "0", ModuleID: "1", ChassisSerial: "1821325191344", Slot: "9", Tray: "4",
	}
	report := func(s sources) []Finding { return sourceFindings(s) }
	checkFindings(t, []findingsCase{
		{"well", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{gpu("nvml", "GPU-0", "", whole()...), gpu("nvml", "GPU-1", "", whole()...)}, PCI: bus}),
			[]want{{OK, "nvml", "2 × NVIDIA H100 (driver 580.65.06)"}, {OK, "quantities", "6"}}},
		{"nothing here", report(sources{Statuses: []source.Status{gone}, Optional: map[string]bool{"nvml": true}}),
			[]want{{Skipped, "nvml", "not available"}, {Skipped, "hardware", "none"}}},
		{"missed by name", report(sources{Statuses: []source.Status{gone}}), []want{{Failure, "nvml", "no library"}}},
		{"GPUs that no source sees", report(sources{Statuses: []source.Status{gone}, Optional: map[string]bool{"nvml": true}, PCI: bus}),
			[]want{{Failure, "nvidia", "1 GPU is on the PCI bus"}}},
		{"those of a virtual machine are not missed", report(sources{Statuses: []source.Status{up}, PCI: []PCIFunction{{Vendor: "nvidia", Driver: "vfio-pci", GPU: true}}}),
			[]want{{Skipped, "hardware", "none"}}},
		{"a GPU without a kernel driver", report(sources{Statuses: []source.Status{gone}, Optional: map[string]bool{"nvml": true}, PCI: []PCIFunction{{Vendor: "nvidia", GPU: true}}}),
			[]want{{Warning, "nvidia", "1 GPU is on the PCI bus without a kernel driver"}, {Skipped, "nvml", "not available"}}},
		{"one of two fell off the bus", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{gpu("nvml", "GPU-0", "0000:10:00.0", whole()...), quiet}, PCI: two}),
			[]want{{Warning, "nvidia", "no source finds 1 of 2 GPUs on the PCI bus: 0000:20:00.0"}}},
		{"both are seen", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{gpu("nvml", "GPU-0", "0000:10:00.0", whole()...), gpu("nvml", "GPU-1", "0000:20:00.0", whole()...), quiet}, PCI: two}),
			[]want{{OK, "nvml", "2 × NVIDIA H100"}}},
		{"one whose address is not known may be the other", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{gpu("nvml", "GPU-0", "0000:10:00.0", whole()...), gpu("nvml", "GPU-1", "", whole()...)}, PCI: two}),
			[]want{{OK, "nvml", "2 × NVIDIA H100"}}},
		{"a second source of the same", report(sources{Statuses: []source.Status{up, {Name: "dcgm", Up: true, LastSuccess: clock.Instant{Elapsed: 1}}}, Samples: []device.Sample{gpu("nvml", "GPU-0", "", whole()...)}}),
			[]want{{Skipped, "dcgm", "beside those of earlier sources"}}},
		{"published, and no source sees any", report(sources{Statuses: []source.Status{up}, Published: []dra.PublishedDevice{{ID: id("gpu.amd.com", "a")}, {ID: id("d", "b")}}}), []want{{Failure, "hardware", "drivers publish 2 devices"}}},
		{"devices that no source reads are not missed", report(sources{Statuses: []source.Status{up}, Published: []dra.PublishedDevice{{ID: id("d", "b")}}}), []want{{Skipped, "hardware", "none"}}},
		{"hung", report(sources{Statuses: []source.Status{hung}, Samples: []device.Sample{gpu("nvml", "GPU-0", "", whole()...)}}), []want{{Failure, "nvml", "does not answer"}}},
		{"never came back", report(sources{Statuses: []source.Status{{Name: "dcgm"}}}), []want{{Failure, "dcgm", "does not answer"}}},
		{"partitions without utilization", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{part}}), []want{{Warning, "quantities", "--device.profiling"}}},
		{"no energy", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{gpu("nvml", "GPU-0", "", device.Utilization, device.MemoryUsed, device.MemorySize, device.Power, device.Temperature)}}),
			[]want{{Skipped, "quantities", "not reported by its driver: energy"}}},
		{"some of them", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{gpu("nvml", "GPU-0", "", whole()...), gpu("nvml", "GPU-1", "", whole()[1:]...)}}),
			[]want{{Warning, "quantities", "utilization (of 1 of 2)"}}},
		{"what identifies the boards", report(sources{Statuses: []source.Status{up}, Samples: []device.Sample{board, gpu("nvml", "GPU-1", "", whole()...)}}),
			[]want{{OK, "boards", "GPU-0: serial number 1650923004310, part number 692-2G525, VBIOS 97.00, index 0, module 1, chassis 1821325191344, slot 9, tray 4"}}},
		{"flags", report(sources{OpenError: errors.New("--dcgm.host-engine=x")}), []want{{Failure, "flags", "--dcgm.host-engine=x"}}},
	})
}

func TestMatching(t *testing.T) {
	published := func(name, uuid, profile string) dra.PublishedDevice {
		return dra.PublishedDevice{ID: id("gpu.nvidia.com", name), UUID: uuid, Profile: profile, Placement: dra.PlacementUnknown}
	}
	match := func(name, uuid string) deviceMatch {
		return deviceMatch{Device: id("gpu.nvidia.com", name), Rule: "uuid", UUID: uuid}
	}
	two := []device.Sample{gpu("nvml", "GPU-0", "0000:10:00.0"), gpu("nvml", "GPU-1", "0000:20:00.0")}
	both := []dra.PublishedDevice{published("gpu-0", "GPU-0", ""), published("gpu-1", "GPU-1", "")}
	later := published("gpu-0-mig-1g", "", "1g.10gb")
	checkFindings(t, []findingsCase{
		{"well", matchingFindings(matching{SlicesKnown: true, Published: both, Samples: two, Matches: []deviceMatch{match("gpu-0", "GPU-0"), match("gpu-1", "GPU-1")}}),
			[]want{{OK, "gpu.nvidia.com", "2 of 2 devices matched by uuid"}}},
		{"one that no claim holds", matchingFindings(matching{SlicesKnown: true, Published: both, Samples: two[:1], Matches: []deviceMatch{match("gpu-0", "GPU-0")}}),
			[]want{{Warning, "gpu.nvidia.com", "no hardware is known for gpu-1"}}},
		{"one that a claim holds", matchingFindings(matching{SlicesKnown: true, Published: both, Allocated: []dra.DeviceID{id("gpu.nvidia.com", "gpu-1")}, Samples: two[:1], Matches: []deviceMatch{match("gpu-0", "GPU-0")}}),
			[]want{{Failure, "gpu.nvidia.com", "of which claims hold 1"}}},
		{"one that no source reads", matchingFindings(matching{SlicesKnown: true, Published: []dra.PublishedDevice{{ID: id("d", "b")}}, Allocated: []dra.DeviceID{id("d", "b")}}),
			[]want{{Skipped, "d", "0 of 1 device matched; no source of this exporter reads such devices: claims have holders, but no hardware values of b"}}},
		{"partitions to come", matchingFindings(matching{SlicesKnown: true, Published: append(both[:1:1], later), Samples: two[:1], Matches: []deviceMatch{match("gpu-0", "GPU-0")}}),
			[]want{{OK, "gpu.nvidia.com", "1 of 1 device matched by uuid; 1 partition is not created yet"}}},
		{"a partition that is held must be there", matchingFindings(matching{SlicesKnown: true, Published: append(both[:1:1], later), Allocated: []dra.DeviceID{later.ID}, Samples: two[:1], Matches: []deviceMatch{match("gpu-0", "GPU-0")}}),
			[]want{{Failure, "gpu.nvidia.com", "gpu-0-mig-1g"}}},
		{"hardware that is left out", matchingFindings(matching{SlicesKnown: true, Published: both[:1], Samples: two, Matches: []deviceMatch{match("gpu-0", "GPU-0")}}),
			[]want{{Skipped, "hardware", "GPU-1"}}},
		{"no driver", matchingFindings(matching{SlicesKnown: true, Samples: two}), []want{{Warning, "published devices", "kubectl get resourceslices"}}},
		{"nothing", matchingFindings(matching{SlicesKnown: true}), []want{{Skipped, "published devices", "none"}}},
		{"not known", matchingFindings(matching{Samples: two}), []want{{Skipped, "published devices", "cannot be read"}}},
	})
}

// TestOwnClaim: the claim of the pod in which the check runs is found if it is by admin
// access, and no claim of another pod is.
func TestOwnClaim(t *testing.T) {
	agent := dra.Pod{Ref: dra.PodRef{Namespace: "gpu", Name: "agent-x1"}, UID: "1"}
	claim := func(name, uid string, admin bool) dra.Claim {
		return dra.Claim{Ref: dra.ClaimRef{Namespace: "gpu", Name: name}, ReservedFor: []dra.Consumer{{Resource: "pods", UID: uid}}, Results: []dra.Result{{AdminAccess: admin}, {AdminAccess: admin}}}
	}
	cluster := node.APIFacts{Pods: []dra.Pod{agent, {Ref: dra.PodRef{Namespace: "gpu", Name: "other"}, UID: "2"}}, Claims: []dra.Claim{claim("mine", "1", true), claim("held", "1", false), claim("others", "2", true)}}
	findings := ownClaimFindings("agent-x1", cluster)
	if len(findings) != 1 || !has(findings, want{Warning, "gpu/mine", "2 devices by admin access"}) {
		t.Errorf("findings are %v", findings)
	}
	for name, in := range map[string]node.APIFacts{"": cluster, "elsewhere": cluster, "agent-x1": {Pods: []dra.Pod{agent}}} {
		if findings := ownClaimFindings(name, in); len(findings) != 0 {
			t.Errorf("%q: findings are %v", name, findings)
		}
	}
}

func TestOtherSources(t *testing.T) {
	checkFindings(t, []findingsCase{
		{"a laptop", HostFindings(Host{}), []want{{Warning, "place", "kubectl exec"}}},
		{"a pod", HostFindings(Host{Pod: true, Container: true, Vendors: true, Capabilities: []string{"CAP_SYS_ADMIN"}, PCI: []PCIFunction{{Vendor: "nvidia", Driver: "nvidia", GPU: true}, {Vendor: "mellanox"}}}),
			[]want{{OK, "program", "with CAP_SYS_ADMIN"}, {OK, "PCI bus", "1 × mellanox adapter without a kernel driver, 1 × nvidia GPU (nvidia)"}}},
		{"a node without sysfs", HostFindings(Host{Node: true, SysfsError: fs.ErrNotExist, ProcfsError: fs.ErrNotExist}), []want{{Warning, "sysfs", "--path.sysfs"}, {Warning, "procfs", "--path.procfs"}}},
		{"a node file", HostFindings(Host{Node: true, Nodes: []DeviceNode{{Path: "/dev/nvidiactl", Error: fs.ErrPermission}}}), []want{{Warning, "/dev/nvidiactl", "cannot be opened"}}},
		{"flags taken over", InheritedFindings([]string{"--a=b"}, nil), []want{{OK, "flags", "--a=b"}}},
		{"flags with a password", InheritedFindings([]string{"--otlp.endpoint=https://me:secret@collector:4317"}, nil), []want{{OK, "flags", "--otlp.endpoint=https://xxxxx@collector:4317"}}},
		{"flags with an odd password", InheritedFindings([]string{"--otlp.endpoint=https://me:sec@ret@collector:4317", "--x=y@z"}, nil), []want{{OK, "flags", "--otlp.endpoint=https://xxxxx@collector:4317 --x=y@z"}}},
		{"flags not taken over", InheritedFindings(nil, errors.New("--new")), []want{{Warning, "flags", "--new"}}},
		{"no CDI", cdiFindings(cdi{Folders: []cdiFolder{{"/etc/cdi", fs.ErrNotExist}}}), []want{{Skipped, "specifications", "none"}}},
		{"CDI", cdiFindings(cdi{Folders: []cdiFolder{{"/etc/cdi", nil}}, Devices: 2, Held: 2, Known: 1}), []want{{OK, "specifications", "2 devices"}}},
		{"another CDI folder", cdiFindings(cdi{Folders: []cdiFolder{{"/etc/cdi", nil}}, Held: 2}), []want{{Warning, "allocated devices", "not mounted"}}},
		{"an unreadable folder", cdiFindings(cdi{Folders: []cdiFolder{{"/etc/cdi", fs.ErrPermission}}}), []want{{Warning, "/etc/cdi", "cannot be read"}}},
		{"Pods API", podsAPIFindings("/s", source.Status{Up: true}), []want{{OK, "Pods API", "/s"}}},
		{"no Pods API", podsAPIFindings("/s", source.Status{Message: "no socket"}), []want{{Failure, "Pods API", "1.37"}}},
		{"settings", SettingsFindings(CheckedSettings{FlagsError: errors.New("--x"), Prices: "p", PricesError: errors.New("broken"), WebConfig: "w", WebConfigError: errors.New("no key"), Pushes: []PushEndpoint{{"metrics", "c:1", errors.New("refused")}}}),
			[]want{{Failure, "flags", "--x"}, {Failure, "price list", "broken"}, {Failure, "web configuration", "no key"}, {Failure, "metrics", "c:1"}}},
		{"access", SettingsFindings(CheckedSettings{Access: node.GPUAccess{Mode: "none", Reason: "nothing_found"}}), []want{{OK, "access", "mode none, reason nothing_found"}}},
		{"good settings", SettingsFindings(CheckedSettings{Prices: "p", WebConfig: "w", Pushes: []PushEndpoint{{"metrics", "c:1", nil}}}), []want{{OK, "price list", "p"}, {OK, "metrics", "c:1"}}},
		{"pushing is off", SettingsFindings(CheckedSettings{PushWithheld: true}), []want{{Warning, "settings", "OTEL_SDK_DISABLED"}}},
		{"two roles", ClusterFindings(ClusterFacts{Instances: 2}), []want{{Failure, "instances", "2 pods"}}},
		{"a bare cluster", ClusterFindings(ClusterFacts{SliceRead: true, ClassRead: true, Supply: &dra.Supply{}, Instances: 1, Minor: 35}), []want{{Warning, "drivers", "Install"}, {Warning, "device classes", "none"}, {Skipped, "times", "1.36"}}},
		{"a cluster", ClusterFindings(ClusterFacts{SliceRead: true, ClassRead: true, RuleServed: true, Minor: 37, Instances: -1, Supply: &dra.Supply{
			Pools:   []*dra.PoolSupply{{Driver: "d", Pool: "a", Node: "a", Complete: true, Devices: [dra.DeviceStates]int{1, 2, 0}}, {Driver: "d", Pool: "b", Node: "b"}},
			Classes: []dra.ClassSupply{{Class: "c", Counted: true}, {Class: "e", Error: "no such attribute"}},
		}}), []want{{Warning, "d", "3 devices in 2 pools on 2 nodes, of which incomplete: b"}, {Warning, "e", "no such attribute"}, {Skipped, "device classes", "c"}}},
	})
	for state, outcome := range map[string]Outcome{"ok": OK, "disabled": Skipped, "pid_namespace": Skipped, "no_procfs": Skipped, "no_pods": Skipped, "unsupported": Skipped} {
		if got := sharingFindings(state); len(got) != 1 || got[0].Outcome != outcome || outcome == Skipped && got[0].Remedy == "" {
			t.Errorf("sharing %s: %s", state, spelled(got))
		}
	}
}

// Every page that a remedy points to exists, with its section.
func TestPagesExist(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]bool{}
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, page := range regexp.MustCompile(`docs/[A-Za-z/-]+\.md(#[a-z0-9-]+)?`).FindAllString(string(text), -1) {
			pages[page] = true
		}
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages are named", len(pages))
	}
	for page := range pages {
		path, anchor, _ := strings.Cut(page, "#")
		text, err := os.ReadFile(filepath.Join("../..", path))
		if err != nil {
			t.Errorf("%s: %v", page, err)
			continue
		}
		found := anchor == ""
		for line := range strings.Lines(string(text)) {
			title := strings.TrimLeft(line, "#")
			found = found || title != line && strings.ReplaceAll(strings.ToLower(strings.TrimSpace(title)), " ", "-") == anchor
		}
		if !found {
			t.Errorf("%s has no such section", page)
		}
	}
}

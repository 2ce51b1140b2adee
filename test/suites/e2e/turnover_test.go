package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
	"github.com/dra-exporter/dra-exporter/test/suites/e2e/scrape"
)

const (
	turnoverDriver    = "turnover.test"
	turnoverCondition = "turnover.test/attached" // of gpu-1
)

func turnoverUUID(gpu int) string { return fmt.Sprintf("GPU-70000000-0000-0000-0000-%012d", gpu) }

// turnoverHardware is the hardware of turnover.test. It has no vendor, so that
// the device is matched only by the UUID in the slices, and not by its name.
func turnoverHardware() *hardware {
	h := &hardware{Seed: 1}
	for gpu := range 3 {
		h.Devices = append(h.Devices, &chip{UUID: turnoverUUID(gpu), Quantities: quantities(gpu, false)})
	}
	return h
}

// TestTurnoverWhileDriverDown: claims are created and deleted while a driver
// is down and its slices are gone. Claim b has been allocated before, and its
// pod waits for a binding condition, as it does while a device is attached to
// the node: b holds nothing when the slices disappear, and is bound to the
// node while they are absent. It must be matched to the hardware that the
// driver published for its device.
func TestTurnoverWhileDriverDown(t *testing.T) {
	covers(t)
	startOther(t, turnoverDriver)
	t.Cleanup(func() { unprepared(t, turnoverDriver) }) // before the driver ends, because the kubelet retries forever
	deploy(t, "turnover")
	driver := shared.Process("driver-" + turnoverDriver)
	t.Cleanup(func() { runsAgain(t, driver) }) // before the pods are deleted, because their claims are unprepared
	agent := runHostAgent(t, turnoverHardware(), shared.KubeletSocket())
	w := watchHostAgent(t, agent)
	for _, pod := range []string{"a", "c"} {
		running(t, "turnover", pod)
	}
	waitReserved(t, "b")
	before := pageWithin(t, w, time.Minute, "a and c to hold their devices", func(p *scrape.Page) error {
		return errors.Join(onHardware(p, "a", 0), onHardware(p, "c", 2), hasNoRow(p, "dra_claim_held", turnoverClaim("b")))
	})
	check := w.CheckRule(func(p *scrape.Page) []error {
		if err := onHardware(p, "c", 2); err != nil {
			return []error{err}
		}
		return nil
	})

	if err := driver.Stop(); err != nil {
		t.Fatal(err)
	}
	pageWithin(t, w, time.Minute, "the slices to be gone", func(*scrape.Page) error { return noSlices(t, turnoverDriver) })
	endWithoutDriver(t, w, "a")
	waitsForDevice(t, "b")
	attach(t, "b")
	boundPod(t, "turnover", "b")
	pageWithin(t, w, 20*time.Second, "b to hold its device", func(p *scrape.Page) error { return onHardware(p, "b", 1) })
	if err := noSlices(t, turnoverDriver); err != nil {
		t.Error(err)
	}

	start(t, driver)
	running(t, "turnover", "b")
	after := pageWithin(t, w, time.Minute, "b and c to hold their devices", func(p *scrape.Page) error {
		return errors.Join(onHardware(p, "b", 1), onHardware(p, "c", 2), hasNoRow(p, "dra_claim_held", turnoverClaim("a")))
	})
	passed := after.At.Sub(before.At).Seconds()
	if held := increase(before, after, "dra_claim_held_seconds_total", turnoverClaim("c")); !(held > passed-5 && held < passed+5) {
		t.Errorf("c was held for %v of %v s", held, passed)
	}
	endRuleCheck(t, check, 60)
}

func turnoverClaim(name string) scrape.Labels {
	return scrape.Labels{"namespace": "turnover", "resourceclaim": name}
}

// onHardware returns an error unless a claim holds exactly this GPU, and has
// its values.
func onHardware(p *scrape.Page, claim string, gpu int) error {
	held, err := p.One("dra_claim_held", turnoverClaim(claim))
	if err != nil {
		return err
	}
	if uuid := held.Labels["uuid"]; uuid != turnoverUUID(gpu) {
		return fmt.Errorf("%s is said to hold %s, not %s", claim, uuid, turnoverUUID(gpu))
	}
	labels := with(turnoverClaim(claim), "uuid", turnoverUUID(gpu), "attribution", "exclusive")
	memory := quantities(gpu, false)["memory_used"].(float64)
	errs := []error{claimHas(p, "dra_claim_memory_used_bytes", labels, memory)}
	for _, name := range []string{"dra_claim_utilization_ratio", "dra_claim_busy_seconds_total", "dra_claim_power_watts", "dra_claim_energy_joules_total"} {
		_, err := p.One(name, labels)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// waitReserved waits until a claim is allocated, and reserved for its pod.
func waitReserved(t *testing.T, name string) {
	t.Helper()
	err := cluster.Eventually(t.Context(), "claim "+name+" to be reserved", func(ctx context.Context) error {
		claim, err := shared.Client().ResourceV1().ResourceClaims("turnover").Get(ctx, name, metav1.GetOptions{})
		if err == nil && (claim.Status.Allocation == nil || len(claim.Status.ReservedFor) == 0) {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// waitsForDevice fails the test if a pod is bound, or gone: the scheduler must
// wait for the binding condition.
func waitsForDevice(t *testing.T, name string) {
	t.Helper()
	pod, err := shared.Client().CoreV1().Pods("turnover").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pod.Spec.NodeName != "" {
		t.Fatalf("the pod %s is bound to %s", name, pod.Spec.NodeName)
	}
}

// endWithoutDriver deletes a pod whose driver is down. The kubelet ends its
// container but cannot unprepare the claim. The pod and the reservation
// remain, and so does the hold. Deleting the pod by force ends that in the
// API, which releases the claim. The kubelet unprepares it when the driver is
// up again.
func endWithoutDriver(t *testing.T, w *scrape.Watcher, name string) {
	t.Helper()
	process := fmt.Sprintf("/proc/%d", containerPID(t, running(t, "turnover", name), "main"))
	if _, err := shared.Kubectl(t.Context(), "delete", "pod", "--namespace=turnover", name, "--wait=false"); err != nil {
		t.Fatal(err)
	}
	pageWithin(t, w, time.Minute, "the container to end", func(*scrape.Page) error {
		if _, err := os.Stat(process); err == nil {
			return errors.New("it runs")
		}
		return nil
	})
	time.Sleep(3 * time.Second) // in which the kubelet retries to unprepare it
	waitReserved(t, name)
	pageWithin(t, w, 5*time.Second, name+" to hold its device still", func(p *scrape.Page) error { return onHardware(p, name, 0) })
	if _, err := shared.Kubectl(t.Context(), "delete", "pod", "--namespace=turnover", name, "--force", "--grace-period=0"); err != nil {
		t.Fatal(err)
	}
	pageWithin(t, w, time.Minute, "the hold to end", func(p *scrape.Page) error { return hasNoRow(p, "dra_claim_held", turnoverClaim(name)) })
}

// attach makes the binding condition of a claim's device true, as a controller
// does after it has attached the device to the node.
func attach(t *testing.T, name string) {
	t.Helper()
	claims := shared.Client().ResourceV1().ResourceClaims("turnover")
	claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	result := claim.Status.Allocation.Devices.Results[0]
	status := resourceapi.AllocatedDeviceStatus{Driver: result.Driver, Pool: result.Pool, Device: result.Device}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: turnoverCondition, Status: metav1.ConditionTrue, Reason: "Attached"})
	claim.Status.Devices = []resourceapi.AllocatedDeviceStatus{status}
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// unprepared waits until a driver of drivers/shapes has no prepared claim.
func unprepared(t *testing.T, driver string) {
	err := cluster.Eventually(context.WithoutCancel(t.Context()), "claims of "+driver+" to be unprepared", func(context.Context) error {
		specs, err := filepath.Glob(filepath.Join(shared.CDIDir(), "k8s."+driver+"-claim_*"))
		if err == nil && len(specs) > 0 {
			err = fmt.Errorf("there is %q", specs)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// runsAgain starts a process that a test has left stopped.
func runsAgain(t *testing.T, p *cluster.Process) {
	if p.PID() != 0 {
		return
	}
	if err := p.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

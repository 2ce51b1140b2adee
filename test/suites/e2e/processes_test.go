package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-exporter/dra-exporter/test/suites/e2e/cluster"
)

// mainPID is the first process of a container of the namespace sharing.
func mainPID(t *testing.T, pod, container string) int {
	t.Helper()
	return containerPID(t, running(t, "sharing", pod), container)
}

func containerPID(t *testing.T, pod *corev1.Pod, container string) int {
	t.Helper()
	pid, err := shared.ContainerPID(pod, container)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// childOf waits for the only child of a process, started by any of its
// threads, in the same cgroups.
func childOf(t *testing.T, parent int) (child int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		t.Fatal(err)
	}
	var children []string
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // the thread may have ended
			t.Fatal(err)
		}
		children = append(children, strings.Fields(string(text))...)
	}
	if len(children) != 1 {
		t.Fatalf("the children of %d are %q", parent, children)
	}
	if child, err = strconv.Atoi(children[0]); err != nil {
		t.Fatal(err)
	}
	if own, parents := cgroupsOf(t, child), cgroupsOf(t, parent); own != parents {
		t.Fatalf("the child is in\n%s, its parent in\n%s", own, parents)
	}
	return child
}

func cgroupsOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hostProcess starts a process that belongs to no pod and ends with the test.
// It is waited for as soon as it ends.
func hostProcess(t *testing.T) int {
	t.Helper()
	process := exec.Command("sleep", "3600")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		process.Wait()
	}()
	t.Cleanup(func() {
		process.Process.Kill()
		<-waited
	})
	return process.Process.Pid
}

// end kills a process and waits until it is gone.
func end(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("end the process %d: %v", pid, err)
	}
}

// containerID returns the runtime's id from the pod's status.
func containerID(t *testing.T, pod, container string) string {
	t.Helper()
	return idOf(running(t, "sharing", pod), container)
}

func idOf(pod *corev1.Pod, container string) string {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == container && status.State.Running != nil {
			return status.ContainerID
		}
	}
	return ""
}

// restarted waits until a container other than the first one runs, and returns
// its process.
func restarted(t *testing.T, name, container, first string) (pid int) {
	t.Helper()
	err := cluster.Eventually(t.Context(), container+" to be restarted", func(ctx context.Context) error {
		pod, err := shared.Client().CoreV1().Pods("sharing").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if id := idOf(pod, container); id == "" || id == first {
			return fmt.Errorf("the container is %q", id)
		}
		pid, err = shared.ContainerPID(pod, container)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

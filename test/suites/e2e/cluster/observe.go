package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// PodResources reads the devices of all pods from the kubelet.
func (c *Cluster) PodResources(ctx context.Context) ([]*podresources.PodResources, error) {
	connection, err := grpc.NewClient("unix://"+c.KubeletSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("connect to the kubelet: %w", err)
	}
	defer connection.Close()
	response, err := podresources.NewPodResourcesListerClient(connection).List(ctx, &podresources.ListPodResourcesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list pod resources: %w", err)
	}
	return response.GetPodResources(), nil
}

// WaitPod waits until a pod is in a phase, with all its containers ready if
// the phase is Running, and returns it. It returns an error immediately if the
// pod has ended in another phase.
func (c *Cluster) WaitPod(ctx context.Context, namespace, name string, phase corev1.PodPhase) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := Eventually(ctx, fmt.Sprintf("pod %s/%s %s", namespace, name, phase), func(ctx context.Context) (err error) {
		if pod, err = c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		return checkPod(pod, phase)
	})
	return pod, err
}

func checkPod(pod *corev1.Pod, phase corev1.PodPhase) error {
	var notReady []string
	for _, container := range pod.Status.ContainerStatuses {
		if !container.Ready {
			notReady = append(notReady, fmt.Sprintf("%s: %+v", container.Name, container.State))
		}
	}
	switch found := pod.Status.Phase; {
	case found != phase && (found == corev1.PodFailed || found == corev1.PodSucceeded):
		return Permanent(fmt.Errorf("it is %s: %s", found, notReady))
	case found != phase:
		return fmt.Errorf("it is %s: %v", found, pod.Status.Conditions)
	case phase == corev1.PodRunning && len(notReady) > 0:
		return fmt.Errorf("not ready: %s", notReady)
	}
	return nil
}

// ContainerPID returns the process id, on this machine, of a running
// container.
func (c *Cluster) ContainerPID(pod *corev1.Pod, container string) (int, error) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name != container {
			continue
		}
		id := strings.TrimPrefix(status.ContainerID, "containerd://")
		data, err := os.ReadFile(c.layout.path("run", "containerd", "io.containerd.runtime.v2.task", "k8s.io", id, "init.pid"))
		if err != nil {
			return 0, fmt.Errorf("find process of container %s: %w", container, err)
		}
		return strconv.Atoi(string(data))
	}
	return 0, fmt.Errorf("pod %s has no container %s", pod.Name, container)
}

// ContainerEnv returns the environment of a running container's process,
// including the variables that DRA drivers inject.
func (c *Cluster) ContainerEnv(pod *corev1.Pod, container string) (map[string]string, error) {
	pid, err := c.ContainerPID(pod, container)
	if err != nil {
		return nil, err
	}
	data, err := environ(pid)
	if err != nil {
		return nil, fmt.Errorf("read environment of container %s: %w", container, err)
	}
	env := map[string]string{}
	for _, variable := range strings.Split(strings.TrimRight(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env, nil
}

// environ returns the environment of a container's process. A container is
// reported as running a moment before its process replaces the one of runc, which
// has another environment.
func environ(pid int) ([]byte, error) {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !strings.HasPrefix(string(command), "runc:[") && len(data) > 0 {
			return data, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("process %d is still %q, without the container's environment", pid, command)
		}
	}
}

// Command pause is the program of the test image: it is the sandbox of every
// pod and the workload of most.
//
//	pause                wait for SIGTERM or SIGINT, then exit 0
//	pause sleep SECONDS  exit 0 after that time: init containers, jobs
//	pause family N       the same as without arguments, beside N children that do, too
//	pause serve ADDRESS  answer every HTTP request with the process's environment
//	pause apiserver      exit 0 if the API server answers to the pod's own token
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const credentials = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pause:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 0:
		<-ctx.Done()
		return nil
	case len(args) == 2 && args[0] == "sleep":
		return sleep(ctx, args[1])
	case len(args) == 2 && args[0] == "family":
		return family(ctx, args[1])
	case len(args) == 2 && args[0] == "serve":
		return serve(ctx, args[1])
	case len(args) == 1 && args[0] == "apiserver":
		return checkAPIServer(ctx)
	}
	return fmt.Errorf("unknown arguments %q", args)
}

func sleep(ctx context.Context, seconds string) error {
	n, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return fmt.Errorf("parse seconds: %w", err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(n * float64(time.Second))):
	}
	return nil
}

// family starts children that wait as it does, and waits for each so that no
// zombie remains.
func family(ctx context.Context, size string) error {
	n, err := strconv.Atoi(size)
	if err != nil {
		return fmt.Errorf("parse the number of children: %w", err)
	}
	for range n {
		child := exec.Command("/proc/self/exe")
		if err := child.Start(); err != nil {
			return fmt.Errorf("start a child: %w", err)
		}
		go child.Wait() // its exit status does not matter
	}
	<-ctx.Done()
	return nil
}

func serve(ctx context.Context, address string) error {
	server := &http.Server{Addr: address, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintln(w, strings.Join(os.Environ(), "\n"))
		})}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// checkAPIServer sends a request with the in-cluster configuration. It fails
// if the service address is not reachable or the server's certificate is not
// signed by the published CA.
func checkAPIServer(ctx context.Context) error {
	token, err := os.ReadFile(credentials + "token")
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(credentials + "ca.crt")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	host := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/apis/resource.k8s.io/v1", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the API server answers %s", response.Status)
	}
	return nil
}

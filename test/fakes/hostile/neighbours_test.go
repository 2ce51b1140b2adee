package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"
	authenticationv1 "k8s.io/api/authentication/v1"
)

// The chart's memory limit of the node agent, and its GOMEMLIMIT, two thirds of it.
const (
	neighbourLimit = 192 << 20
	neighbourSoft  = "GOMEMLIMIT=128MiB"
)

// TestMemoryOfNeighbours runs the node agent beside many neighbours of a kind, each as
// costly as it can be. The memory of the process stays below the chart's limit, and a
// neighbour that behaves well is read.
func TestMemoryOfNeighbours(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute")
	}
	program := neighbourProgram(t)
	for _, kind := range []struct {
		name   string
		counts []int
		start  func(t *testing.T, folder string, count int) (args []string)
		wait   string // a line of the page without its value: of the neighbour that behaves well
		load   func(t *testing.T, url string, count int)
	}{
		{"exporters", []int{8, 16}, neighbourPages, `dra_device_power_watts{.*well`, nil},
		{"drivers with pages", []int{8, 64}, neighbourDrivers, `dra_device_power_watts{.*well`, nil},
		{"reviews of users", []int{8, 64}, neighbourReviews, `dra_exporter_access_reviews_total`, neighbourUsers},
		{"libtpu services that flood", []int{8, 15}, neighbourServices, `dra_exporter_source_up{source="tpu"} 1`, nil},
		{"a neuron-monitor", []int{1}, neighbourMonitor, `dra_exporter_source_up{source="neuron"}`, nil},
	} {
		for _, count := range kind.counts {
			t.Run(fmt.Sprintf("%d %s", count, kind.name), func(t *testing.T) {
				folder, err := os.MkdirTemp("", "n") // the path of a socket must be short
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(folder) })
				args := kind.start(t, folder, count)
				agent := startNeighbourAgent(t, program, folder, args)
				if kind.load != nil {
					kind.load(t, agent.url, count)
				}
				agent.watch(t, kind.wait)
			})
		}
	}
}

// neighbourProgram is the program that DRA_EXPORTER names, or this source built.
func neighbourProgram(t *testing.T) string {
	t.Helper()
	if program := os.Getenv("DRA_EXPORTER"); program != "" {
		return program
	}
	program := filepath.Join(t.TempDir(), "dra-exporter")
	build := exec.Command("go", "build", "-ldflags", "-extldflags=-Wl,-z,lazy", "-o", program, "../../../cmd/dra-exporter")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the exporter: %v\n%s", err, text)
	}
	return program
}

// neighbourAgent is a running node agent.
type neighbourAgent struct {
	process *exec.Cmd
	url     string
	log     string
}

func startNeighbourAgent(t *testing.T, program, folder string, args []string) *neighbourAgent {
	t.Helper()
	a := &neighbourAgent{log: filepath.Join(folder, "log")}
	file, err := os.Create(a.log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	args = append([]string{"node", "--node.name=node-a", "--kubelet.pod-resources-socket=" + folder + "/none", "--cdi.dir=" + folder, "--web.listen-address=127.0.0.1:0", "--metrics.level=full"}, args...)
	a.process = exec.Command(program, args...)
	a.process.Stdout, a.process.Stderr = file, file
	a.process.Env = append(os.Environ(), neighbourSoft, "GOMAXPROCS=2")
	if err := a.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last lines of the agent:\n%s", lastLines(a.log, 20))
		}
		_ = a.process.Process.Kill()
		_ = a.process.Wait()
	})
	address := regexp.MustCompile(`address=(127\.0\.0\.1:[0-9]+)`)
	for range 600 {
		if found := address.FindStringSubmatch(lastLines(a.log, 1000)); found != nil {
			a.url = "http://" + found[1]
			return a
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the agent does not listen:\n%s", lastLines(a.log, 30))
	return nil
}

// watch scrapes the agent for some seconds, and compares its memory with the limit. What
// counts is its own memory: the kernel can drop the pages of the program's file.
func (a *neighbourAgent) watch(t *testing.T, wait string) {
	t.Helper()
	wanted, seen := regexp.MustCompile(wait), false
	began, used := time.Now(), a.cpu(t)
	length := time.Duration(memoryNumberOf("SECONDS", 5)) * time.Second
	own := 0
	for end := began.Add(length); time.Now().Before(end) || !seen && time.Now().Before(end.Add(time.Minute)); {
		page, err := a.scrape(t.Context())
		seen = seen || err == nil && wanted.MatchString(page)
		for range 20 {
			own = max(own, a.status(t, "RssAnon"))
			time.Sleep(50 * time.Millisecond)
		}
	}
	share := (a.cpu(t) - used).Seconds() / time.Since(began).Seconds()
	t.Logf("%d MiB at most, %d MiB with the program's file, %.2f of a core", own>>20, a.status(t, "VmHWM")>>20, share)
	if own > neighbourLimit {
		t.Errorf("the agent takes %d MiB, more than %d", own>>20, neighbourLimit>>20)
	}
	if !seen {
		t.Error("a neighbour that behaves well is not read")
	}
}

// scrape reads the metrics, as the user "well".
func (a *neighbourAgent) scrape(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer well")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// status returns a size of the process's status, in bytes.
func (a *neighbourAgent) status(t *testing.T, name string) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == name+":" {
			size, _ := strconv.Atoi(words[1])
			return size << 10
		}
	}
	t.Skipf("the process does not live any more, or the system does not know %s", name)
	return 0
}

// cpu returns the time that the process has used.
func (a *neighbourAgent) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')'):]))
	user, _ := strconv.Atoi(words[12])
	system, _ := strconv.Atoi(words[13])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// neighbourServe serves connections until the test ends.
func neighbourServe(t *testing.T, protocol, address string, serve func(net.Conn)) net.Addr {
	t.Helper()
	listener, err := net.Listen(protocol, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(t.Context(), func() { _ = connection.Close() })
			go func() {
				defer connection.Close()
				serve(connection)
			}()
		}
	}()
	return listener.Addr()
}

// neighbourPages serves pages of as many series as are allowed, in 4 MiB, and a small
// one.
func neighbourPages(t *testing.T, folder string, count int) []string {
	t.Helper()
	var config strings.Builder
	config.WriteString("exporters:\n")
	for i := range count {
		var page bytes.Buffer
		for n := range 20_000 {
			fmt.Fprintf(&page, "m%d{id=\"gpu-%d-%d\",a=\"%0128d\"} %d\n", n%20, i, n/20, n, n)
		}
		if i == count-1 {
			page.Reset()
			page.WriteString("m0{id=\"well\"} 1\n")
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page.Bytes()) })}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
		fmt.Fprintf(&config, "- name: e%d\n  url: http://%s/metrics\n  interval: 1s\n  device: {uuid: id}\n  metrics:\n", i, listener.Addr())
		fmt.Fprintf(&config, "  - {metric: m0, quantity: power}\n")
		for n := 1; n < 20; n++ {
			fmt.Fprintf(&config, "  - {metric: m%d, quantity: extension, details: {name: q%d, kind: gauge}}\n", n, n)
		}
	}
	path := filepath.Join(folder, "exporters.yaml")
	if err := os.WriteFile(path, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--kubernetes.disable", "--device.source=exporter", "--exporter.dir=", "--exporter.config=" + path}
	for n := 1; n < 20; n++ {
		args = append(args, fmt.Sprintf("--exporter.extensions=q%d", n))
	}
	return args
}

// neighbourDrivers serves pages of drivers with as much as the specification allows, and
// a small one.
func neighbourDrivers(t *testing.T, folder string, count int) []string {
	t.Helper()
	for i := range count {
		driver := fmt.Sprintf("driver-%d", i)
		if i == count-1 {
			driver = "well"
		}
		var page bytes.Buffer
		for n := range 512 {
			labels := fmt.Sprintf("driver=%q,pool=\"node-a\",device=\"gpu-%d\"", driver, n)
			fmt.Fprintf(&page, "dra_device_power_watts{%s} 70\n", labels)
			if driver == "well" {
				break
			}
			fmt.Fprintf(&page, "dra_device_info{%s,model=%q} 1\n", labels, strings.Repeat("m", 100))
			for k := range 18 {
				fmt.Fprintf(&page, "dra_device_ext_q%d{%s} %d\ndra_device_process_memory_bytes{%s,pid=\"%d\"} 1\n", k, labels, k, labels, k+1)
			}
		}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(page.Bytes()) })}
		listener, err := net.Listen("unix", filepath.Join(folder, driver+".sock"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	args := []string{"--kubernetes.disable", "--device.source=exporter", "--exporter.dir=" + folder}
	for n := range 18 {
		args = append(args, fmt.Sprintf("--exporter.extensions=q%d", n))
	}
	return args
}

// neighbourServices serves connections of HTTP/2 that never answer a call and consist of
// control frames, and one service that answers.
func neighbourServices(t *testing.T, _ string, count int) []string {
	t.Helper()
	args := []string{"--kubernetes.disable", "--device.source=tpu"}
	for i := range count {
		var flood bytes.Buffer
		for framer := http2.NewFramer(&flood, nil); flood.Len() < 32<<10; {
			switch i % 4 {
			case 0:
				_ = framer.WritePing(false, [8]byte{1})
			case 1:
				_ = framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 16384})
			case 2:
				_ = framer.WriteWindowUpdate(0, 1)
			case 3:
				_ = framer.WritePriority(1, http2.PriorityParam{Weight: 1})
			}
		}
		address := neighbourServe(t, "tcp", "127.0.0.1:0", func(c net.Conn) {
			go func() { _, _ = io.Copy(io.Discard, c) }() // what the agent acknowledges
			if http2.NewFramer(c, nil).WriteSettings() != nil {
				return
			}
			for {
				if _, err := c.Write(flood.Bytes()); err != nil {
					return
				}
			}
		})
		args = append(args, "--tpu.metrics="+address.String())
	}
	well := neighbourServe(t, "tcp", "127.0.0.1:0", neighbourTPU)
	return append(args, "--tpu.metrics="+well.String())
}

// neighbourTPU answers calls with one chip, whatever they ask for.
func neighbourTPU(c net.Conn) {
	gauge := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), 0x4024000000000000) // 10
	value := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 1)
	attribute := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), value)
	metric := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), attribute)
	metric = protowire.AppendBytes(protowire.AppendTag(metric, 3, protowire.BytesType), gauge)
	metrics := protowire.AppendBytes(protowire.AppendTag(nil, 3, protowire.BytesType), metric)
	answer := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), metrics)
	framer := http2.NewFramer(c, c)
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil || framer.WriteSettings() != nil {
		return
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return
		}
		if data, ok := frame.(*http2.DataFrame); ok && data.StreamEnded() {
			var header, trailer bytes.Buffer
			encoder := hpack.NewEncoder(&header)
			_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
			_ = encoder.WriteField(hpack.HeaderField{Name: "content-type", Value: "application/grpc"})
			first := bytes.Clone(header.Bytes())
			header.Reset()
			_ = encoder.WriteField(hpack.HeaderField{Name: "grpc-status", Value: "0"})
			trailer.Write(header.Bytes())
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: data.StreamID, BlockFragment: first, EndHeaders: true})
			_ = framer.WriteData(data.StreamID, false, append([]byte{0, 0, 0, 0, byte(len(answer))}, answer...))
			_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: data.StreamID, BlockFragment: trailer.Bytes(), EndHeaders: true, EndStream: true})
		}
	}
}

// neighbourMonitor writes documents of neuron-monitor as fast as they are read.
func neighbourMonitor(t *testing.T, folder string, _ int) []string {
	t.Helper()
	var cores strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&cores, `"k%d":{"x":1},`, i)
	}
	line := `{"neuron_hardware_info":{"neuron_device_count":1024,"neuron_device_memory_size":1000,"neuroncore_per_device_count":2},"neuron_runtime_data":[{"pid":1,"report":{"memory_used":{"neuron_runtime_used_bytes":{"usage_breakdown":{"other":{` + strings.TrimSuffix(cores.String(), ",") + `}}}}}}]}` + "\n"
	path := filepath.Join(folder, "monitor.sock")
	neighbourServe(t, "unix", path, func(c net.Conn) {
		for {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	return []string{"--kubernetes.disable", "--device.source=neuron", "--neuron.monitor=unix://" + path}
}

// neighbourReviews serves reviews whose users have groups of 6 MB.
func neighbourReviews(t *testing.T, folder string, _ int) []string {
	t.Helper()
	var large, small authenticationv1.TokenReview
	large.Status.Authenticated, large.Status.User.Username = true, "NAME"
	small = large
	for i := range 6000 {
		large.Status.User.Groups = append(large.Status.User.Groups, fmt.Sprintf("%01000d", i))
	}
	texts := make(map[bool][]byte) // by whether the user behaves well
	for well, review := range map[bool]authenticationv1.TokenReview{true: small, false: large} {
		text, err := json.Marshal(review)
		if err != nil {
			t.Fatal(err)
		}
		texts[well] = text
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
			var review authenticationv1.TokenReview
			_ = json.NewDecoder(r.Body).Decode(&review)
			before, after, _ := bytes.Cut(texts[review.Spec.Token == "well"], []byte("NAME"))
			for _, part := range [][]byte{before, []byte(review.Spec.Token), after} {
				_, _ = w.Write(part)
			}
		case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
			text, _ := io.ReadAll(r.Body)
			_, _ = w.Write(bytes.Replace(text, []byte(`"status":{"allowed":false}`), []byte(`"status":{"allowed":true}`), 1))
		default:
			http.NotFound(w, r)
		}
	})}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	path := filepath.Join(folder, "kubeconfig")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\nclusters: [{name: a, cluster: {server: 'http://" + listener.Addr().String() + "'}}]\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--kubeconfig=" + path, "--device.source=exporter", "--exporter.dir=" + folder, "--web.kubernetes-auth"}
}

// neighbourUsers scrapes with the token of a user with few groups, then with as many
// other tokens again and again.
func neighbourUsers(t *testing.T, url string, count int) {
	t.Helper()
	get := func(token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", http.NoBody)
		if err != nil {
			return 0
		}
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
	for end := time.Now().Add(time.Minute); get("well") != http.StatusOK; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a user with few groups is not admitted")
		}
	}
	for i := range count {
		go func() {
			for t.Context().Err() == nil {
				get(fmt.Sprintf("user-%d", i))
				time.Sleep(100 * time.Millisecond)
			}
		}()
	}
}

package page

import (
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// keysIn returns the keys of the elements of a page with this name, in their order.
func keysIn(t testing.TB, text, element string) []string {
	t.Helper()
	document, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for node := range document.Descendants() {
		for _, attribute := range node.Attr {
			if node.Data == element && attribute.Key == "data-key" {
				keys = append(keys, attribute.Val)
			}
		}
	}
	return keys
}

// The address selects, groups and sorts what the server renders, so that it does so without
// a script.
func TestSelection(t *testing.T) {
	site := handler(t, testNodeRows(t))
	body := func(query string) []string {
		t.Helper()
		status, text := get(t, site, "/"+query)
		if status != http.StatusOK {
			t.Fatalf("%s gives %d", query, status)
		}
		return keysIn(t, text, "tbody")
	}
	all := body("")
	if !slices.Equal(body("?q=&group=no-such&claims=no-such&devices=-"), all) {
		t.Error("values without a meaning have an effect")
	}
	for query, want := range map[string]string{
		"?q=SWEEP":                      gpu + "2 research/sweep-a research/sweep-b",
		"?q=job%2Fsweep":                "research/sweep-a research/sweep-b",
		"?q=" + gpu + "5":               gpu + "5 team-ml/debug-session",
		"?q=sweep+1g.10gb":              gpu + "2",
		"?q=sweep+debug":                "",
		"?q=%3Cscript%3Ealert%281%29":   "",
		"?q=sweep&claims=-name":         gpu + "2 research/sweep-b research/sweep-a",
		"?q=sweep&claims=name":          gpu + "2 research/sweep-a research/sweep-b",
		"?q=sweep&claims=-utilization":  gpu + "2 research/sweep-b research/sweep-a", // that of sweep-a is unknown
		"?q=sweep&claims=utilization":   gpu + "2 research/sweep-b research/sweep-a",
		"?q=h100+free&devices=-memory":  gpu + "2 " + strings.TrimSuffix(gpu, "0") + "10 " + gpu + "4",
		"?q=debug+embedder":             "",
		"?q=mig.nvidia.com&group=class": gpu + "2 research/sweep-a research/sweep-b",
	} {
		if got := strings.Join(slices.DeleteFunc(body(query), func(key string) bool { return key == "" }), " "); got != want {
			t.Errorf("%s gives %q, want %q", query, got, want)
		}
	}
	if _, text := get(t, site, `/?q=`+url.QueryEscape(`"><script>alert(1)</script>`)); strings.Contains(text, "<script>alert") || !strings.Contains(text, `value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`) {
		t.Error("the filter is not escaped in its field")
	}
}

func TestGroups(t *testing.T) {
	site := handler(t, testNodeRows(t))
	for by, want := range map[string]string{
		"namespace": "namespace:inference namespace:monitoring namespace:research namespace:team-ml",
		"node":      "node:node-a",
		"class":     "class:gpu.nvidia.com class:mig.nvidia.com class:multiple class:shared.gpu.nvidia.com",
	} {
		_, text := get(t, site, "/?group="+by)
		groups := slices.DeleteFunc(keysIn(t, text, "details"), func(key string) bool { return !strings.HasPrefix(key, by+":") })
		if got := strings.Join(groups, " "); got != want {
			t.Errorf("by %s there are %q, want %q", by, got, want)
		}
	}
	_, text := get(t, site, "/?group=workload&q=sweep")
	if groups := keysIn(t, text, "details"); !slices.Contains(groups, "workload:research/sweep (Job)") {
		t.Errorf("by workload there are %q", groups)
	}
}

// Claims that have ended are apart, in a part of the page that is closed until a filter
// finds some of them.
func TestEndedClaims(t *testing.T) {
	var ended []string
	for _, claim := range newView(parseNode(testNodeRows(t)), noon).Claims {
		if claim.Ended() {
			ended = append(ended, claim.Namespace+"/"+claim.Name)
		}
	}
	if len(ended) == 0 {
		t.Fatal("no claim of the scene has ended")
	}
	site := handler(t, testNodeRows(t))
	_, text := get(t, site, "/")
	if !strings.Contains(text, `<details class="card" data-key="ended">`) {
		t.Error("ended claims are not apart, or open")
	}
	_, text = get(t, site, "/?q="+url.QueryEscape(ended[0]))
	if !strings.Contains(text, `<details class="card" data-key="ended" open>`) || !strings.Contains(text, `data-key="`+ended[0]+`"`) {
		t.Error("the filter does not show the ended claim that it finds")
	}
}

func TestObjectPages(t *testing.T) {
	node, cluster := handler(t, testNodeRows(t)), clusterHandler(t, testClusterRows(t))
	for _, test := range []struct {
		site   http.Handler
		path   string
		status int
		wants  []string
	}{
		{node, "/claim?namespace=team-ml&name=debug-session", 200, []string{"Claim team-ml/debug-session", `href="device?uuid=` + gpu + `5"`, "debug-session", `aria-current="page"`}},
		{node, "/claim?namespace=team-ml&name=no-such", 404, []string{"No claim team-ml/no-such on this node", "another node"}},
		{node, "/claim", 404, []string{"No claim / on this node"}},
		{node, "/claim?namespace=research&name=sweep-a", 200, []string{`href="workload?namespace=research&amp;kind=Job&amp;name=sweep"`}},
		{node, "/workload?namespace=research&kind=Job&name=sweep", 200, []string{"Job research/sweep", "research/sweep-a", "research/sweep-b", "<dt>Claims on this node</dt><dd>2</dd>", "<dt>Pods on this node</dt><dd>2</dd>", "<dt>Devices held</dt><dd>2</dd>"}},
		{node, "/workload?namespace=team-ml&kind=Pod&name=debug-session", 200, []string{"Pod team-ml/debug-session"}},
		{node, "/workload?namespace=research&kind=Job&name=no-such", 404, []string{"No claims of research/no-such (Job) on this node"}},
		{node, "/workload?namespace=monitoring", 404, []string{"No claims of a workload without a name on this node"}},
		{node, "/workload", 404, []string{"No claims of a workload without a name on this node"}},
		{node, "/device?uuid=" + gpu + "1", 200, []string{"Device gpu-1", "Xid 79", "inference/embedder", "inference/reranker"}},
		{node, "/device?uuid=" + gpu + "%3Cb%3E", 404, []string{"No device " + gpu + "&lt;b&gt; on this node"}},
		{cluster, "/pod?namespace=llm&name=pretrain-0", 200, []string{"Pod llm/pretrain-0", "insufficient_devices", "Wait for the holders", "dra-exporter explain pod llm/pretrain-0", "asks for 8"}},
		{cluster, "/pod?namespace=science&name=fold-0", 200, []string{"Under way", "preparation"}},
		{cluster, "/pod?namespace=kueue&name=sweep-11", 200, []string{"scheduling_gated"}},
		{cluster, "/pod?namespace=llm&name=no-such", 404, []string{"Nothing is known about pod llm/no-such"}},
		{cluster, "/claim?namespace=llm&name=no-such", 404, []string{"Nothing is known about claim llm/no-such"}},
	} {
		status, text := get(t, test.site, test.path)
		if status != test.status {
			t.Errorf("%s gives %d, want %d", test.path, status, test.status)
		}
		for _, want := range test.wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", test.path, want)
			}
		}
	}
	for path, site := range map[string]http.Handler{"/claim?namespace=a&name=b": handler(t, nil), "/pod?namespace=a&name=b": clusterHandler(t, nil)} {
		if status, text := get(t, site, path); status != 200 || !strings.Contains(text, "Waiting for the first snapshot") {
			t.Errorf("%s before the first snapshot gives %d", path, status)
		}
	}
}

// For a reader of one namespace, objects of others do not exist.
func TestReaderSeesOwnObjects(t *testing.T) {
	node := serveLimited(t, testNodeRows(t), Handlers, only("team-ml"))
	cluster := serveLimited(t, testClusterRows(t), ClusterHandlers, only("science"))
	for path, want := range map[string]int{
		"/claim?namespace=team-ml&name=debug-session": 200, "/claim?namespace=research&name=sweep-a": 404,
		"/device?uuid=" + gpu + "5": 200, "/device?uuid=" + gpu + "2": 404,
		"/workload?namespace=team-ml&kind=Pod&name=debug-session": 200, "/workload?namespace=research&kind=Job&name=sweep": 404,
	} {
		if status, text := get(t, node, path); status != want || strings.Contains(text, "secret-team") {
			t.Errorf("%s gives %d, want %d", path, status, want)
		}
	}
	for path, want := range map[string]int{"/pod?namespace=science&name=fold-0": 200, "/pod?namespace=llm&name=pretrain-0": 404} {
		if status, _ := get(t, cluster, path); status != want {
			t.Errorf("%s gives %d, want %d", path, status, want)
		}
	}
}

// What rows and the query have is text on the pages of objects, whatever it is.
func TestHostileObjects(t *testing.T) {
	for _, mark := range []string{`<script>alert(1)</script>`, `" onmouseover="alert(1)`, "&lt;b&gt;", "javascript:alert(1)", "a b&c=d#e?f%g", "{{.}}"} {
		node := handler(t, withSuffix(testNodeRows(t), mark))
		cluster := clusterHandler(t, withSuffix(testClusterRows(t), mark))
		name := func(text string) string { return url.QueryEscape(text + mark) }
		for path, site := range map[string]http.Handler{
			"/claim?namespace=" + name("team-ml") + "&name=" + name("debug-session"): node, "/device?uuid=" + name(gpu+"1"): node,
			"/workload?namespace=" + name("research") + "&kind=" + name("Job") + "&name=" + name("sweep"): node,
			"/pod?namespace=" + name("llm") + "&name=" + name("pretrain-0"):                               cluster,
		} {
			plain := map[http.Handler]http.Handler{node: handler(t, withSuffix(testNodeRows(t), "x")), cluster: clusterHandler(t, withSuffix(testClusterRows(t), "x"))}[site]
			_, want := get(t, plain, strings.ReplaceAll(path, url.QueryEscape(mark), "x"))
			status, text := get(t, site, path)
			if status != http.StatusOK {
				t.Fatalf("%s gives %d", path, status)
			}
			unchanged(t, mark, text, elements(t, want))
		}
		for _, path := range []string{"/claim?namespace=a&name=", "/device?uuid=", "/workload?namespace=a&kind=Job&name="} {
			_, want := get(t, node, path+"x")
			status, text := get(t, node, path+url.QueryEscape(mark))
			if status != http.StatusNotFound {
				t.Errorf("%s%s gives %d", path, mark, status)
			}
			unchanged(t, mark, text, elements(t, want))
		}
	}
}

// A partition has a page, too.
func TestPageOfPartition(t *testing.T) {
	partitions := 0
	for _, device := range newView(parseNode(testNodeRows(t)), noon).Devices {
		for _, partition := range device.Partitions {
			partitions++
			status, text := get(t, handler(t, testNodeRows(t)), "/device?uuid="+url.QueryEscape(partition.UUID))
			if status != 200 || !strings.Contains(text, "Partition "+partition.Title()) || !strings.Contains(text, `href="device?uuid=`+device.UUID+`"`) {
				t.Errorf("the page of %s gives %d", partition.UUID, status)
			}
		}
	}
	if partitions == 0 {
		t.Error("no device of the scene has partitions")
	}
}

// The alerts to which the pages link have runbooks.
func TestRunbooks(t *testing.T) {
	no := false
	alerts := []string{
		healthAlert(Health{Hardware: &no}), healthAlert(Health{Recovering: &Recovery{}}), pendingAlert("insufficient_devices"),
		phaseAlert("binding"), phaseAlert("preparation"), phaseAlert("preparation_start"), phaseAlert("start"),
	}
	for _, alert := range alerts {
		if _, err := os.Stat("../../docs/runbooks/" + alert + ".md"); err != nil {
			t.Errorf("%q: %v", alert, err)
		}
	}
	if healthAlert(Health{}) != "" || pendingAlert("scheduling_gated") != "" || phaseAlert("scheduling") != "" {
		t.Error("what has no alert has a runbook")
	}
}

func TestLinks(t *testing.T) {
	links := Links{Grafana: "https://grafana.example.com/sub/", Runbooks: "https://example.com/runbooks", Cluster: "http://cluster:9421/"}
	got := append(links.dashboard("D", "dra-claim", "namespace", "a b", "resourceclaim", "c&d"), links.runbook("DRADeviceUnhealthy")...)
	got = append(got, links.overview()...)
	want := []link{
		{"D", "https://grafana.example.com/sub/d/dra-claim?var-namespace=a+b&var-resourceclaim=c%26d"},
		{"Runbook DRADeviceUnhealthy", "https://example.com/runbooks/DRADeviceUnhealthy.md"},
		{"Cluster", "http://cluster:9421/"},
	}
	if !slices.Equal(got, want) || links.pod("a", "b") != "http://cluster:9421/pod?name=b&namespace=a" {
		t.Errorf("the links are %q and %q", got, links.pod("a", "b"))
	}
	if none := (Links{}); none.dashboard("D", "dra-claim") != nil || none.runbook("DRADeviceUnhealthy") != nil || none.overview() != nil || none.pod("a", "b") != "" {
		t.Error("there are links to nothing")
	}
}

// A device has what identifies its board on its page and in the document of devices,
// and nothing in place of what is not known.
func TestPageOfHardware(t *testing.T) {
	rows := testNodeRows(t)
	uuid := newView(parseNode(rows), noon).Devices[0].UUID
	serve := handler(t, append(rows, row("dra_device_hardware_info", 1,
		"node", "node-a", "uuid", uuid, "serial", "1650923004310", "vbios", "97.00", "chassis_serial", "1821325191344", "slot", "9")))
	_, text := get(t, serve, "/device?uuid="+url.QueryEscape(uuid))
	for _, want := range []string{
		"<dt>Serial number</dt><dd>1650923004310</dd>", "<dt>VBIOS</dt><dd>97.00</dd>", "<dt>Slot</dt><dd>9</dd>",
		"<dt>Chassis serial number</dt><dd>1821325191344</dd>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if strings.Contains(text, "<dt>Tray</dt>") || strings.Contains(text, "<dt>Board part number</dt>") {
		t.Error("the page has what is not known")
	}
	_, text = get(t, serve, "/api/v1/claims?devices=all")
	const want = `"hardware":{"serial":"1650923004310","vbios":"97.00","chassisSerial":"1821325191344","slot":"9"}`
	packed := strings.Join(strings.Fields(text), "")
	if strings.Count(packed, `"hardware":{`) != 1 || !strings.Contains(packed, want) {
		t.Errorf("the document lacks %s", want)
	}
}

package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// chromium is a tab of a real browser, over the pipe of the DevTools protocol.
type chromium struct {
	t       testing.TB
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
}

// openChromium starts Debian's Chromium; the test is skipped without it.
func openChromium(t testing.TB) *chromium {
	t.Helper()
	const program = "/usr/bin/chromium"
	if _, err := os.Stat(program); err != nil {
		t.Skipf("needs Debian's package chromium: %v", err)
	}
	read, commands, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	profile, err := os.MkdirTemp("", "dra-exporter-chromium-")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.ExtraFiles = []*os.File{read, write} // descriptors 3 and 4
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	read.Close()
	write.Close()
	c := &chromium{t: t, to: commands, from: bufio.NewReader(answers)}
	t.Cleanup(func() {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // with its helper processes
		_ = command.Wait()
		_ = os.RemoveAll(profile) // a helper that is just ending may still write there
		commands.Close()
		answers.Close()
	})
	var target struct{ TargetID string }
	c.decode(c.call("Target.createTarget", map[string]any{"url": "about:blank"}), &target)
	var attached struct{ SessionID string }
	c.decode(c.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}), &attached)
	c.session = attached.SessionID
	return c
}

func (c *chromium) decode(text json.RawMessage, to any) {
	c.t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		c.t.Fatalf("decode %s: %v", text, err)
	}
}

// call returns the result of a command.
func (c *chromium) call(method string, parameters map[string]any) json.RawMessage {
	c.t.Helper()
	c.last++
	message := map[string]any{"id": c.last, "method": method, "params": parameters}
	if parameters == nil {
		delete(message, "params")
	}
	if c.session != "" {
		message["sessionId"] = c.session
	}
	text, err := json.Marshal(message)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.to.Write(append(text, 0)); err != nil {
		c.t.Fatalf("send %s to Chromium: %v", method, err)
	}
	for {
		text, err := c.from.ReadBytes(0)
		if err != nil {
			c.t.Fatalf("read the answer of Chromium to %s: %v", method, err)
		}
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		c.decode(text[:len(text)-1], &answer)
		switch {
		case answer.ID != c.last: // an event
		case answer.Error != nil:
			c.t.Fatalf("Chromium answers to %s: %s", method, answer.Error.Message)
		default:
			return answer.Result
		}
	}
}

// evaluate stores the value of an expression.
func (c *chromium) evaluate(expression string, to any) {
	c.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	c.decode(c.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}), &answer)
	if answer.ExceptionDetails != nil {
		c.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Exception.Description)
	}
	if to != nil && len(answer.Result.Value) > 0 {
		c.decode(answer.Result.Value, to)
	}
}

// wait waits until a condition is true.
func (c *chromium) wait(what, condition string) {
	c.t.Helper()
	for patience := 0; ; patience++ {
		var is bool
		c.evaluate("Boolean("+condition+")", &is)
		if is {
			return
		}
		if patience == 600 {
			var text string
			c.evaluate("document.body.innerText", &text)
			c.t.Fatalf("not so: %s (%s). The page says:\n%s", what, condition, text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// is checks a condition now.
func (c *chromium) is(what, condition string) {
	c.t.Helper()
	var is bool
	c.evaluate("Boolean("+condition+")", &is)
	if !is {
		c.t.Errorf("not so: %s (%s)", what, condition)
	}
}

func (c *chromium) open(address string) {
	c.t.Helper()
	c.call("Page.navigate", map[string]any{"url": address})
	c.wait("the page is loaded", `document.readyState === "complete" && document.querySelector(".scripted #view")`)
}

// press presses a key, with the text that it types.
func (c *chromium) press(key string) {
	c.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		down["text"] = key
	}
	codes := map[string]int{"Enter": 13, "Escape": 27, "Tab": 9}
	if code := codes[key]; code != 0 {
		down["windowsVirtualKeyCode"] = code
	}
	if key == "Enter" {
		down["text"] = "\r"
	}
	c.call("Input.dispatchKeyEvent", down)
	c.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key})
}

// click clicks on the middle of an element by the pointer.
func (c *chromium) click(selector string) {
	c.t.Helper()
	var at struct{ X, Y float64 }
	c.evaluate(`(() => { const e = document.querySelector(`+quoted(selector)+`); e.scrollIntoView({block: "center"}); const b = e.getBoundingClientRect(); return {x: b.x + b.width / 2, y: b.y + b.height / 2}; })()`, &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		c.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1})
	}
}

// size sets the size of the window, of a phone that is touched if it is narrow, and the
// colour scheme.
func (c *chromium) size(width int, scheme string) {
	c.t.Helper()
	phone := width < 600
	c.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone})
	c.call("Emulation.setTouchEmulationEnabled", map[string]any{"enabled": phone})
	c.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
}

// screenshot returns a picture of the whole page, as PNG.
func (c *chromium) screenshot() []byte {
	c.t.Helper()
	var answer struct{ Data []byte }
	c.decode(c.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}), &answer)
	return answer.Data
}

// settledPicture returns a picture of the page once it is drawn, without its age, which grows.
func (c *chromium) settledPicture() []byte {
	c.t.Helper()
	c.evaluate(`{ const rules = new CSSStyleSheet(); rules.replaceSync(".sample { visibility: hidden }"); document.adoptedStyleSheets = [rules]; }`, nil)
	last := c.screenshot()
	for range 50 {
		next := c.screenshot()
		if bytes.Equal(last, next) {
			return next
		}
		last = next
	}
	c.t.Fatal("the page never stays as it is")
	return nil
}

// picture writes a picture of the whole page to the folder that DRA_PAGE_PICTURES names. If
// DRA_PAGE_PICTURES_BEFORE names a folder with pictures that the same machine made of an
// earlier commit, it compares with those and writes what differs.
func (c *chromium) picture(name string) {
	c.t.Helper()
	folder, before := os.Getenv("DRA_PAGE_PICTURES"), os.Getenv("DRA_PAGE_PICTURES_BEFORE")
	if folder == "" {
		return
	}
	write := func(name string, picture []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
			c.t.Error(err)
		}
	}
	now := c.settledPicture()
	write(name+".png", now)
	if before == "" {
		return
	}
	earlier, err := os.ReadFile(filepath.Join(before, name+".png"))
	if err != nil {
		c.t.Logf("%s is new", name)
		return
	}
	if pixels, marked := comparePictures(c.t, earlier, now); pixels > unseenPixels {
		write(name+"-differs.png", marked)
		c.t.Errorf("%s: %d pixels differ from the earlier picture", name, pixels)
	}
}

// comparePictures returns how many pixels of two PNGs differ visibly, and the second one with
// these in red.
func comparePictures(t testing.TB, before, now []byte) (pixels int, marked []byte) {
	t.Helper()
	if bytes.Equal(before, now) {
		return 0, now
	}
	decode := func(data []byte) image.Image {
		decoded, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		return decoded
	}
	old, current := decode(before), decode(now)
	all := old.Bounds().Union(current.Bounds())
	differs := image.NewRGBA(all)
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			shown := color.RGBAModel.Convert(current.At(x, y)).(color.RGBA)
			if earlier := color.RGBAModel.Convert(old.At(x, y)).(color.RGBA); !alike(earlier.R, shown.R) || !alike(earlier.G, shown.G) || !alike(earlier.B, shown.B) {
				pixels++
				shown = color.RGBA{R: 255, A: 255}
			}
			differs.SetRGBA(x, y, shown)
		}
	}
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, differs); err != nil {
		t.Fatal(err)
	}
	return pixels, encoded.Bytes()
}

// unseenPixels may differ: fewer than a letter has.
const unseenPixels = 20

// alike reports whether the difference between two values of a colour is invisible: rounded
// corners are not always drawn the same to the last bit.
func alike(a, b uint8) bool { return max(a, b)-min(a, b) <= 16 }

func quoted(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string can be encoded
	}
	return string(quoted)
}

// changingSite is a node whose rows a test changes, under the content policy of the server.
type changingSite struct {
	*httptest.Server
	mu   sync.Mutex
	rows []metric.Row
	down bool
}

const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

func newChangingSite(t *testing.T, rows []metric.Row, of func(testing.TB, func() []metric.Row) http.Handler) *changingSite {
	t.Helper()
	s := &changingSite{rows: rows}
	handler := of(t, func() []metric.Row { s.mu.Lock(); defer s.mu.Unlock(); return s.rows })
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		if down {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// change changes the rows.
func (s *changingSite) change(change func([]metric.Row) []metric.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows = change(slices.Clone(s.rows))
}

func (s *changingSite) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// withUse sets the utilization of a device.
func withUse(uuid string, ratio float64) func([]metric.Row) []metric.Row {
	return func(rows []metric.Row) []metric.Row {
		for i := range rows {
			if rows[i].Family.Name == metric.DeviceUtilizationRatio && rows[i].Labels.Get("uuid") == uuid {
				rows[i].Value = ratio
			}
		}
		return rows
	}
}

// withClaim adds a claim that holds a device.
func withClaim(namespace, name, uuid string) func([]metric.Row) []metric.Row {
	return func(rows []metric.Row) []metric.Row {
		return append(rows, row(metric.ClaimHeld, 1, "namespace", namespace, "resourceclaim", name, "uuid", uuid))
	}
}

// withoutClaim removes a claim.
func withoutClaim(name string) func([]metric.Row) []metric.Row {
	return func(rows []metric.Row) []metric.Row {
		return slices.DeleteFunc(rows, func(r metric.Row) bool { return r.Labels.Get("resourceclaim") == name })
	}
}

const gpu = "GPU-6f1b2a90-0b2d-4a57-9d3e-00000000000"

// What the reader focuses, selects, opens or scrolls to stays while rows come, go and
// change.
func TestUpdatesKeepWhatTheReaderReads(t *testing.T) {
	site := newChangingSite(t, testNodeRows(t), handlerOf)
	tab := openChromium(t)
	tab.size(1280, "light")
	tab.open(site.URL + "/?devices=-utilization")
	const claim = `[data-key="research/llama-pretrain-0-gpu-x7k2p"]` // sorted after the claim that comes
	tab.evaluate(`(() => {
		window.row = document.querySelector('`+claim+`');
		window.link = row.querySelector("a.name");
		link.scrollIntoView({block: "center"});
		link.focus({preventScroll: true});
		const name = document.querySelector('[data-device="`+gpu+`3"] a.name').firstChild;
		getSelection().setBaseAndExtent(name, 0, name, name.length);
		document.querySelector('details[data-key="ended"]').open = true;
		window.order = [...document.querySelectorAll(".devices tbody")].map((body) => body.dataset.key).join();
		window.position = row.getBoundingClientRect().top;
	})()`, nil)
	tab.is("the page is scrolled", "scrollY > 0")
	site.change(withClaim("aaa", "first", gpu+"4"))
	site.change(withUse(gpu+"3", 0.125))
	site.change(withUse(gpu+"4", 0.99))
	tab.wait("the new claim is there", `document.querySelector('[data-key="aaa/first"]')`)
	tab.wait("the new value is there", `document.querySelector('[data-device="`+gpu+`3"] [data-field="utilization"]').dataset.value === "0.125"`)
	tab.is("the new claim is before the others", `document.querySelector('[data-key="aaa/first"]').compareDocumentPosition(row) & Node.DOCUMENT_POSITION_FOLLOWING`)
	tab.is("the row is the same element", `document.querySelector('`+claim+`') === row`)
	tab.is("the focus is where it was", `document.activeElement === link`)
	tab.is("the row is where it was", `Math.abs(row.getBoundingClientRect().top - position) < 1`)
	tab.is("the selection is as it was", `getSelection().toString() === "gpu-3"`)
	tab.is("what was opened is open", `document.querySelector('details[data-key="ended"]').open`)
	tab.is("devices have kept their order", `order === [...document.querySelectorAll(".devices tbody")].map((body) => body.dataset.key).join()`)
	tab.is("the reader can have the new order", `!document.getElementById("again").hidden`)
	tab.click("#again")
	tab.wait("the devices are in the new order", `document.querySelector(".devices tbody").dataset.key === "`+gpu+`4"`)
	site.change(withoutClaim("first"))
	tab.wait("the claim is gone", `!document.querySelector('[data-key="aaa/first"]')`)
	tab.is("the row is still the same element", `document.querySelector('`+claim+`') === row`)
}

// An updated page looks as the same page does when it is loaded: no pixel differs.
func TestUpdatedPageLooksLikeALoadedOne(t *testing.T) {
	tab := openChromium(t)
	for path, name := range map[string]string{"/": "overview", "/?group=namespace": "grouped", "/device?uuid=" + gpu + "1": "device"} {
		for width, scheme := range map[int]string{390: "dark", 1280: "light"} {
			if name == "grouped" && width == 390 {
				continue // a large picture, for little
			}
			site := newChangingSite(t, testNodeRows(t), handlerOf)
			tab.size(width, scheme)
			tab.open(site.URL + path)
			before := tab.settledPicture()
			site.change(func(rows []metric.Row) []metric.Row {
				return withoutClaim("embedder")(withClaim("new-team", "new-claim", gpu+"1")(withUse(gpu+"1", 0.17)(rows)))
			})
			tab.wait(name+" is updated", `document.getElementById("view").textContent.includes("new-claim")`)
			updated := tab.settledPicture()
			tab.open(site.URL + path)
			loaded := tab.settledPicture()
			if bytes.Equal(before, loaded) {
				t.Fatalf("%s at %d px: nothing has changed", name, width)
			}
			if pixels, marked := comparePictures(t, loaded, updated); pixels > unseenPixels {
				file := filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d.png", name, width))
				if err := os.WriteFile(file, marked, 0o644); err != nil {
					t.Error(err)
				}
				t.Errorf("%s at %d px: %d pixels of the updated page differ: %s", name, width, pixels, file)
			}
		}
	}
}

// A row that ends moves to the ended claims, which are closed; a page that the exporter
// does not answer for says since when it is not updated.
func TestPauseAndOutage(t *testing.T) {
	site := newChangingSite(t, testNodeRows(t), handlerOf)
	tab := openChromium(t)
	tab.open(site.URL)
	tab.press("p")
	tab.wait("the button is pressed", `document.getElementById("pause").getAttribute("aria-pressed") === "true" && document.getElementById("updated").textContent.startsWith("paused at")`)
	tab.evaluate(`window.html = document.getElementById("devices-title").closest("details").innerHTML`, nil)
	site.change(withUse(gpu+"3", 0.111))
	time.Sleep(3 * time.Second) // more than a period
	tab.is("nothing changes while paused", `html === document.getElementById("devices-title").closest("details").innerHTML`)
	tab.click("#pause")
	tab.wait("it goes on", `document.querySelector('[data-device="`+gpu+`3"] [data-field="utilization"]').dataset.value === "0.111"`)
	tab.is("nothing is said of an outage", `document.getElementById("silent").hidden`)
	site.setDown(true)
	tab.wait("the outage is said", `!document.getElementById("silent").hidden && document.getElementById("updated").textContent.startsWith("not updated since")`)
	tab.is("the view stays", `document.querySelector('[data-device="`+gpu+`3"]')`)
	site.setDown(false)
	tab.wait("it goes on", `document.getElementById("silent").hidden`)
}

// The overview can be filtered, grouped and sorted by the keyboard alone, and the address
// has the result.
func TestKeyboard(t *testing.T) {
	site := newChangingSite(t, testNodeRows(t), handlerOf)
	tab := openChromium(t)
	tab.open(site.URL)
	tab.press("?")
	tab.wait("the help is open", `document.getElementById("keys").open`)
	tab.press("Escape")
	tab.wait("the help is closed", `!document.getElementById("keys").open`)
	tab.press("/")
	tab.wait("the filter has the focus", `document.activeElement.id === "filter"`)
	for _, key := range []string{"s", "w", "e", "e", "p", "?"} {
		tab.press(key)
	}
	tab.wait("nothing is called so", `document.body.innerText.includes("No claim has all of these words.") && location.search === "?q=sweep%3F"`)
	tab.evaluate(`(() => { const f = document.getElementById("filter"); f.value = "sweep"; f.dispatchEvent(new Event("input", {bubbles: true})); })()`, nil)
	tab.wait("the claims are filtered", `location.search === "?q=sweep" && document.querySelectorAll('details[data-key="claims"] tbody').length === 2`)
	tab.press("Escape")
	tab.wait("the filter has lost the focus", `document.activeElement === document.body`)
	tab.press("j")
	tab.wait("the first entry has the focus", `document.activeElement.matches("#view a.name")`)
	tab.evaluate(`window.entry = document.activeElement`, nil)
	tab.press("j")
	tab.wait("the second entry has the focus", `document.activeElement !== entry && document.activeElement.matches("#view a.name")`)
	tab.press("k")
	tab.wait("the first entry has it again", `document.activeElement === entry`)
	tab.evaluate(`(() => { const g = document.getElementById("group"); g.value = "workload"; g.dispatchEvent(new Event("input", {bubbles: true})); })()`, nil)
	tab.wait("the claims are grouped", `new URLSearchParams(location.search).get("group") === "workload" && document.querySelectorAll("details.group").length === 1`)
	tab.evaluate(`document.querySelector(".claims a.order").focus()`, nil)
	tab.press("Enter")
	tab.wait("the claims are sorted", `new URLSearchParams(location.search).get("claims") === "name" && document.querySelector('.claims [aria-sort="ascending"]')`)
	tab.evaluate(`history.back()`, nil)
	tab.wait("the address before is shown", `!new URLSearchParams(location.search).has("claims") && !document.querySelector(".claims [aria-sort]")`)
	tab.evaluate(`entry.focus()`, nil)
	tab.press("Enter")
	tab.wait("the entry's page is shown", `location.pathname === "/device" && document.getElementById("device-title")`)
}

// everyPage returns the addresses of all kinds of pages, by name.
func everyPage(t *testing.T) map[string]string {
	t.Helper()
	node := newChangingSite(t, testNodeRows(t), handlerOf)
	shared := newChangingSite(t, sharing(t), handlerOf)
	cluster := newChangingSite(t, testClusterRows(t), clusterHandlerOf)
	waiting := newChangingSite(t, nil, handlerOf)
	explained := httptest.NewServer(explaining(t, nil, func(context.Context, ExplainedObject) (*Explanation, error) { return testExplanation(), nil }))
	t.Cleanup(explained.Close)
	graphs := newChangingSite(t, testNodeRows(t), func(t testing.TB, rows func() []metric.Row) http.Handler {
		return configured(t, Config{History: hourOf(rows())}, rows)
	})
	return map[string]string{
		"node": node.URL + "/", "grouped": node.URL + "/?group=workload", "shared": shared.URL + "/", "cluster": cluster.URL + "/",
		"graphs": graphs.URL + "/", "waiting": waiting.URL + "/", "nothing found": node.URL + "/?q=no-such",
		"claim": node.URL + "/claim?namespace=team-ml&name=debug-session", "device": node.URL + "/device?uuid=" + gpu + "1",
		"workload": node.URL + "/workload?namespace=research&kind=Job&name=sweep",
		"missing":  node.URL + "/device?uuid=" + strings.Repeat("x", 200), "pod": cluster.URL + "/pod?namespace=llm&name=pretrain-0",
		"explained pod": explained.URL + "/pod?namespace=llm&name=pretrain-0", "explained claim": explained.URL + "/claim?namespace=llm&name=x",
	}
}

// The pages fit into a phone and a wide screen; on a phone, what can be touched is at least
// 44 px high.
func TestSizes(t *testing.T) {
	tab := openChromium(t)
	for name, address := range everyPage(t) {
		for _, width := range []int{390, 1280, 2560} {
			scheme := map[int]string{390: "dark", 1280: "light", 2560: "dark"}[width]
			tab.size(width, scheme)
			tab.open(address)
			var wide []string
			tab.evaluate(`[...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest("thead") && getComputedStyle(e).display !== "none").map((e) => e.outerHTML.slice(0, 120))`, &wide)
			if len(wide) > 0 {
				t.Errorf("%s at %d px is wider than the window: %s", name, width, wide[0])
			}
			if width == 390 {
				var small []string
				tab.evaluate(`[...document.querySelectorAll("a, button, select, input, summary")].filter((e) => e.getClientRects().length && e.getBoundingClientRect().height < 43.5).map((e) => e.outerHTML.slice(0, 120))`, &small)
				if len(small) > 0 {
					t.Errorf("%s: %d targets are less than 44 px high: %s", name, len(small), small[0])
				}
			}
			var height int
			tab.evaluate("document.documentElement.scrollHeight", &height)
			t.Logf("%s at %d px is %d px high", name, width, height)
			tab.picture(name + "-" + map[int]string{390: "390", 1280: "1280", 2560: "2560"}[width] + "-" + scheme)
		}
	}
}

// TestAxe: the rules of axe-core find nothing serious on any page, nor while the help is
// open, updates are paused, or the exporter does not answer. DRA_AXE names the library's
// axe.min.js, which is not a part of this repository.
func TestAxe(t *testing.T) {
	library := os.Getenv("DRA_AXE")
	if library == "" {
		t.Skip("needs DRA_AXE, the path of axe.min.js of axe-core")
	}
	axe, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	tab := openChromium(t)
	check := func(what string) {
		t.Helper()
		var found []struct {
			ID, Impact, Help string
			Nodes            []struct{ HTML, FailureSummary string }
		}
		tab.evaluate(string(axe)+"; null", nil)
		tab.evaluate(`axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map(({id, impact, help, nodes}) => ({id, impact, help, nodes: nodes.map(({html, failureSummary}) => ({html: html.slice(0, 200), failureSummary}))})))`, &found)
		for _, one := range found {
			say := t.Errorf
			if one.Impact != "serious" && one.Impact != "critical" {
				say = t.Logf
			}
			say("%s: %s (%s): %s: %d times, first %s\n%s", what, one.ID, one.Impact, one.Help, len(one.Nodes), one.Nodes[0].HTML, one.Nodes[0].FailureSummary)
		}
	}
	for name, address := range everyPage(t) {
		for width, scheme := range map[int]string{390: "dark", 1280: "light"} {
			tab.size(width, scheme)
			tab.open(address)
			check(fmt.Sprintf("%s at %d px", name, width))
		}
	}
	site := newChangingSite(t, testNodeRows(t), handlerOf)
	tab.open(site.URL)
	tab.press("?")
	tab.wait("the help is open", `document.getElementById("keys").open`)
	check("help")
	tab.press("Escape")
	tab.press("p")
	tab.wait("it is paused", `document.getElementById("pause").getAttribute("aria-pressed") === "true"`)
	check("paused")
	tab.press("p")
	site.setDown(true)
	tab.wait("the outage is said", `!document.getElementById("silent").hidden`)
	check("outage")
}

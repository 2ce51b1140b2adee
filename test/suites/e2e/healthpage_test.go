package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// healthScript reads the text and colour of a device's health beside a claim.
const healthScript = `(() => {
	const health = document.querySelector('tr[data-claim="%s"][data-uuid="%s"] [data-field="health"]');
	if (!health) return {};
	const [red, green, blue] = getComputedStyle(health.querySelector(".state") ?? health).color.match(/\d+/g).map(Number);
	return {says: health.dataset.value, red, green, blue, text: health.innerText};
})()`

type shownHealth struct {
	Says, Text       string
	Red, Green, Blue int
}

// waitShownUnhealthy waits until an open page shows beside the claim that its
// device is unhealthy, why, and in red.
func waitShownUnhealthy(tab context.Context, t *testing.T, claim, uuid, why string) {
	t.Helper()
	script := fmt.Sprintf(healthScript, claim, uuid)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		look, err := chromedp.Run(tab, chromedp.Evaluate[shownHealth](script))
		isRed := look.Red > 2*look.Green && look.Red > 2*look.Blue
		if err == nil && look.Says == "unhealthy" && isRed && strings.Contains(look.Text, why) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the page says %+v of %s, not that it is unhealthy by %q (%v)", look, uuid, why, err)
		}
	}
}

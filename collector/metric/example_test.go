package metric_test

import (
	"fmt"
	"os"

	"github.com/prometheus/common/expfmt"

	"github.com/dra-exporter/dra-exporter/collector/metric"
)

// A snapshot is made family by family, and is shown as a page of any format.
func ExampleBuilder() {
	power := &metric.Family{Name: "dra_device_power_watts", Type: metric.Gauge, Unit: "watts", Help: "Power drawn by the whole device", Labels: []string{"node", "uuid"}}
	builder := metric.NewBuilder(0, nil)
	builder.In(power)
	builder.Add(metric.NewLabels(power.Labels, "node-a", "GPU-0"), 412.5)
	snapshot := builder.Finish()

	page := metric.NewPage(snapshot.Rows())
	if err := page.Encode(os.Stdout, expfmt.NewFormat(expfmt.TypeTextPlain), false); err != nil {
		fmt.Println(err)
	}
	// Output:
	// # HELP dra_device_power_watts Power drawn by the whole device
	// # TYPE dra_device_power_watts gauge
	// dra_device_power_watts{node="node-a",uuid="GPU-0"} 412.5
}

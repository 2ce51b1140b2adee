package page

import "time"

// Recovery is a fatal Xid that is over as far as anybody says, and happened
// so lately that the alert DRADeviceXIDFatal still fires.
type Recovery struct {
	XID     string    `json:"xid"`
	Meaning string    `json:"meaning"`
	Last    time.Time `json:"last"`                    // when it was reported last
	Whole   bool      `json:"ofWholeDevice,omitempty"` // of a partition: it befell its whole device
}

// recoveringFor is how long a device is recovering: for the half hour in which
// DRADeviceXIDFatal fires, and until the evaluation that ends the alert.
const recoveringFor = 31 * time.Minute

// recovery is what the device recovers from at a moment; nil where it is sick,
// or nothing fatal happened lately.
func (h *Health) recovery(at time.Time) *Recovery {
	if h.Severity() == Sick {
		return nil
	}
	fatal := fatalXids()
	for _, xid := range h.XIDs { // the newest first
		meaning, is := fatal[xid.Code]
		if is && !xid.Last.IsZero() && at.Sub(xid.Last) < recoveringFor {
			return &Recovery{XID: xid.Code, Meaning: meaning, Last: xid.Last}
		}
	}
	return nil
}

// recover says which devices are recovering: those to which something happened,
// and the partitions of those, which were sick with them.
func (r *reader) recover() {
	for _, device := range r.devices {
		device.Health.Recovering = device.Health.recovery(r.at)
	}
	for _, device := range r.devices {
		parent := r.devices[device.ParentUUID]
		if device.ParentUUID == "" || parent == nil || parent == device || device.Health.Severity() <= Recovering {
			continue
		}
		if of := parent.Health.Recovering; of != nil && !of.Whole {
			device.Health.Recovering = &Recovery{XID: of.XID, Meaning: of.Meaning, Last: of.Last, Whole: true}
		}
	}
}

// fatalXids are the Xids after which a GPU needs a reset or more, and what they
// mean: the critical ones of docs/health.md. The alert DRADeviceXIDFatal fires
// for the same; tests hold the three to each other.
func fatalXids() map[string]string {
	return map[string]string{
		"46":  "GPU stopped processing",
		"48":  "uncorrectable ECC error",
		"54":  "auxiliary power is not connected",
		"62":  "internal microcontroller halted",
		"64":  "remapping a row, or retiring a page, failed",
		"74":  "NVLink error",
		"79":  "GPU fell off the bus",
		"95":  "memory error that was not contained",
		"109": "context switch timed out",
		"110": "security fault",
		"119": "no answer from the GPU's system processor (GSP)",
		"120": "error of the GPU's system processor (GSP)",
		"136": "training of a link failed",
		"140": "ECC error that was not recovered",
		"143": "GPU could not be initialized",
		"149": "NVLink: NETIR, a link went down",
		"150": "NVLink: MSE",
		"151": "key rotation failed (confidential computing)",
		"155": "NVLink taken down by software",
		"156": "a resource of the GPU was retired",
		"158": "fatal timeout",
		"171": "uncorrectable error of DRAM, beside Xid 48",
		"172": "uncorrectable error of SRAM, beside Xid 48",
	}
}

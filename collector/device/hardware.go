package device

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hardware identifies a whole device for repair or replacement. A source
// fills in what it can read; what is unknown is empty. It changes only when
// firmware is flashed, or the device is reset or moved.
type Hardware struct {
	Serial          string // of the board; the devices of one board may share it
	BoardPartNumber string
	VBIOS           string // version
	Index           string // in the vendor's tool; may change with a reboot
	ModuleID        string // place on the baseboard
	ChassisSerial   string
	Slot            string // number in the chassis, switches counted
	Tray            string // index in the chassis, switches not counted
}

// maxHardwareText limits each text of Hardware, in bytes. The longest that a vendor
// defines has 80.
const maxHardwareText = 80

// fields returns pointers to all texts.
func (h *Hardware) fields() [8]*string {
	return [...]*string{&h.Serial, &h.BoardPartNumber, &h.VBIOS, &h.Index, &h.ModuleID, &h.ChassisSerial, &h.Slot, &h.Tray}
}

// With returns the hardware with its empty fields filled in from another one of the
// same device.
func (h Hardware) With(other Hardware) Hardware {
	spare := other.fields()
	for i, text := range h.fields() {
		*text = cmp.Or(*text, *spare[i])
	}
	return h
}

// clean returns the hardware without texts that identify nothing: placeholders,
// garbage, and serial numbers of zeros.
func (h Hardware) clean() Hardware {
	for _, text := range h.fields() {
		*text = cleanHardwareText(*text)
	}
	for _, serial := range []*string{&h.Serial, &h.ChassisSerial} {
		if strings.Trim(*serial, "0") == "" {
			*serial = ""
		}
	}
	return h
}

func cleanHardwareText(text string) string {
	text = strings.TrimSpace(text)
	isGarbage := func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
	if len(text) > maxHardwareText || strings.ContainsFunc(text, isGarbage) {
		return ""
	}
	switch strings.ToLower(strings.Trim(text, "[]<>")) {
	case "n/a", "none", "null", "unknown", "not supported", "not specified":
		return ""
	}
	return text
}

// withoutSerials returns the hardware without its serial numbers.
func (h Hardware) withoutSerials() Hardware {
	h.Serial, h.ChassisSerial = "", ""
	return h
}

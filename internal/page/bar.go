package page

import (
	"fmt"
	"strconv"
)

// bar is a share, drawn; nothing is drawn for an unknown one.
type bar struct {
	Kind  string // names the colour
	Width string // percent
	Parts []part // drawn over it, from the left
}

// part is what somebody has of a bar.
type part struct {
	Kind     string // p0, p1, … of holders in turn, or stray
	X, Width string // percent
}

func newBar(kind string, ratio *float64) *bar {
	if ratio == nil {
		return nil
	}
	return &bar{Kind: kind, Width: percents(min(max(*ratio, 0), 1))}
}

// shades is how many holders a bar tells apart by colour; then they repeat.
const shades = 6

// newShares is the bar of a device's utilization or memory, with what each
// holder has of it and what belongs to none, as far as that is told apart.
func newShares(kind string, device Device) *bar {
	of := func(use *Use) *float64 {
		if use == nil {
			return nil
		}
		if kind == "memory" {
			return share(use.MemoryUsed, device.MemorySize)
		}
		return use.Utilization
	}
	whole := device.Utilization
	if kind == "memory" {
		whole = share(device.MemoryUsed, device.MemorySize)
	}
	drawn := newBar(kind, whole)
	if drawn == nil {
		return nil
	}
	at := 0.0
	add := func(kind string, ratio *float64) {
		if ratio == nil || *ratio <= 0 {
			return
		}
		width := min(*ratio, 1-at)
		drawn.Parts = append(drawn.Parts, part{kind, percents(at), percents(width)})
		at += width
	}
	for i, holder := range device.Holders {
		add("p"+strconv.Itoa(i%shades), of(holder.Use))
	}
	add("stray", of(device.Unattributed))
	return drawn
}

func percents(ratio float64) string { return fmt.Sprintf("%.1f%%", 100*ratio) }

package topology

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/dra-exporter/dra-exporter/collector/dra"
	"github.com/dra-exporter/dra-exporter/internal/terminal"
)

// cell is an alignment in the matrix.
type cell struct{ short, meaning string }

// cells returns the alignments as the matrix and its legend have them.
func cells() map[string]cell {
	return map[string]cell{
		dra.AlignedLink.String():    {"link", "connected by NVLink or xGMI"},
		dra.AlignedRoot.String():    {"root", "behind the same PCIe root complex"},
		dra.AlignedNUMA.String():    {"numa", "next to the same NUMA node"},
		dra.Crossing.String():       {"cross", "next to different NUMA nodes"},
		dra.AlignedUnknown.String(): {"?", "unknown: where one of them is, or whom its NVLinks reach, is not reported"},
	}
}

// Text returns the document as text: for each node a matrix of its devices.
func (d Document) Text() string {
	var text strings.Builder
	domains := d.linkDomains()
	used := make(map[string]bool)
	for i := range d.Nodes {
		if i > 0 {
			text.WriteString("\n")
		}
		d.Nodes[i].write(&text, domains, used)
	}
	text.WriteString("\n")
	for level := range dra.Alignment(dra.Alignments) {
		if used[level.String()] {
			c := cells()[level.String()]
			fmt.Fprintf(&text, "%-6s %s\n", c.short, c.meaning)
		}
	}
	for i, domain := range domains {
		fmt.Fprintf(&text, "%-6s link domain %s\n", domainName(i), terminal.Printable(domain))
	}
	for _, failure := range d.Failures {
		fmt.Fprintf(&text, "not shown: %s did not answer: %s\n", terminal.Printable(failure.Agent), terminal.Printable(failure.Error))
	}
	return text.String()
}

// linkDomains returns the link domains of the document, in the order of the devices.
func (d Document) linkDomains() []string {
	var domains []string
	for i := range d.Nodes {
		for j := range d.Nodes[i].Devices {
			if domain := d.Nodes[i].Devices[j].LinkDomain; domain != "" && domain != dra.LinkUnknown && !slices.Contains(domains, domain) {
				domains = append(domains, domain)
			}
		}
	}
	return domains
}

// domainName is a short name of the i-th link domain: A, B, …, Z, A1, B1, …
func domainName(i int) string {
	name := string(rune('A' + i%26))
	if i >= 26 {
		name += strconv.Itoa(i / 26)
	}
	return name
}

func (n *Node) write(text *strings.Builder, domains []string, used map[string]bool) {
	fmt.Fprintf(text, "Node %s\n", terminal.Printable(n.Node))
	for _, pod := range n.Pods {
		place := ""
		if pod.Place != "" {
			place = " (" + terminal.Printable(pod.Place) + ")"
		}
		for _, alignment := range pod.Topology {
			fmt.Fprintf(text, "Pod %s/%s%s: %s: %s\n", terminal.Printable(pod.Namespace), terminal.Printable(pod.Pod), place,
				strings.ToLower(alignment.Title()), terminal.Printable(alignment.Text()))
		}
	}
	text.WriteString("\n")
	head := []string{"#", "DEVICE", "MODEL"}
	for i := range n.Devices {
		head = append(head, strconv.Itoa(i+1))
	}
	table := [][]string{append(head, "PCIE ROOT", "NUMA", "LINK", "CLAIMS")}
	for i := range n.Devices {
		d := &n.Devices[i]
		line := []string{strconv.Itoa(i + 1), orDash(d.Device, d.UUID), orDash(d.Model)}
		for j, alignment := range n.Alignments[i] {
			short := "-"
			if i != j {
				short, used[alignment] = cells()[alignment].short, true
			}
			line = append(line, short)
		}
		domain := ""
		switch d.LinkDomain {
		case "":
		case dra.LinkUnknown:
			domain = "?"
		default:
			domain = domainName(slices.Index(domains, d.LinkDomain))
		}
		table = append(table, append(line, orDash(d.PCIeRoot), orDash(d.NUMANode), orDash(domain), orDash(strings.Join(d.Claims, ", "))))
	}
	writeTable(text, table)
}

// orDash returns the first text that is not empty, without control characters; "-" if
// there is none.
func orDash(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return terminal.Printable(text)
		}
	}
	return "-"
}

// writeTable writes lines with columns as wide as their widest text.
func writeTable(text *strings.Builder, table [][]string) {
	writer := tabwriter.NewWriter(text, 0, 0, 2, ' ', 0)
	for _, line := range table {
		fmt.Fprintln(writer, strings.Join(line, "\t"))
	}
	_ = writer.Flush() // a strings.Builder never fails
}

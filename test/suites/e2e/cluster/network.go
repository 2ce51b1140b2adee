package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// network is the bridge of one cluster's pods. The host has the gateway
// address on it, and the service address of the API server is redirected
// there.
type network struct {
	bridge  string
	subnet  string
	gateway string
	apiPort int
}

// networkRecord is a network as a later run reads it, to remove it.
type networkRecord struct {
	Bridge  string `json:"bridge"`
	Gateway string `json:"gateway"`
	APIPort int    `json:"apiPort"`
}

const conflist = `{
  "cniVersion": "1.0.0",
  "name": "e2e",
  "plugins": [{
    "type": "bridge",
    "bridge": %q,
    "ipam": {
      "type": "host-local",
      "dataDir": %q,
      "ranges": [[{"subnet": %q, "gateway": %q}]],
      "routes": [{"dst": "0.0.0.0/0", "gw": %q}]
    }
  }]
}
`

// newNetwork creates the bridge in an unused subnet, and writes the CNI
// configuration for it. It records what it creates before it does so.
func newNetwork(ctx context.Context, l layout, apiPort int) (*network, error) {
	prefix, err := freePrefix()
	if err != nil {
		return nil, err
	}
	n := &network{
		bridge:  bridgeName(l),
		subnet:  prefix + ".0/24",
		gateway: prefix + ".1",
		apiPort: apiPort,
	}
	record, err := json.Marshal(networkRecord{Bridge: n.bridge, Gateway: n.gateway, APIPort: n.apiPort})
	if err != nil {
		return nil, fmt.Errorf("record network: %w", err)
	}
	if err := writeFile(l.networkRecord(), string(record)); err != nil {
		return nil, err
	}
	cni := fmt.Sprintf(conflist, n.bridge, l.path("cni", "addresses"), n.subnet, n.gateway, n.gateway)
	if err := writeFile(filepath.Join(l.cniConfig(), "10-e2e.conflist"), cni); err != nil {
		return nil, err
	}
	return n, n.up(ctx)
}

// bridgeName returns a name that is unique among the clusters and short enough
// for an interface.
func bridgeName(l layout) string {
	id := strings.TrimPrefix(filepath.Base(l.dir), folderPrefix)
	return "dra" + id[:min(len(id), 10)]
}

// freePrefix finds the first three bytes of a /24 in which no interface of this
// machine has an address.
func freePrefix() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("list addresses: %w", err)
	}
	for third := range 256 {
		_, candidate, _ := net.ParseCIDR(fmt.Sprintf("10.217.%d.0/24", third))
		if !overlaps(candidate, addresses) {
			return fmt.Sprintf("10.217.%d", third), nil
		}
	}
	return "", errors.New("no free subnet for pods beneath 10.217.0.0/16")
}

func overlaps(candidate *net.IPNet, addresses []net.Addr) bool {
	for _, address := range addresses {
		if used, ok := address.(*net.IPNet); ok && (candidate.Contains(used.IP) || used.Contains(candidate.IP)) {
			return true
		}
	}
	return false
}

func (n *network) up(ctx context.Context) error {
	for _, args := range [][]string{
		{"ip", "link", "add", n.bridge, "type", "bridge"},
		{"ip", "address", "add", n.gateway + "/24", "dev", n.bridge},
		{"ip", "link", "set", n.bridge, "up"},
		append([]string{"iptables"}, redirection("-A", n.bridge, n.gateway, n.apiPort)...),
	} {
		if err := command(ctx, args[0], args[1:]...); err != nil {
			return fmt.Errorf("make the pods' network: %w", err)
		}
	}
	return nil
}

// redirection returns the arguments of iptables that redirect the API server's
// service address, for pods of this bridge only, to the address on which it
// listens. The rule replaces kube-proxy.
func redirection(action, bridge, gateway string, port int) []string {
	return []string{
		"--wait", "--table", "nat", action, "PREROUTING", "--in-interface", bridge,
		"--destination", serviceIP, "--protocol", "tcp", "--dport", "443",
		"--jump", "DNAT", "--to-destination", net.JoinHostPort(gateway, strconv.Itoa(port)),
	}
}

// removeNetwork removes the bridge and the rule of the record in a folder. It
// returns no error if they are gone.
func removeNetwork(l layout) error {
	data, err := os.ReadFile(l.networkRecord())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read network record: %w", err)
	}
	var record networkRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return fmt.Errorf("read network record: %w", err)
	}
	rule := redirection("-D", record.Bridge, record.Gateway, record.APIPort)
	for exec.Command("iptables", rule...).Run() == nil {
	}
	if _, err := net.InterfaceByName(record.Bridge); err != nil {
		return nil
	}
	return command(context.Background(), "ip", "link", "delete", record.Bridge)
}

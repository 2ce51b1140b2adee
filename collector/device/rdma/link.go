package rdma

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// linkStates are the states that a port's link can be in: active, the two
// stages of its coming up that a subnet manager sees (initialized, armed), and
// down, of which the physical state says more: it looks for a partner
// (polling) or has been switched off (disabled).
func linkStates() []string {
	return []string{"active", "armed", "init", "down", "polling", "disabled"}
}

// linkState reads the state of a port's link.
func (a *adapter) linkState(p port) (string, error) {
	logical, err := a.number(filepath.Join(p.folder, "state"))
	if err != nil {
		return "", err
	}
	state, err := stateOf(logical)
	if err != nil {
		return "", &fs.PathError{Op: "parse", Path: filepath.Join(p.folder, "state"), Err: err}
	}
	if state != "down" {
		return state, nil
	}
	// A port that does not tell its physical state is down all the same.
	physical, err := a.number(filepath.Join(p.folder, "phys_state"))
	if err != nil {
		return state, nil
	}
	return downState(physical), nil
}

// number reads the number before the colon in a file such as "4: ACTIVE".
func (a *adapter) number(path string) (int, error) {
	text, err := a.files.Text(path)
	if err != nil {
		return 0, err
	}
	number, err := parseState(text)
	if err != nil {
		return 0, &fs.PathError{Op: "parse", Path: path, Err: err}
	}
	return number, nil
}

func parseState(text string) (int, error) {
	number, _, found := strings.Cut(text, ":")
	parsed, err := strconv.ParseUint(strings.TrimSpace(number), 10, 8)
	if !found || err != nil {
		return 0, fmt.Errorf("no number of a state: %.40q", text)
	}
	return int(parsed), nil
}

// stateOf names a port's logical state, the enumeration ib_port_state. An
// active port that defers its traffic for a moment is active.
func stateOf(number int) (string, error) {
	switch number {
	case 1:
		return "down", nil
	case 2:
		return "init", nil
	case 3:
		return "armed", nil
	case 4, 5:
		return "active", nil
	default:
		return "", fmt.Errorf("no state has the number %d", number)
	}
}

// downState names the state of a link that is down by its physical state, the
// enumeration ib_port_phys_state. While it trains it looks for a partner, too.
func downState(physical int) string {
	switch physical {
	case 2, 4:
		return "polling"
	case 3:
		return "disabled"
	default:
		return "down"
	}
}

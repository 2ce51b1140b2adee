package web

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/mdlayher/vsock"
	toolkit "github.com/prometheus/exporter-toolkit/web"

	"github.com/dra-exporter/dra-exporter/collector/hostport"
)

// listen opens the listeners of the flags as the toolkit's ListenAndServe does, but
// before anything is served: a port in use is reported immediately, and the port of
// port 0 can be read.
func listen(flags *toolkit.FlagConfig, flag string) ([]net.Listener, error) {
	if flags.WebSystemdSocket != nil && *flags.WebSystemdSocket {
		return systemdListeners()
	}
	if len(*flags.WebListenAddresses) == 0 {
		return nil, errors.New(flag + " is not an address")
	}
	var listeners []net.Listener
	for _, address := range *flags.WebListenAddresses {
		listener, err := listenOn(address)
		if err != nil {
			return nil, errors.Join(
				fmt.Errorf("listen on %s %q: %w", flag, hostport.Redacted(address), err), closeAll(listeners))
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func listenOn(address string) (net.Listener, error) {
	if !strings.HasPrefix(address, "vsock://") {
		if strings.ContainsAny(address, "@/") {
			return nil, errors.New("it is neither HOST:PORT nor vsock://:PORT")
		}
		return net.Listen("tcp", hostport.Bracketed(address))
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("parse the address: %w", err)
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("parse the port: %w", err)
	}
	return vsock.Listen(uint32(port), nil)
}

// systemdListeners returns the listeners that systemd has opened.
func systemdListeners() ([]net.Listener, error) {
	listeners, err := activation.Listeners()
	if err != nil {
		return nil, fmt.Errorf("get the listeners of --web.systemd-socket: %w", err)
	}
	if len(listeners) == 0 {
		return nil, errors.New("--web.systemd-socket is set, but systemd passed no socket")
	}
	return listeners, nil
}

func closeAll(listeners []net.Listener) error {
	var errs []error
	for _, listener := range listeners {
		errs = append(errs, listener.Close())
	}
	return errors.Join(errs...)
}

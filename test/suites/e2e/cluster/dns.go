package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/net/dns/dnsmessage"
	discoveryapi "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clusterDomain is the suffix of Services' names, the usual default.
const clusterDomain = "cluster.local"

// StartDNS serves DNS for pods, at the address that the kubelet configures for
// them, until the returned function is called. A Service's name resolves to
// the addresses of its ready endpoints, as that of a headless Service does. No
// other name resolves, and without the server none does.
func (c *Cluster) StartDNS(ctx context.Context) (stop func(), err error) {
	connection, err := net.ListenPacket("udp4", net.JoinHostPort(c.network.gateway, "53"))
	if err != nil {
		return nil, fmt.Errorf("start the name server: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.serveDNS(ctx, connection)
	}()
	return func() {
		connection.Close()
		<-ended
	}, nil
}

func (c *Cluster) serveDNS(ctx context.Context, connection net.PacketConn) {
	buffer := make([]byte, 512)
	for {
		n, from, err := connection.ReadFrom(buffer)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		answer, err := c.answerDNS(ctx, buffer[:n])
		if err != nil {
			c.options.Logf("name server: %v", err)
			continue
		}
		connection.WriteTo(answer, from) // a client without an answer repeats its query
	}
}

func (c *Cluster) answerDNS(ctx context.Context, packet []byte) ([]byte, error) {
	var query dnsmessage.Message
	if err := query.Unpack(packet); err != nil {
		return nil, fmt.Errorf("parse question: %w", err)
	}
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true, RCode: dnsmessage.RCodeNameError},
		Questions: query.Questions,
	}
	for _, question := range query.Questions {
		addresses, err := c.endpoints(ctx, question.Name.String())
		if err != nil {
			return nil, err
		}
		for _, address := range addresses {
			answer.RCode = dnsmessage.RCodeSuccess // also for AAAA queries, which have no records
			if ip := net.ParseIP(address).To4(); ip != nil && question.Type == dnsmessage.TypeA {
				answer.Answers = append(answer.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 1},
					Body:   &dnsmessage.AResource{A: [4]byte(ip)},
				})
			}
		}
	}
	return answer.Pack()
}

// endpoints returns the addresses of the ready endpoints of
// SERVICE.NAMESPACE.svc.cluster.local.
func (c *Cluster) endpoints(ctx context.Context, name string) (addresses []string, err error) {
	labels := strings.Split(strings.TrimSuffix(name, ".svc."+clusterDomain+"."), ".")
	if len(labels) != 2 {
		return nil, nil
	}
	found, err := c.client.DiscoveryV1().EndpointSlices(labels[1]).List(ctx, metav1.ListOptions{LabelSelector: discoveryapi.LabelServiceName + "=" + labels[0]})
	if err != nil {
		return nil, fmt.Errorf("list endpoints of %s: %w", name, err)
	}
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
				addresses = append(addresses, endpoint.Addresses...)
			}
		}
	}
	return addresses, nil
}

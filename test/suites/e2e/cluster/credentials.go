package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
)

// serviceIP is the address of the service `kubernetes` in serviceRange.
const (
	serviceRange = "10.96.0.0/16"
	serviceIP    = "10.96.0.1"
)

// server returns the API server's URL, the same for the host and for pods.
func (c *Cluster) server() string {
	return fmt.Sprintf("https://%s:%d", c.network.gateway, c.ports.apiserver)
}

// connect creates the administrator's client from its kubeconfig.
func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	c.config, c.client = config, client
	return nil
}

// writeCredentials writes the API server's certificates, the key that signs
// service account tokens, and a token and a kubeconfig for each component.
func writeCredentials(l layout, server, gateway, node string) error {
	ips := []net.IP{net.ParseIP(gateway), net.ParseIP(serviceIP), net.IPv4(127, 0, 0, 1)}
	names := []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"}
	chain, key, err := cert.GenerateSelfSignedCertKey(gateway, ips, names)
	if err != nil {
		return fmt.Errorf("make serving certificate: %w", err)
	}
	signer, err := newSigningKey()
	if err != nil {
		return err
	}
	for path, content := range map[string]string{
		l.servingCert(): string(chain), l.servingKey(): string(key), l.serviceAccountKey(): signer,
	} {
		if err := writeFile(path, content); err != nil {
			return err
		}
	}
	if err := writeFrontProxy(l); err != nil {
		return err
	}
	return writeTokens(l, server, node, chain)
}

func newSigningKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", fmt.Errorf("make service account key: %w", err)
	}
	block := pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return string(pem.EncodeToMemory(&block)), nil
}

// writeTokens gives each component the user and groups of the API server's
// default roles.
func writeTokens(l layout, server, node string, ca []byte) error {
	components := []struct{ name, user, groups string }{
		{"admin", "admin", "system:masters"},
		{"controller-manager", "system:kube-controller-manager", ""},
		{"scheduler", "system:kube-scheduler", ""},
		{"kubelet", "system:node:" + node, "system:nodes"},
	}
	var tokens strings.Builder
	for _, c := range components {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s,%s,%q\n", token, c.user, c.name, c.groups)
		if err := writeKubeconfig(l.kubeconfig(c.name), server, token, ca); err != nil {
			return err
		}
	}
	return writeFile(l.tokens(), tokens.String())
}

func writeKubeconfig(path, server, token string, ca []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["e2e"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca}
	config.AuthInfos["e2e"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["e2e"] = &clientcmdapi.Context{Cluster: "e2e", AuthInfo: "e2e"}
	config.CurrentContext = "e2e"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

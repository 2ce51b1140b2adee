package cluster

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"

	"k8s.io/client-go/util/cert"
)

// proxyName is the client name by which extension API servers trust the API
// server's headers about the user.
const proxyName = "front-proxy-client"

// writeFrontProxy writes the certificate with which the API server forwards
// requests to extension API servers, and that of the authority with which they
// verify it. The authority signs nothing else.
func writeFrontProxy(l layout) error {
	authorityKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make front proxy key: %w", err)
	}
	authority, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "front-proxy-ca"}, authorityKey)
	if err != nil {
		return fmt.Errorf("make front proxy authority: %w", err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("make front proxy key: %w", err)
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: proxyName},
		NotBefore:    authority.NotBefore,
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, client, authority, key.Public(), authorityKey)
	if err != nil {
		return fmt.Errorf("sign front proxy certificate: %w", err)
	}
	for path, block := range map[string]pem.Block{
		l.frontProxyCA():   {Type: cert.CertificateBlockType, Bytes: authority.Raw},
		l.frontProxyCert(): {Type: cert.CertificateBlockType, Bytes: signed},
		l.frontProxyKey():  {Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)},
	} {
		if err := writeFile(path, string(pem.EncodeToMemory(&block))); err != nil {
			return err
		}
	}
	return nil
}

// aggregation returns the flags with which the API server forwards requests to
// extension API servers by their endpoints, because there is no kube-proxy.
func (c *Cluster) aggregation() []string {
	return []string{
		"--enable-aggregator-routing",
		"--proxy-client-cert-file", c.layout.frontProxyCert(), "--proxy-client-key-file", c.layout.frontProxyKey(),
		"--requestheader-client-ca-file", c.layout.frontProxyCA(), "--requestheader-allowed-names", proxyName,
		"--requestheader-username-headers", "X-Remote-User", "--requestheader-group-headers", "X-Remote-Group",
		"--requestheader-extra-headers-prefix", "X-Remote-Extra-",
	}
}

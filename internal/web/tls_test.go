package web_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// webConfig requires TLS and user scraper with password secret.
const webConfig = `
tls_server_config: {cert_file: tls.crt, key_file: tls.key}
basic_auth_users:
  scraper: $2a$04$rPtQxd9njQK4VTYEp0hTX.2FtqxZALuzoSFuX5ka4DKdgOEE/Ux4O
`

// selfSigned writes the configuration, a key and its certificate for
// 127.0.0.1, and returns the path of the first and a pool with the last.
func selfSigned(t *testing.T) (path string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "dra-exporter"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	folder, certificatePEM := t.TempDir(), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	for name, content := range map[string][]byte{
		"tls.crt": certificatePEM,
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		"web.yml": []byte(webConfig),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certificatePEM)
	return filepath.Join(folder, "web.yml"), pool
}

func TestTLSAndBasicAuth(t *testing.T) {
	path, pool := selfSigned(t)
	config := testConfig(t)
	config.Flags.WebConfigFile = &path
	// Each of two listeners with one configuration must check passwords once.
	config.Flags.WebListenAddresses = &[]string{"127.0.0.1:0", "127.0.0.1:0"}
	base, _ := serve(t, config)
	secure := "https://" + strings.TrimPrefix(base, "http://") + "/metrics"
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}

	for _, test := range []struct {
		name, authorization string
		status              int
	}{
		{"no user", "", http.StatusUnauthorized},
		{"a wrong password", "Basic c2NyYXBlcjp3cm9uZw==", http.StatusUnauthorized},
		{"the scraper", "Basic c2NyYXBlcjpzZWNyZXQ=", http.StatusOK},
	} {
		got := do(t, client, http.MethodGet, secure, map[string]string{"Authorization": test.authorization})
		if got.status != test.status || (got.body == plainText) != (test.status == http.StatusOK) {
			t.Errorf("%s gets %d %q", test.name, got.status, got.body)
		}
	}
	if got := get(t, base+"/metrics", nil); got.status != http.StatusBadRequest {
		t.Errorf("without TLS it answers %d", got.status)
	}
}

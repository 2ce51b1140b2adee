package otlp

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"sync"
)

// tls reads the certificates of a signal. A server's authority is read once;
// a client's certificate is read again for each handshake, as it is what
// platforms rotate.
func (r *reader) tls(kind signalKind) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.authorities(r.option(kind, "CERTIFICATE"))}
	certificate, key := r.option(kind, "CLIENT_CERTIFICATE"), r.option(kind, "CLIENT_KEY")
	switch {
	case !certificate.is() && !key.is():
		return config
	case !key.is():
		r.refuse(certificate, "a certificate without its key: set %s too", key.name)
		return config
	case !certificate.is():
		r.refuse(key, "a key without its certificate: set %s too", certificate.name)
		return config
	}
	files := &keyPair{certificate: certificate.value, key: key.value}
	if err := files.read(); err != nil {
		r.refuse(certificate, "with %s=%q: %v", key.name, key.value, err)
	}
	config.GetClientCertificate = files.get
	return config
}

// authorities reads the certificates by which a server may be known. nil, the
// system's, where no file is named.
func (r *reader) authorities(g given) *x509.CertPool {
	if !g.is() {
		return nil
	}
	pem, err := os.ReadFile(g.value)
	if err != nil {
		r.refuse(g, "%v", err)
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		r.refuse(g, "no certificate in PEM (-----BEGIN CERTIFICATE-----) in this file")
	}
	return pool
}

// keyPair is a client's certificate in two files that may be replaced at any
// time. It is safe for concurrent use.
type keyPair struct {
	certificate, key string // paths

	mutex sync.Mutex
	last  *tls.Certificate
}

func (k *keyPair) read() error {
	pair, err := tls.LoadX509KeyPair(k.certificate, k.key)
	if err != nil {
		return err
	}
	k.last = &pair
	return nil
}

// get is tls.Config.GetClientCertificate. While the files cannot be used, one
// of them may have been replaced and the other not yet: what was read last
// goes on, and the server says if that has run out.
func (k *keyPair) get(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if err := k.read(); err != nil && k.last == nil {
		return nil, err
	}
	return k.last, nil
}

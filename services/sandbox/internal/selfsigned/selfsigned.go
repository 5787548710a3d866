// Package selfsigned makes the certificate that both servers of the sandbox
// show, since neither has a name that an authority would sign for.
package selfsigned

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
	"strconv"
	"time"
)

// Certificate is made anew for each process and signs itself.
type Certificate struct {
	pem  []byte
	pair tls.Certificate
}

const lifetime = 365 * 24 * time.Hour

// New makes a certificate for the loopback addresses and, because
// the Azure SDK for Go takes an endpoint's port for a part of the name, for
// these with the given ports.
func New(ports []int) (*Certificate, error) {
	names := []string{"localhost", "sandbox"}
	for _, port := range ports {
		for _, host := range []string{"localhost", "sandbox", "127.0.0.1"} {
			names = append(names, host+":"+strconv.Itoa(port))
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Change Relay sandbox"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              names,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &Certificate{
		pem:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pair: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
	}, nil
}

// PEM is what a client has to trust.
func (c *Certificate) PEM() []byte { return c.pem }

// TLS is a server's configuration with the certificate.
func (c *Certificate) TLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS12}
}

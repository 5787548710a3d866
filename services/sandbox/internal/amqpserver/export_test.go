package amqpserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"time"
)

// VerifySAS is verifySAS, AcceptTimeout is acceptTimeout.
var (
	VerifySAS     = verifySAS
	AcceptTimeout = acceptTimeout
)

// Claims is claims.
type Claims = claims

// Put is put.
func (c *claims) Put(audience string, expires time.Time) { c.put(audience, expires) }

// Allow is allow.
func (c claims) Allow(path string, now time.Time) bool { return c.allow(path, now) }

// SignSAS makes a shared access signature as clients do.
func SignSAS(resource, name, key string, expires time.Time) string {
	sr := url.QueryEscape(resource)
	mac := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(mac, "%s\n%d", sr, expires.Unix())
	sig := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s", sr, sig, expires.Unix(), name)
}

// SweepAt does the periodic work as if it were now.
func (s *Server) SweepAt(now time.Time) {
	for _, c := range s.connections() {
		c.sweep(now)
	}
}

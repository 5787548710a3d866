// Package sastest makes shared access signatures for tests.
package sastest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"time"
)

// Sign makes a shared access signature as clients do.
func Sign(resource, name, secret string, expires time.Time) string {
	sr := url.QueryEscape(resource)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s\n%d", sr, expires.Unix())
	sig := url.QueryEscape(base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return fmt.Sprintf("SharedAccessSignature sr=%s&sig=%s&se=%d&skn=%s", sr, sig, expires.Unix(), url.QueryEscape(name))
}

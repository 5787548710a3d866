package amqpserver

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/amqp"
)

// sasPrefix starts a shared access signature: "SharedAccessSignature sr=…&sig=…&se=…&skn=…".
const sasPrefix = "SharedAccessSignature "

// verifySAS checks signature, expiry and audience of a token and returns when it expires.
func verifySAS(keys map[string]string, token, audience string, now time.Time) (time.Time, error) {
	fields, ok := strings.CutPrefix(token, sasPrefix)
	if !ok {
		return time.Time{}, errors.New("not a shared access signature")
	}
	values := map[string]string{}
	for pair := range strings.SplitSeq(fields, "&") {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	key, ok := keys[values["skn"]]
	if !ok {
		return time.Time{}, fmt.Errorf("unknown key name %q", values["skn"])
	}
	sig, err := url.QueryUnescape(values["sig"])
	if err != nil {
		return time.Time{}, fmt.Errorf("signature: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(values["sr"] + "\n" + values["se"]))
	if !equalSecrets(base64.StdEncoding.EncodeToString(mac.Sum(nil)), sig) {
		return time.Time{}, errors.New("the signature is wrong")
	}
	seconds, err := strconv.ParseInt(values["se"], 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("expiry: %w", err)
	}
	expires := time.Unix(seconds, 0)
	if !expires.After(now) {
		return time.Time{}, errors.New("the token has expired")
	}
	resource, err := url.QueryUnescape(values["sr"])
	if err != nil {
		return time.Time{}, fmt.Errorf("resource: %w", err)
	}
	if !covers(resourcePath(resource), resourcePath(audience)) {
		return time.Time{}, errors.New("the token is for another resource")
	}
	return expires, nil
}

func equalSecrets(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// resourcePath is the entity's path within a resource URI, in lower case. Host names are not compared: a sandbox is
// reached under many.
func resourcePath(resource string) string {
	resource = strings.ToLower(resource)
	if _, rest, ok := strings.Cut(resource, "://"); ok {
		_, resource, _ = strings.Cut(rest, "/")
	} else if strings.Contains(resource, ".") && !strings.Contains(resource, "/") {
		resource = "" // a host name alone
	}
	return strings.Trim(resource, "/")
}

// covers tells whether a claim for one path extends to another: to itself and everything below it.
func covers(claim, path string) bool {
	return claim == "" || claim == path || strings.HasPrefix(path, claim+"/")
}

// claims are the resources a connection has shown tokens for, with their expiry.
type claims map[string]time.Time

func (c *claims) put(audience string, expires time.Time) {
	const most = 10_000
	if *c == nil {
		*c = claims{}
	}
	if len(*c) < most {
		(*c)[resourcePath(audience)] = expires
	}
}

// allow tells whether a claim for the path, or for something above it, is still good.
func (c claims) allow(path string, now time.Time) bool {
	for at := path; ; at = at[:max(strings.LastIndexByte(at, '/'), 0)] {
		if expires, ok := c[at]; ok && expires.After(now) {
			return true
		}
		if at == "" {
			return false
		}
	}
}

// authorize checks that a token for the address has been shown. It needs the connection's mu.
func (c *conn) authorize(address string) *amqp.Error {
	if c.srv.cfg.Keys == nil || c.trusted {
		return nil
	}
	if c.claims.allow(resourcePath(address), time.Now()) {
		return nil
	}
	return &amqp.Error{
		Condition:   amqp.ConditionUnauthorized,
		Description: fmt.Sprintf("Unauthorized access. A claim is required to perform this operation. Resource: '%s'.", address),
	}
}

package sas

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Prefix starts a shared access signature: "SharedAccessSignature sr=…&sig=…&se=…&skn=…".
const Prefix = "SharedAccessSignature "

// Claim is what a good token allows.
type Claim struct {
	Rights  Rights
	Expires time.Time
}

// Error is why a token is not good, in the service's words.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

func invalid(format string, args ...any) *Error {
	return &Error{"InvalidSignature: The token has an invalid signature: " + fmt.Sprintf(format, args...)}
}

// timeFormat is how the service writes the time a token has expired at.
const timeFormat = "1/2/2006 3:04:05 PM"

// Verify checks a token's signature, expiry and resource, which must cover the
// audience. Every error is an *Error.
func (k Keys) Verify(token, audience string, now time.Time) (Claim, error) {
	fields, ok := strings.CutPrefix(token, Prefix)
	if !ok {
		return Claim{}, invalid("it is not a shared access signature")
	}
	values := map[string]string{}
	for pair := range strings.SplitSeq(fields, "&") {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	key, err := k.signer(values)
	if err != nil {
		return Claim{}, err
	}
	seconds, parseErr := strconv.ParseInt(values["se"], 10, 64)
	if parseErr != nil {
		return Claim{}, invalid("its expiry is no number")
	}
	expires := time.Unix(seconds, 0)
	if !expires.After(now) {
		return Claim{}, &Error{fmt.Sprintf("ExpiredToken: The token is expired. Expiration time: '%s'. Current time: '%s'.",
			expires.UTC().Format(timeFormat), now.UTC().Format(timeFormat))}
	}
	resource, parseErr := url.QueryUnescape(values["sr"])
	if parseErr != nil || !covers(Path(resource), Path(audience)) {
		return Claim{}, &Error{"InvalidAudience: The authorization token does not cover the resource '" + audience + "'."}
	}
	return Claim{Rights: key.Rights, Expires: expires}, nil
}

// signer is the key that has signed a token.
func (k Keys) signer(values map[string]string) (Key, error) {
	name, err := url.QueryUnescape(values["skn"])
	if err != nil {
		return Key{}, invalid("its key name is not encoded as it should be")
	}
	key, ok := k[name]
	if !ok {
		return Key{}, invalid("there is no key %q", name)
	}
	signature, err := url.QueryUnescape(values["sig"])
	if err != nil {
		return Key{}, invalid("its signature is not encoded as it should be")
	}
	mac := hmac.New(sha256.New, []byte(key.Secret))
	mac.Write([]byte(values["sr"] + "\n" + values["se"]))
	if !Equal(base64.StdEncoding.EncodeToString(mac.Sum(nil)), signature) {
		return Key{}, invalid("it was signed with another key")
	}
	return key, nil
}

// Equal compares secrets in a time that tells nothing of them.
func Equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// Path is the entity's path within a resource URI, in lower case, without the
// query. Host names are not compared: a sandbox is
// reached under many.
func Path(resource string) string {
	resource, _, _ = strings.Cut(strings.ToLower(resource), "?")
	if _, rest, ok := strings.Cut(resource, "://"); ok {
		_, resource, _ = strings.Cut(rest, "/")
	} else if strings.ContainsAny(resource, ".:") && !strings.Contains(resource, "/") {
		resource = "" // a host alone, perhaps with a port
	}
	return strings.Trim(resource, "/")
}

// covers tells whether a claim for one path extends to another: to itself and everything below it.
func covers(claim, path string) bool {
	return claim == "" || claim == path || strings.HasPrefix(path, claim+"/")
}

// Package redact keeps secrets out of everything that leaves the process as
// text: errors of drivers and SDKs may quote a connection string.
package redact

import (
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strings"
)

const placeholder = "<redacted>"

// Redactor replaces known secrets. The zero Redactor knows none. It may be used
// from any goroutine.
type Redactor struct {
	replacer *strings.Replacer
}

// New returns a Redactor of the given secrets and of what they contain: of a
// URI its password, of a Service Bus connection string its key and signature.
func New(secrets ...string) *Redactor {
	var all []string
	for _, secret := range secrets {
		all = append(all, parts(secret)...)
	}
	var forms []string
	for _, secret := range all {
		forms = append(forms, secret, url.QueryEscape(secret), url.PathEscape(secret), inJSON(secret))
	}
	// Longest first: of a secret within a secret, nothing must be left over.
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		if len(form) > 3 { // shorter ones would tear ordinary words apart
			pairs = append(pairs, form, placeholder)
		}
	}
	return &Redactor{replacer: strings.NewReplacer(pairs...)}
}

// Text returns text without the secrets.
func (r *Redactor) Text(text string) string {
	if r.replacer == nil {
		return text
	}
	return r.replacer.Replace(text)
}

// Writer returns a writer that passes on each write without the secrets. A
// secret that is split over two writes is not found: it is for logs, which
// write line by line.
func (r *Redactor) Writer(to io.Writer) io.Writer { return writer{r, to} }

type writer struct {
	*Redactor
	to io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.to, w.Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// parts returns a secret together with the secrets inside it.
func parts(secret string) []string {
	if secret == "" {
		return nil
	}
	all := []string{secret}
	if u, err := url.Parse(secret); err == nil {
		if password, set := u.User.Password(); set {
			all = append(all, password)
		}
	}
	for field := range strings.SplitSeq(secret, ";") {
		name, value, _ := strings.Cut(field, "=")
		if name == "SharedAccessKey" || name == "SharedAccessSignature" {
			all = append(all, value)
		}
	}
	return all
}

// inJSON is the secret as it stands inside a JSON string.
func inJSON(secret string) string {
	quoted, err := json.Marshal(secret)
	if err != nil {
		return secret
	}
	return string(quoted[1 : len(quoted)-1])
}

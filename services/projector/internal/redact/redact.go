// Package redact keeps secrets out of everything that leaves the process as
// text: errors of drivers and SDKs may quote a connection string.
package redact

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
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
// Each is found plain, escaped for a URL, quoted for JSON, and both.
func New(secrets ...string) *Redactor {
	var forms []string
	for _, secret := range secrets {
		for _, part := range parts(secret) {
			forms = append(forms, formsOf(part)...)
		}
	}
	// Longest first: of a secret within a secret, nothing must be left over.
	slices.SortFunc(forms, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
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
	for _, password := range passwords(secret) {
		all = append(all, password)
		if plain, err := url.PathUnescape(password); err == nil {
			all = append(all, plain)
		}
	}
	for field := range strings.SplitSeq(secret, ";") {
		name, value, _ := strings.Cut(field, "=")
		if name = strings.TrimSpace(name); strings.EqualFold(name, "SharedAccessKey") || strings.EqualFold(name, "SharedAccessSignature") {
			all = append(all, value)
		}
	}
	return all
}

// passwords is what may be the password of a URI, as it stands there: up to any
// @. A URI with several hosts, or with a password that is not escaped, is none
// to package url.
func passwords(uri string) []string {
	_, rest, _ := strings.Cut(uri, "://")
	user, _, _ := strings.Cut(rest, "@")
	_, _, found := strings.Cut(user, ":")
	if !found {
		return nil
	}
	_, rest, _ = strings.Cut(rest, ":")
	var all []string
	for i, c := range rest {
		if c == '@' {
			all = append(all, rest[:i])
		}
	}
	return all
}

// formsOf is a secret as it may stand in a text: as it is or escaped for a URL,
// each as it is or inside a string of JSON or of Go, once or twice.
func formsOf(secret string) []string {
	query, path := url.QueryEscape(secret), url.PathEscape(secret)
	plain := []string{secret, query, path, lowerHex(query), lowerHex(path)}
	forms := slices.Clone(plain)
	for _, form := range plain {
		for _, quote := range []func(string) string{inJSON, inHTMLSafeJSON, inGo} {
			once := quote(form)
			forms = append(forms, once, inJSON(once), inHTMLSafeJSON(once))
		}
	}
	return forms
}

// lowerHex is escaped text with the digits of its escapes in lower case.
func lowerHex(escaped string) string {
	to := []byte(escaped)
	for i := 0; i+2 < len(to); i++ {
		if to[i] == '%' {
			copy(to[i+1:i+3], bytes.ToLower(to[i+1:i+3]))
		}
	}
	return string(to)
}

// inJSON is text as it stands inside a JSON string.
func inJSON(text string) string {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		return text
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(quoted.String()), `"`), `"`)
}

// inHTMLSafeJSON is text inside a JSON string that escapes <, > and & too.
func inHTMLSafeJSON(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return string(quoted[1 : len(quoted)-1])
}

// inGo is text inside a Go string literal, as %q writes it.
func inGo(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

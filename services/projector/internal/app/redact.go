package app

import (
	"io"
	"net/url"
	"strings"
)

// redactor takes secrets out of texts that others made: errors of the drivers
// may quote what they were given.
type redactor struct{ replacer *strings.Replacer }

func newRedactor(cfg *Config) *redactor {
	var pairs []string
	hide := func(secret string) {
		if len(secret) >= 4 {
			pairs = append(pairs, secret, "<redacted>")
		}
	}
	if _, rest, found := strings.Cut(cfg.MongoURI.Reveal(), "://"); found {
		if credentials, _, found := strings.Cut(rest, "@"); found {
			if _, password, found := strings.Cut(credentials, ":"); found {
				hide(password)
				if plain, err := url.PathUnescape(password); err == nil {
					hide(plain)
				}
			}
		}
	}
	for part := range strings.SplitSeq(cfg.ServiceBusConnectionString.Reveal(), ";") {
		name, value, _ := strings.Cut(part, "=")
		if strings.EqualFold(name, "SharedAccessKey") || strings.EqualFold(name, "SharedAccessSignature") {
			hide(value)
		}
	}
	for _, values := range cfg.headers() {
		for _, value := range values {
			hide(value)
		}
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

func (r *redactor) text(s string) string { return r.replacer.Replace(s) }

// writer returns w without the secrets. Each Write is one whole line.
func (r *redactor) writer(w io.Writer) io.Writer { return redactingWriter{r, w} }

type redactingWriter struct {
	r *redactor
	w io.Writer
}

func (w redactingWriter) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.r.text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}

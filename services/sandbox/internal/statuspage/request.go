package statuspage

import (
	"cmp"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Login is who asks: a user of MongoDB or a shared access key. The zero Login is
// nobody.
type Login struct {
	Name, Secret string
	// AuthSource is the database a user was created in; empty is admin.
	AuthSource string
}

func loginOf(r *http.Request) Login {
	name, secret, _ := r.BasicAuth()
	return Login{Name: name, Secret: secret, AuthSource: r.URL.Query().Get("authSource")}
}

// reserved are the top-level names that nobody can register.
var reserved = []string{"localhost", "local", "internal", "test", "svc"}

// checkHost refuses the names that a page of the Web may have: an address, a
// name without a dot and a reserved name are this machine's or its network's.
func checkHost(host string) error {
	name := host
	if alone, _, err := net.SplitHostPort(host); err == nil {
		name = alone
	}
	name = strings.ToLower(strings.TrimSuffix(strings.Trim(name, "[]"), "."))
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return nil
	}
	if slices.Contains(reserved, name[strings.LastIndexByte(name, '.')+1:]) || strings.HasSuffix(name, ".svc.cluster.local") {
		return nil
	}
	return Refuse(http.StatusMisdirectedRequest,
		"the sandbox does not answer to the name %q: ask by address, by a name without a dot or by one that ends in .%s",
		name, strings.Join(reserved, ", ."))
}

// maxBody bounds the body of a request.
const maxBody = 4 << 20

func bodyOf(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, Refuse(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBody)
	}
	if err != nil {
		return nil, wrong("read the body: %s", err)
	}
	return body, nil
}

// parameters reads the query of a request. The first problem stays in err.
type parameters struct {
	r   *http.Request
	err error
}

// text is a parameter, or "".
func (p *parameters) text(name string) string { return p.r.URL.Query().Get(name) }

// optional is nil for a parameter that is not given.
func (p *parameters) optional(name string) *string {
	if !p.r.URL.Query().Has(name) {
		return nil
	}
	text := p.text(name)
	return &text
}

// number is a parameter within bounds.
func (p *parameters) number(name string, fallback, least, most int64) int64 {
	text := p.text(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		p.fail("%s must be a number from %d to %d, and is %q", name, least, most, text)
		return fallback
	}
	return n
}

// yes is a parameter that is true or false.
func (p *parameters) yes(name string) bool {
	b, err := strconv.ParseBool(cmp.Or(p.text(name), "false"))
	if err != nil {
		p.fail("%s must be true or false, and is %q", name, p.text(name))
	}
	return b
}

func (p *parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = wrong(format, args...)
	}
}

// onlyKnown refuses parameters that mean nothing, which are slips.
func (p *parameters) onlyKnown(names ...string) {
	for name := range p.r.URL.Query() {
		if !slices.Contains(names, name) && name != "authSource" {
			p.fail("%s is no parameter of this; there are %s", name, strings.Join(names, ", "))
		}
	}
}

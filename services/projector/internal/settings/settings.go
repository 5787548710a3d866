// Package settings reads a service's configuration from the environment, and
// reports everything that is wrong with it at once.
//
// A configuration is a struct whose fields carry envconfig's tags: envconfig
// (the variable), default, required, desc.
package settings

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/agnivade/levenshtein"
	"github.com/kelseyhightower/envconfig"
)

// Secret is a value that must never be printed. Formatting and marshalling
// give a placeholder; Reveal gives the value.
type Secret string

const placeholder = "<redacted>"

// Reveal returns the value itself.
func (s Secret) Reveal() string { return string(s) }

// String implements fmt.Stringer with a placeholder.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return placeholder
}

// GoString implements fmt.GoStringer with the same placeholder.
func (s Secret) GoString() string { return s.String() }

// MarshalText implements encoding.TextMarshaler with the same placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Problem is one thing wrong with the configuration, and what to do about it.
type Problem struct {
	Variable string
	Text     string
}

func (p *Problem) Error() string { return p.Variable + ": " + p.Text }

// Problemf returns a Problem.
func Problemf(variable, format string, args ...any) *Problem {
	return &Problem{Variable: variable, Text: fmt.Sprintf(format, args...)}
}

// CheckListen returns what is wrong with an address to listen on, host:port with
// port 0 for any; nil for nothing.
func CheckListen(variable, addr string) *Problem {
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return Problemf(variable, "is %q, not host:port or :port, as :8080", addr)
	}
	return nil
}

// Load fills spec, a pointer to a struct, from the environment. A variable that
// is set but empty counts as not set, because that is how compose files and
// manifests write "no value". A variable that is nearly the name of one is a
// mistake, and no setting of its own. All unreadable and mistyped variables and
// all problems that check finds come back as one joined error. check may be nil;
// it sees unread fields as zero, so what it says of their variables is left out.
func Load(spec any, check func() []*Problem) error {
	var errs []error
	unread := map[string]bool{}
	value := reflect.ValueOf(spec).Elem()
	for i := range value.NumField() {
		if problem := loadField(value, i); problem != nil {
			errs = append(errs, problem)
			unread[problem.Variable] = true
		}
	}
	for _, problem := range mistyped(os.Environ(), rows(spec)) {
		errs = append(errs, problem)
	}
	if check != nil {
		for _, problem := range check() {
			if !unread[problem.Variable] {
				errs = append(errs, problem)
			}
		}
	}
	return errors.Join(errs...)
}

// mistyped returns the variables of an environment that are no setting, but
// nearly one.
func mistyped(environ []string, settings []row) []*Problem {
	known := map[string]bool{}
	for _, s := range settings {
		known[s.variable] = true
	}
	var problems []*Problem
	for _, assignment := range environ {
		name, value, _ := strings.Cut(assignment, "=")
		if known[name] || value == "" {
			continue
		}
		for _, s := range settings {
			if near(name, s.variable) {
				problems = append(problems, Problemf(name, "is no setting: did you mean %s?", s.variable))
				break
			}
		}
	}
	return problems
}

// near tells whether one name is probably meant to be the other. Short names,
// such as MODE, have neighbours that mean something else.
func near(name, setting string) bool {
	allowed := 0
	switch n := len(setting); {
	case n >= 12:
		allowed = 2
	case n >= 6:
		allowed = 1
	}
	return levenshtein.ComputeDistance(strings.ToUpper(name), setting) <= allowed
}

// loadField reads one field through a struct of that field alone: envconfig
// stops at the first field that it cannot read.
func loadField(value reflect.Value, i int) *Problem {
	field := value.Type().Field(i)
	variable := field.Tag.Get("envconfig")
	if text, set := os.LookupEnv(variable); set && text == "" {
		if err := os.Unsetenv(variable); err != nil {
			return Problemf(variable, "%s", err)
		}
	}
	alone := reflect.New(reflect.StructOf([]reflect.StructField{field}))
	err := envconfig.Process("", alone.Interface())
	if err == nil {
		value.Field(i).Set(alone.Elem().Field(0))
		return nil
	}
	if parse, ok := errors.AsType[*envconfig.ParseError](err); ok {
		if reflect.PointerTo(field.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			return Problemf(variable, "%q is not valid: %s", parse.Value, field.Tag.Get("desc"))
		}
		return Problemf(variable, "%q is not %s", parse.Value, kindOf(field.Type))
	}
	return Problemf(variable, "is required: %s", field.Tag.Get("desc"))
}

func kindOf(t reflect.Type) string {
	switch {
	case t.String() == "time.Duration":
		return "a duration such as 250ms, 15s or 1m"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64:
		return "a whole number"
	default:
		return "a valid " + t.String()
	}
}

// Report writes a configuration error for a person: one problem a line.
func Report(w io.Writer, service string, err error) {
	problems := strings.Split(err.Error(), "\n")
	fmt.Fprintf(w, "%s: the configuration has %d problem(s):\n", service, len(problems))
	for _, problem := range problems {
		fmt.Fprintf(w, "  %s\n", problem)
	}
	fmt.Fprintf(w, "%s --help lists every setting.\n", service)
}

// Usage writes the table of spec's variables.
func Usage(w io.Writer, spec any) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "VARIABLE\tDEFAULT\tMEANING")
	for _, row := range rows(spec) {
		fmt.Fprintf(table, "%s\t%s\t%s\n", row.variable, row.standard, row.meaning)
	}
	return table.Flush()
}

// Markdown returns the same table as a Markdown one, for the documentation.
func Markdown(spec any) string {
	var b strings.Builder
	b.WriteString("| variable | default | meaning |\n| --- | --- | --- |\n")
	for _, row := range rows(spec) {
		standard := row.standard
		if standard != "" && standard != required {
			standard = "`" + standard + "`"
		}
		meaning := strings.NewReplacer("<", "&lt;", "|", "\\|").Replace(row.meaning)
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.variable, standard, meaning)
	}
	return b.String()
}

type row struct{ variable, standard, meaning string }

const required = "required"

func rows(spec any) []row {
	t := reflect.TypeOf(spec).Elem()
	all := make([]row, 0, t.NumField())
	for field := range t.Fields() {
		tag := field.Tag
		standard := tag.Get("default")
		if tag.Get("required") == "true" {
			standard = cmp.Or(standard, required)
		}
		all = append(all, row{tag.Get("envconfig"), standard, tag.Get("desc")})
	}
	return all
}

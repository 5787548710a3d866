package management

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"changerelay/services/sandbox/internal/servicebus/isoduration"
)

// element is a piece of a request, whatever it is.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",chardata"`
	Children []element  `xml:",any"`
}

// readDescription returns the description of the entry in a request's body.
func readDescription(r *http.Request) (*element, error) {
	var root element
	decoder := xml.NewDecoder(r.Body)
	if err := decoder.Decode(&root); err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, &apiError{http.StatusRequestEntityTooLarge, "The request is larger than " + strconv.Itoa(maxBody) + " bytes."}
		}
		return nil, badRequest("The request is not XML: %v.", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, badRequest("The request goes on after its entry.")
	}
	if content := root.child("content"); root.XMLName.Local == "entry" && content != nil && len(content.Children) == 1 {
		return &content.Children[0], nil
	}
	return nil, badRequest("The request is not an Atom entry with one description.")
}

func (e *element) child(name string) *element {
	for i := range e.Children {
		if e.Children[i].XMLName.Local == name {
			return &e.Children[i]
		}
	}
	return nil
}

// kind is the XML Schema type without its prefix.
func (e *element) kind() string {
	for _, a := range e.Attrs {
		if a.Name.Local == "type" && a.Name.Space == instanceNamespace {
			return a.Value[strings.LastIndex(a.Value, ":")+1:]
		}
	}
	return ""
}

// fields reads the settings of a description into variables that hold what
// they are without the request. It keeps the first problem.
type fields struct {
	of    *element
	asked []string
	err   error
}

func (f *fields) text(name string) (string, bool) {
	f.asked = append(f.asked, name)
	if e := f.of.child(name); e != nil {
		return strings.TrimSpace(e.Text), true
	}
	return "", false
}

func (f *fields) fail(name, value string) {
	if f.err == nil {
		f.err = badRequest("The value '%s' of the element %s is not valid.", value, name)
	}
}

func (f *fields) string(name string, to *string) {
	if s, ok := f.text(name); ok {
		*to = s
	}
}

func (f *fields) bool(name string, to *bool) {
	if s, ok := f.text(name); ok {
		v, err := strconv.ParseBool(s)
		if err != nil {
			f.fail(name, s)
		}
		*to = v
	}
}

func (f *fields) integer(name string, to *int64) {
	if s, ok := f.text(name); ok {
		v, err := strconv.ParseInt(s, 10, 32)
		if err != nil || v < 1 {
			f.fail(name, s)
		}
		*to = v
	}
}

func (f *fields) duration(name string, to *time.Duration) {
	if s, ok := f.text(name); ok {
		v, err := isoduration.Parse(s)
		if err != nil || v == 0 {
			f.fail(name, s)
		}
		*to = v
	}
}

// readOnly are elements that answers have and requests may repeat.
var readOnly = []string{
	"SizeInBytes", "MessageCount", "IsAnonymousAccessible", "CreatedAt", "UpdatedAt", "AccessedAt", "CountDetails",
	"EntityAvailabilityStatus", "SubscriptionCount", "SqlFilterCount", "CorrelationFilterCount",
	"FilteringMessagesBeforePublishing", "EnableSubscriptionPartitioning", "SkippedUpdate",
}

// done refuses what was not asked for, and returns the first problem.
func (f *fields) done() error {
	express := false
	f.bool("EnableExpress", &express)
	if express && f.err == nil {
		f.err = badRequest("EnableExpress is not supported.")
	}
	if rules := f.of.child("AuthorizationRules"); rules != nil && len(rules.Children) > 0 && f.err == nil {
		f.err = badRequest("AuthorizationRules are not supported.")
	}
	f.asked = append(f.asked, "AuthorizationRules")
	for _, e := range f.of.Children {
		name := e.XMLName.Local
		if f.err == nil && !slices.Contains(f.asked, name) && !slices.Contains(readOnly, name) {
			f.err = badRequest("The element %s is not supported.", name)
		}
	}
	return f.err
}

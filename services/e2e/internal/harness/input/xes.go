package input

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/e2e/internal/harness/orders"
)

// Attributes of XES that say what an event is.
const (
	xesName = "concept:name"
	xesTime = "time:timestamp"
	// xesCase is the field of an event's data that holds the other attributes of its
	// trace.
	xesCase = "case"
)

// maxNested bounds how deep lists and containers are in each other.
const maxNested = 16

// readXES reads an event log of IEEE 1849 as a stream: the name of a trace is the
// aggregate of its events, the name of an event its type, and the other attributes its
// data. Attributes of attributes are left out.
func readXES(r io.Reader, g *gathered) error {
	x := &xes{decoder: xml.NewDecoder(r), gathered: g}
	x.decoder.CharsetReader = func(label string, _ io.Reader) (io.Reader, error) {
		return nil, &encodingError{label}
	}
	err := x.log()
	if other, is := errors.AsType[*encodingError](err); is {
		g.bad(1, "%s", other)
		return nil
	}
	wrong := (*xml.SyntaxError)(nil)
	if errors.As(err, &wrong) {
		g.bad(wrong.Line, "is not XML: %s", wrong.Msg)
		return nil
	}
	return err
}

// encodingError is that of a log which says that it is in another encoding than UTF-8.
type encodingError struct{ label string }

func (e *encodingError) Error() string {
	return fmt.Sprintf("is in %[1]s, not UTF-8: iconv -f %[1]s -t UTF-8, and name UTF-8 in the first line", e.label)
}

// xes reads the elements of a log.
type xes struct {
	decoder *xml.Decoder
	*gathered
}

func (x *xes) line() int {
	line, _ := x.decoder.InputPos()
	return line
}

// log reads the traces; what a log says of itself is passed over.
func (x *xes) log() error {
	for {
		token, err := x.decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch start.Name.Local {
		case "log":
			continue
		case "trace":
			err = x.trace()
		case "event":
			x.bad(x.line(), "the event is in no trace, and so of no aggregate")
			err = x.decoder.Skip()
		default:
			err = x.decoder.Skip()
		}
		if err != nil {
			return err
		}
	}
}

// xesEvent is an event while its trace is read.
type xesEvent struct {
	line       int
	attributes bson.D
}

// trace reads a trace, whose name may stand behind its events.
func (x *xes) trace() error {
	began := x.line()
	var events []xesEvent
	attributes, err := x.attributes(func(start xml.StartElement) error {
		if start.Name.Local != "event" {
			return x.decoder.Skip()
		}
		line := x.line()
		of, err := x.attributes(func(xml.StartElement) error { return x.decoder.Skip() })
		events = append(events, xesEvent{line, of})
		return err
	})
	if err != nil {
		return err
	}
	name, attributes := taken(attributes, xesName)
	aggregate, _ := name.(string)
	if aggregate == "" {
		x.bad(began, "the trace has no %s, which is its aggregate", xesName)
		return nil
	}
	for _, e := range events {
		x.event(aggregate, attributes, e)
	}
	return nil
}

func (x *xes) event(aggregate string, of bson.D, e xesEvent) {
	name, data := taken(e.attributes, xesName)
	at, data := taken(data, xesTime)
	what, named := name.(string)
	when, timed := at.(time.Time)
	if what == "" || !named {
		x.bad(e.line, "the event has no %s, which is its type", xesName)
		return
	}
	if !timed {
		x.bad(e.line, "the event has no %s that is a date", xesTime)
		return
	}
	if slices.ContainsFunc(data, func(e bson.E) bool { return e.Key == xesCase }) && len(of) > 0 {
		x.bad(e.line, "the event has an attribute %q, which is where those of its trace are put", xesCase)
		return
	}
	if len(of) > 0 {
		data = append(data, bson.E{Key: xesCase, Value: of})
	}
	x.number(e.line, orders.Event{Aggregate: aggregate, Type: what, Time: when, Data: data})
}

// taken takes an attribute out of others.
func taken(attributes bson.D, key string) (any, bson.D) {
	at := slices.IndexFunc(attributes, func(e bson.E) bool { return e.Key == key })
	if at < 0 {
		return nil, attributes
	}
	value := attributes[at].Value
	return value, slices.Delete(attributes, at, at+1)
}

// attributes reads the attributes of the element that has begun, to its end. Other
// elements are other's to read.
func (x *xes) attributes(other func(xml.StartElement) error) (bson.D, error) {
	return x.nested(0, other)
}

func (x *xes) nested(depth int, other func(xml.StartElement) error) (bson.D, error) {
	all := bson.D{}
	for {
		token, err := x.decoder.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return all, err
		}
		switch token := token.(type) {
		case xml.EndElement:
			return all, nil
		case xml.StartElement:
			one, is, err := x.attribute(token, depth)
			if err != nil {
				return all, err
			}
			if !is {
				if err := other(token); err != nil {
					return all, err
				}
				continue
			}
			if slices.ContainsFunc(all, func(e bson.E) bool { return e.Key == one.Key }) {
				x.bad(x.line(), "the attribute %q is there twice", one.Key)
				continue
			}
			all = append(all, one)
		}
	}
}

// attribute reads one attribute to its end; false where the element is none.
func (x *xes) attribute(start xml.StartElement, depth int) (one bson.E, is bool, err error) {
	value := ""
	for _, a := range start.Attr {
		switch a.Name.Local {
		case "key":
			one.Key = a.Value
		case "value":
			value = a.Value
		}
	}
	switch start.Name.Local {
	case "list", "container":
		one.Value, err = x.collection(start.Name.Local, depth)
		return one, true, err
	case "string", "id":
		one.Value = value
	case "date":
		one.Value, err = parseTime(value)
	case "int":
		one.Value, err = strconv.ParseInt(value, 10, 64)
	case "float":
		one.Value, err = strconv.ParseFloat(value, 64)
	case "boolean":
		one.Value, err = strconv.ParseBool(value)
	default:
		return one, false, nil
	}
	if err != nil {
		x.bad(x.line(), "%s %q is %s, and no value of that kind", start.Name.Local, one.Key, brief([]byte(value)))
	}
	return one, true, x.decoder.Skip()
}

// collection reads what is in a container, a document, or in a list, an array of
// documents of one attribute each.
func (x *xes) collection(kind string, depth int) (any, error) {
	if depth == maxNested {
		return nil, fmt.Errorf("line %d: lists and containers are in each other more than %d deep", x.line(), maxNested)
	}
	if kind == "container" {
		return x.nested(depth+1, func(xml.StartElement) error { return x.decoder.Skip() })
	}
	list := bson.A{}
	for {
		token, err := x.decoder.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return list, err
		}
		switch token := token.(type) {
		case xml.EndElement:
			if token.Name.Local == kind {
				return list, nil
			}
		case xml.StartElement:
			if token.Name.Local == "values" {
				continue
			}
			one, is, err := x.attribute(token, depth+1)
			if err != nil {
				return list, err
			}
			if is {
				list = append(list, bson.D{one})
			} else if err := x.decoder.Skip(); err != nil {
				return list, err
			}
		}
	}
}

package expression

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func duration(e *evaluation, args []any) (any, error) {
	text, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	if err := e.scan(text); err != nil {
		return nil, err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return nil, fmt.Errorf("%.40q is no duration such as 1h30m", text)
	}
	return d, nil
}

// zoneSize is about what a time zone takes.
const zoneSize = 16 << 10

func timezone(e *evaluation, args []any) (any, error) {
	name, err := textOf(args, 0)
	if err != nil {
		return nil, err
	}
	return e.zone(name)
}

// zone is a time zone by its name. The machine's own is none of them.
func (e *evaluation) zone(name string) (*time.Location, error) {
	if err := e.make(zoneSize); err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		return nil, fmt.Errorf("there is no time zone %.40q", name)
	}
	return zone, nil
}

// layouts are those of dates that say none.
var layouts = []string{
	time.DateOnly, time.TimeOnly, time.DateTime, time.RFC3339, time.RFC822, time.RFC850, time.RFC1123,
}

// date reads a time: [zone,] text [, layout [, zone]].
func date(e *evaluation, args []any) (any, error) {
	zone, isZone := args[0].(*time.Location)
	if !isZone {
		zone = time.UTC
	} else if args = args[1:]; len(args) == 0 {
		return nil, errors.New("takes a text")
	}
	texts, err := textsOf(args)
	if err != nil {
		return nil, err
	}
	if err := e.scan(texts...); err != nil {
		return nil, err
	}
	tried := layouts
	if len(texts) > 1 {
		tried = texts[1:2]
	}
	if len(texts) > 2 {
		if zone, err = e.zone(texts[2]); err != nil {
			return nil, err
		}
	}
	for _, layout := range tried {
		// Never in the machine's own zone, which time.Parse looks at.
		if t, err := time.ParseInLocation(layout, texts[0], zone); err == nil {
			return t, nil
		}
	}
	return nil, fmt.Errorf("%.40q is no date of that form", texts[0])
}

// methods are what can be called on values. None looks at the machine's clock or
// zone, and none makes more than a short text of what it is given.
var methods = map[reflect.Type][]string{
	reflect.TypeFor[time.Time](): {
		"Year", "Month", "Day", "Hour", "Minute", "Second", "Nanosecond", "YearDay", "Weekday",
		"Unix", "UnixMilli", "UnixMicro", "UnixNano", "Format", "String", "UTC", "In", "IsZero",
		"Add", "AddDate", "Sub", "Before", "After", "Equal", "Compare", "Truncate", "Round",
	},
	reflect.TypeFor[time.Duration](): {
		"Hours", "Minutes", "Seconds", "Milliseconds", "Microseconds", "Nanoseconds", "String", "Truncate", "Round",
	},
	reflect.TypeFor[time.Month]():      {"String"},
	reflect.TypeFor[time.Weekday]():    {"String"},
	reflect.TypeFor[*time.Location]():  {"String"},
	reflect.TypeFor[bson.ObjectID]():   {"Hex", "Timestamp"},
	reflect.TypeFor[bson.Decimal128](): {"String", "IsNaN", "IsZero"},
}

// call calls a method of a value.
func (e *evaluation) call(n *ast.CallNode) (any, error) {
	callee, ok := n.Callee.(*ast.MemberNode)
	if !ok {
		return nil, fmt.Errorf("%s is not of this language", shown(n))
	}
	name, ok := callee.Property.(*ast.StringNode)
	if !ok {
		return nil, fmt.Errorf("%s is not of this language", shown(n))
	}
	base, err := e.eval(callee.Node)
	if err != nil {
		return nil, err
	}
	if _, skip := base.(skipped); skip || callee.Optional && isNone(base) {
		return skipped{}, nil
	}
	if isAbsent(base) {
		return absent{callee.Node}, nil
	}
	args, err := e.all(n.Arguments)
	if err != nil {
		return nil, err
	}
	v, err := e.method(base, name.Value, args)
	if err != nil {
		return nil, at(n, err)
	}
	return v, nil
}

func (e *evaluation) method(base any, name string, args []any) (any, error) {
	if base == nil || !slices.Contains(methods[reflect.TypeOf(base)], name) {
		return nil, fmt.Errorf("%s has no method %s", kind(base), name)
	}
	for _, arg := range args {
		// Each part of a layout becomes at most four times as long.
		if layout, ok := arg.(string); ok {
			if err := e.text(4 * len(layout)); err != nil {
				return nil, err
			}
		}
	}
	f := reflect.ValueOf(base).MethodByName(name)
	if f.Type().NumIn() != len(args) {
		return nil, fmt.Errorf("takes %d arguments", f.Type().NumIn())
	}
	in := make([]reflect.Value, len(args))
	for i, arg := range args {
		if n, ok := wholeNumber(arg); ok {
			arg = int(n)
		}
		if arg == nil || !reflect.TypeOf(arg).AssignableTo(f.Type().In(i)) {
			return nil, fmt.Errorf("argument %d is %s, not of type %s", i+1, kind(arg), f.Type().In(i))
		}
		in[i] = reflect.ValueOf(arg)
	}
	if err := exact(base, name, args); err != nil {
		return nil, err
	}
	return f.Call(in)[0].Interface(), nil
}

// maxCalendar bounds what AddDate adds: years, months or days.
const maxCalendar = 1_000_000

// exact refuses the calls that would be cut or wrap.
func exact(base any, name string, args []any) error {
	t, ok := base.(time.Time)
	if !ok {
		return nil
	}
	seconds := t.Unix()
	switch name {
	case "Sub":
		_, err := between(t, args[0].(time.Time))
		return err
	case "AddDate":
		for _, arg := range args {
			if n, _ := wholeNumber(arg); n > maxCalendar || n < -maxCalendar {
				return errOverflow
			}
		}
	case "UnixMilli":
		return within(seconds, 1e3)
	case "UnixMicro":
		return within(seconds, 1e6)
	case "UnixNano":
		return within(seconds, 1e9)
	}
	return nil
}

// within refuses a number of seconds that has more units than fit.
func within(seconds, units int64) error {
	if limit := math.MaxInt64/units - 1; seconds > limit || seconds < -limit {
		return errOverflow
	}
	return nil
}

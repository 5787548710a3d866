package expression

import (
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

func dateOperator(name string) builder {
	if part := datePart(name); part != nil {
		return buildDatePart(part)
	}
	switch name {
	case "$dateToString":
		return buildDateToString
	case "$dateFromString":
		return buildDateFromString
	case "$dateFromParts":
		return buildDateFromParts
	case "$dateToParts":
		return buildDateToParts
	}
	return nil
}

// datePart is what the operators that take a date apart compute.
func datePart(name string) func(t time.Time) int {
	switch name {
	case "$year":
		return time.Time.Year
	case "$month":
		return func(t time.Time) int { return int(t.Month()) }
	case "$dayOfMonth":
		return time.Time.Day
	case "$dayOfYear":
		return time.Time.YearDay
	case "$dayOfWeek":
		return func(t time.Time) int { return int(t.Weekday()) + 1 }
	case "$hour":
		return time.Time.Hour
	case "$minute":
		return time.Time.Minute
	case "$second":
		return time.Time.Second
	case "$millisecond":
		return func(t time.Time) int { return t.Nanosecond() / int(time.Millisecond) }
	case "$week":
		return weekOfYear
	case "$isoWeek":
		return func(t time.Time) int { _, week := t.ISOWeek(); return week }
	case "$isoWeekYear":
		return func(t time.Time) int { year, _ := t.ISOWeek(); return year }
	case "$isoDayOfWeek":
		return func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }
	}
	return nil
}

// weekOfYear counts from the first Sunday; the days before are week 0.
func weekOfYear(t time.Time) int { return (t.YearDay() - int(t.Weekday()) + 6) / 7 }

func buildDatePart(part func(time.Time) int) builder {
	return func(c *compiler, name string, argument bson.RawValue) (operand, error) {
		date, zone, err := c.dateArguments(name, argument)
		if err != nil {
			return operand{}, err
		}
		return c.folded([]operand{date, zone}, func(s *scope) (bson.RawValue, error) {
			t, null, err := evalDate(s, date, zone)
			if err != nil || null {
				return bsonkit.Null(), err
			}
			if name == "$isoWeekYear" {
				return bsonkit.Int64(int64(part(t))), nil
			}
			return bsonkit.Int32(int32(part(t))), nil
		}), nil
	}
}

// dateArguments reads a date, or {date: …, timezone: …}.
func (c *compiler) dateArguments(name string, argument bson.RawValue) (date, zone operand, err error) {
	zone = constant(bsonkit.String("UTC"))
	if argument.Type == bson.TypeEmbeddedDocument {
		if it := bsonkit.Iterate(argument.Value); it.Next() && !strings.HasPrefix(string(it.Key()), "$") {
			fields, err := c.documentArguments(name, argument, 40539, 40535, "date", "timezone")
			if err != nil {
				return date, zone, err
			}
			d, ok := fields["date"]
			if !ok {
				return date, zone, mongoerr.New(40539, "missing 'date' argument to %s", name)
			}
			if z, ok := fields["timezone"]; ok {
				zone = z
			}
			return d, zone, nil
		}
	}
	args, err := c.arguments(argument)
	if err == nil && len(args) != 1 {
		err = mongoerr.New(40536, "%s accepts exactly one argument if given an array, but was given %d", name, len(args))
	}
	if err != nil {
		return date, zone, err
	}
	return args[0], zone, nil
}

// evalDate computes a date in its zone. It reports null for a null of either.
func evalDate(s *scope, date, zone operand) (t time.Time, null bool, err error) {
	v, err := date.in(s)
	if err != nil || nullish(v) {
		return t, true, err
	}
	ms, err := dateMillis(v)
	if err != nil {
		return t, false, err
	}
	z, err := zone.in(s)
	if err != nil || nullish(z) {
		return t, true, err
	}
	if z.Type != bson.TypeString {
		return t, false, mongoerr.New(40533, "a date expression requires a string for the timezone argument, but was given a %s", typeName(z))
	}
	at, err := location(z)
	if err != nil {
		return t, false, err
	}
	return time.UnixMilli(ms).In(at), false, nil
}

// dateMillis coerces what stands for a date.
func dateMillis(v bson.RawValue) (int64, error) {
	switch v.Type {
	case bson.TypeDateTime:
		return v.DateTime(), nil
	case bson.TypeTimestamp:
		t, _ := v.Timestamp()
		return int64(t) * 1000, nil
	case bson.TypeObjectID:
		return v.ObjectID().Timestamp().UnixMilli(), nil
	}
	return 0, mongoerr.New(16006, "can't convert from BSON type %s to Date", typeName(v))
}

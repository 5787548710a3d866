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
		return folded([]operand{date, zone}, func(s *scope) (bson.RawValue, error) {
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
	if err != nil {
		return t, false, err
	}
	z, err := zone.in(s)
	if err != nil {
		return t, false, err
	}
	if nullish(v) || nullish(z) {
		return t, true, nil
	}
	ms, err := dateMillis(v)
	if err != nil {
		return t, false, err
	}
	location, err := location(z)
	if err != nil {
		return t, false, err
	}
	return time.UnixMilli(ms).In(location), false, nil
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

func buildDateFromParts(c *compiler, name string, argument bson.RawValue) (operand, error) {
	names := []string{"year", "month", "day", "hour", "minute", "second", "millisecond"}
	fields, err := c.documentArguments(name, argument, 40519, 40518, append(names, "timezone")...)
	if err != nil {
		return operand{}, err
	}
	if _, ok := fields["year"]; !ok {
		return operand{}, mongoerr.New(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	}
	return folded(operands(fields), func(s *scope) (bson.RawValue, error) {
		values, err := evalNamed(s, fields)
		if err != nil {
			return bson.RawValue{}, err
		}
		return dateFromParts(names, values)
	}), nil
}

func dateFromParts(names []string, values map[string]bson.RawValue) (bson.RawValue, error) {
	at := [7]int{0, 1, 1}
	for i, name := range names {
		v, ok := values[name]
		if !ok {
			continue
		}
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		n, whole := bsonkit.WholeNumber(v)
		if !whole || n != int64(int16(n)) {
			return v, mongoerr.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, typeName(v), bsonkit.Describe(v))
		}
		at[i] = int(n)
	}
	zone := utc
	if v, ok := values["timezone"]; ok {
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		var err error
		if zone, err = location(v); err != nil {
			return v, err
		}
	}
	return bsonkit.Date(time.Date(at[0], time.Month(at[1]), at[2], at[3], at[4], at[5], at[6]*int(time.Millisecond), zone)), nil
}

func buildDateToParts(c *compiler, name string, argument bson.RawValue) (operand, error) {
	date, zone, err := c.dateArguments(name, argument)
	if err != nil {
		return operand{}, err
	}
	return folded([]operand{date, zone}, func(s *scope) (bson.RawValue, error) {
		t, null, err := evalDate(s, date, zone)
		if err != nil || null {
			return bsonkit.Null(), err
		}
		b := bsonkit.NewBuilder(nil)
		for _, part := range []struct {
			name string
			n    int
		}{
			{"year", t.Year()},
			{"month", int(t.Month())},
			{"day", t.Day()},
			{"hour", t.Hour()},
			{"minute", t.Minute()},
			{"second", t.Second()},
			{"millisecond", t.Nanosecond() / int(time.Millisecond)},
		} {
			b.Append(part.name, bsonkit.Int32(int32(part.n)))
		}
		return bsonkit.Document(b.Finish()), nil
	}), nil
}

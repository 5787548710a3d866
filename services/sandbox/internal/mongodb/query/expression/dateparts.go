package expression

import (
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// datePartNames are the parts of a date as $dateFromParts takes and $dateToParts
// gives them: by the calendar, or by ISO 8601's weeks.
func datePartNames(iso bool) []string {
	day := []string{"year", "month", "day"}
	if iso {
		day = []string{"isoWeekYear", "isoWeek", "isoDayOfWeek"}
	}
	return append(day, "hour", "minute", "second", "millisecond")
}

func buildDateFromParts(c *compiler, name string, argument bson.RawValue) (operand, error) {
	known := slices.Concat(datePartNames(false), datePartNames(true), []string{"timezone"})
	fields, err := c.documentArguments(name, argument, 40519, 40518, known...)
	if err != nil {
		return operand{}, err
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { _, ok := fields[name]; return ok })
	}
	switch {
	case !has("year", "isoWeekYear"):
		return operand{}, mongoerr.New(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present")
	case has("year") && has("isoWeekYear", "isoWeek", "isoDayOfWeek"):
		return operand{}, mongoerr.New(40489, "$dateFromParts does not allow mixing natural dates with ISO dates")
	case has("isoWeekYear") && has("month", "day"):
		return operand{}, mongoerr.New(40525, "$dateFromParts does not allow mixing ISO dates with natural dates")
	}
	return c.folded(operands(fields), func(s *scope) (bson.RawValue, error) {
		values, err := evalNamed(s, fields)
		if err != nil {
			return bson.RawValue{}, err
		}
		return dateFromParts(values, has("isoWeekYear"))
	}), nil
}

func dateFromParts(values map[string]bson.RawValue, iso bool) (bson.RawValue, error) {
	at := [7]int{0, 1, 1}
	for i, name := range datePartNames(iso) {
		v, ok := values[name]
		if !ok {
			continue
		}
		if nullish(v) {
			return bsonkit.Null(), nil
		}
		n, whole := bsonkit.WholeNumber(v)
		// Seconds and milliseconds may be as many as one likes.
		bounded := i > 0 && i < 5
		switch {
		case !whole:
			return v, mongoerr.New(40515, "'%s' must evaluate to an integer, found %s with value %s", name, typeName(v), bsonkit.Describe(v))
		case bounded && n != int64(int16(n)):
			return v, mongoerr.New(31034, "'%s' must evaluate to a value in the range [-32768, 32767]; value %d is not in range", name, n)
		case i == 0 && (n < 1 || n > 9999) && iso:
			return v, mongoerr.New(31095, "'%s' must evaluate to an integer in the range 1 to 9999, found %d", name, n)
		case i == 0 && (n < 1 || n > 9999):
			return v, mongoerr.New(40523, "'%s' must evaluate to an integer in the range 1 to 9999, found %d", name, n)
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
	year, month, day := at[0], time.Month(at[1]), at[2]
	if iso {
		year, month, day = isoDay(at[0], at[1], at[2])
	}
	// Milliseconds are added as such: as nanoseconds they could be too many.
	date := time.Date(year, month, day, at[3], at[4], at[5], 0, zone)
	return bson.RawValue{Type: bson.TypeDateTime, Value: bsonkit.Int64(date.UnixMilli() + int64(at[6])).Value}, nil
}

// isoDay is the day of a week, as one that time.Date normalizes: the first week
// is that with January 4.
func isoDay(year, week, weekday int) (int, time.Month, int) {
	fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC)
	monday := 4 - (int(fourth.Weekday())+6)%7
	return year, time.January, monday + (week-1)*7 + weekday - 1
}

func buildDateToParts(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, 40524, 40520, "date", "timezone", "iso8601")
	if err != nil {
		return operand{}, err
	}
	date, ok := fields["date"]
	if !ok {
		return operand{}, mongoerr.New(40522, "Missing 'date' parameter to $dateToParts")
	}
	zone, ok := fields["timezone"]
	if !ok {
		zone = constant(bsonkit.String("UTC"))
	}
	iso, ok := fields["iso8601"]
	if !ok {
		iso = constant(bsonkit.Boolean(false))
	}
	return c.folded([]operand{date, zone, iso}, func(s *scope) (bson.RawValue, error) {
		at, err := zoneAt(s, zone)
		if err != nil || at == nil {
			return bsonkit.Null(), err
		}
		byWeek, err := iso.in(s)
		if err != nil || nullish(byWeek) {
			return bsonkit.Null(), err
		}
		asISO, isBool := byWeek.BooleanOK()
		if !isBool {
			return byWeek, mongoerr.New(40521, "iso8601 must evaluate to a bool, found %s", typeName(byWeek))
		}
		v, err := date.in(s)
		if err != nil || nullish(v) {
			return bsonkit.Null(), err
		}
		ms, err := dateMillis(v)
		return dateToParts(time.UnixMilli(ms).In(at), asISO), err
	}), nil
}

func dateToParts(t time.Time, iso bool) bson.RawValue {
	year, month, day := t.Year(), int(t.Month()), t.Day()
	if iso {
		year, month = t.ISOWeek()
		day = (int(t.Weekday())+6)%7 + 1
	}
	parts := []int{year, month, day, t.Hour(), t.Minute(), t.Second(), t.Nanosecond() / int(time.Millisecond)}
	b := bsonkit.NewBuilder(nil)
	for i, name := range datePartNames(iso) {
		b.Append(name, bsonkit.Int32(int32(parts[i])))
	}
	return bsonkit.Document(b.Finish())
}

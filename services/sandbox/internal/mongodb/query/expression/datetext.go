package expression

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a machine may have none

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

var utc = time.UTC

const isoFormat = "%Y-%m-%dT%H:%M:%S.%LZ"

// location reads a time zone: its name in the Olson database, or an offset like
// +02, +0200, +02:00. It is utc for UTC by that name and for an offset of nothing.
func location(v bson.RawValue) (*time.Location, error) {
	if v.Type != bson.TypeString {
		return nil, mongoerr.New(40517, "timezone must evaluate to a string, found %s", typeName(v))
	}
	name := content(v)
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, name); err == nil {
			_, offset := t.Zone()
			if offset == 0 {
				return utc, nil
			}
			return time.FixedZone(name, offset), nil
		}
	}
	// A capital begins the names of zones; Local is the machine's own, which is none.
	if name != "" && name[0] >= 'A' && name[0] <= 'Z' && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, mongoerr.New(40485, "unrecognized time zone identifier: \"%s\"", name)
}

// zoneAt computes a time zone. It is nil for null.
func zoneAt(s *scope, zone operand) (*time.Location, error) {
	v, err := zone.in(s)
	if err != nil || nullish(v) {
		return nil, err
	}
	return location(v)
}

// formatAt computes a format of dates and checks it, whatever becomes of the
// date. It may be null. known are the letters of specifiers.
func formatAt(s *scope, operator string, format operand, notText mongoerr.Code, known string) (bson.RawValue, error) {
	v, err := format.in(s)
	switch {
	case err != nil || nullish(v):
		return bsonkit.Null(), err
	case v.Type != bson.TypeString:
		return v, mongoerr.New(notText, "%s requires that 'format' be a string, found: %s", operator, typeName(v))
	}
	return v, checkFormat(content(v), known)
}

func buildDateToString(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, 18629, 18534, "date", "format", "timezone", "onNull")
	if err != nil {
		return operand{}, err
	}
	date, ok := fields["date"]
	if !ok {
		return operand{}, mongoerr.New(18628, "Missing 'date' parameter to $dateToString")
	}
	zone, ok := fields["timezone"]
	if !ok {
		zone = constant(bsonkit.String("UTC"))
	}
	format, ok := fields["format"]
	if !ok {
		format = constant(bsonkit.String(isoFormat))
	}
	return c.folded(operands(fields), func(s *scope) (bson.RawValue, error) {
		v, err := date.in(s)
		if err != nil {
			return v, err
		}
		f, err := formatAt(s, "$dateToString", format, 18533, "YmdHMSLjwuUVGzZ%")
		if err != nil {
			return f, err
		}
		at, err := zoneAt(s, zone)
		if err != nil {
			return bson.RawValue{}, err
		}
		if onNull, ok := fields["onNull"]; ok && nullish(v) {
			return onNull.in(s)
		}
		if nullish(v) || nullish(f) || at == nil {
			return bsonkit.Null(), nil
		}
		ms, err := dateMillis(v)
		if err != nil {
			return v, err
		}
		return bsonkit.String(formatDate(ms, content(f), at)), nil
	}), nil
}

func checkFormat(format, known string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		i++
		if i == len(format) {
			return mongoerr.New(18535, "Unmatched '%%' at end of format string")
		}
		if !strings.ContainsRune(known, rune(format[i])) {
			return mongoerr.New(18536, "Invalid format character '%%%c' in format string", format[i])
		}
	}
	return nil
}

func formatDate(ms int64, format string, zone *time.Location) string {
	t := time.UnixMilli(ms).In(zone)
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		b.WriteString(formatPart(t, format[i]))
	}
	return b.String()
}

func formatPart(t time.Time, part byte) string {
	isoYear, isoWeek := t.ISOWeek()
	_, offset := t.Zone()
	switch part {
	case 'Y':
		return fmt.Sprintf("%04d", t.Year())
	case 'm':
		return fmt.Sprintf("%02d", t.Month())
	case 'd':
		return fmt.Sprintf("%02d", t.Day())
	case 'H':
		return fmt.Sprintf("%02d", t.Hour())
	case 'M':
		return fmt.Sprintf("%02d", t.Minute())
	case 'S':
		return fmt.Sprintf("%02d", t.Second())
	case 'L':
		return fmt.Sprintf("%03d", t.Nanosecond()/int(time.Millisecond))
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'w':
		return fmt.Sprint(int(t.Weekday()) + 1)
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case 'U':
		return fmt.Sprintf("%02d", weekOfYear(t))
	case 'V':
		return fmt.Sprintf("%02d", isoWeek)
	case 'G':
		return fmt.Sprintf("%04d", isoYear)
	case 'z':
		return t.Format("-0700")
	case 'Z':
		return strconv.Itoa(offset / 60)
	}
	return "%"
}

// buildDateFromString reads texts by a format, or in one of many forms without one.
func buildDateFromString(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, 40540, 40541, "dateString", "format", "timezone", "onError", "onNull")
	if err != nil {
		return operand{}, err
	}
	if _, ok := fields["dateString"]; !ok {
		return operand{}, mongoerr.New(40542, "Missing 'dateString' parameter to $dateFromString")
	}
	return c.folded(operands(fields), func(s *scope) (bson.RawValue, error) { return dateFromString(s, fields) }), nil
}

// dateFromString looks at format and time zone even where there is no text.
func dateFromString(s *scope, fields map[string]operand) (bson.RawValue, error) {
	text, err := fields["dateString"].in(s)
	if err != nil {
		return text, err
	}
	format, formatted := fields["format"]
	var f bson.RawValue
	if formatted {
		if f, err = formatAt(s, "$dateFromString", format, 40684, "YmdHMSLjuVGzZ%"); err != nil {
			return f, err
		}
	}
	zone := utc
	if z, ok := fields["timezone"]; ok {
		if zone, err = zoneAt(s, z); err != nil {
			return bson.RawValue{}, err
		}
	}
	var date bson.RawValue
	switch {
	case nullish(text):
		if onNull, ok := fields["onNull"]; ok {
			return onNull.in(s)
		}
		return bsonkit.Null(), nil
	case text.Type != bson.TypeString:
		err = mongoerr.New(mongoerr.ConversionFailure, "$dateFromString requires that 'dateString' be a string, found: %s", typeName(text))
	case zone == nil || formatted && nullish(f):
		return bsonkit.Null(), nil
	case formatted:
		date, err = parseDateByFormat(content(text), content(f), zone)
	default:
		date, err = parseDate(content(text), zone)
	}
	if onError, ok := fields["onError"]; ok && mongoerr.Is(err, mongoerr.ConversionFailure) {
		return onError.in(s)
	}
	return date, err
}

package expression

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a machine may have none

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

var utc = time.UTC

const isoFormat = "%Y-%m-%dT%H:%M:%S.%LZ"

// location reads a time zone: its name, or an offset like +02, +0200, +02:00.
func location(v bson.RawValue) (*time.Location, error) {
	if v.Type != bson.TypeString {
		return nil, mongoerr.New(40517, "timezone must evaluate to a string, found %s", typeName(v))
	}
	name := content(v)
	if name == "UTC" || name == "GMT" || name == "Z" {
		return utc, nil
	}
	for _, layout := range []string{"-07:00", "-0700", "-07"} {
		if t, err := time.Parse(layout, name); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(name, offset), nil
		}
	}
	if strings.Contains(name, "/") {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, mongoerr.New(40485, "unrecognized time zone identifier: \"%s\"", name)
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
	return folded(operands(fields), func(s *scope) (bson.RawValue, error) {
		t, null, err := evalDate(s, date, zone)
		if err != nil {
			return bson.RawValue{}, err
		}
		if onNull, ok := fields["onNull"]; ok && null {
			return onNull.in(s)
		}
		f, err := format.in(s)
		switch {
		case err != nil:
			return f, err
		case null || nullish(f):
			return bsonkit.Null(), nil
		case f.Type != bson.TypeString:
			return f, mongoerr.New(18533, "$dateToString requires that 'format' be a string, found: %s", typeName(f))
		}
		if err := checkFormat(content(f)); err != nil {
			return f, err
		}
		return bsonkit.String(formatDate(t.UnixMilli(), content(f), t.Location())), nil
	}), nil
}

func checkFormat(format string) error {
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		i++
		if i == len(format) {
			return mongoerr.New(18535, "Unmatched '%%' at end of format string")
		}
		if !strings.ContainsRune("YmdHMSLjwuUVGzZ%", rune(format[i])) {
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
		return fmt.Sprintf("%+d", offset/60)
	}
	return "%"
}

// dateLayouts are the forms of text that become a date without a format.
func dateLayouts() []string {
	return []string{
		time.RFC3339Nano,
		"2006-01-02T15:04:05.999999999Z0700",
		"2006-01-02T15:04:05.999999999",
		"2006-01-02T15:04Z07:00",
		"2006-01-02T15:04",
		"2006-01-02 15:04:05.999999999Z07:00",
		"2006-01-02 15:04:05.999999999",
		"2006-01-02 15:04",
		"2006-01-02",
	}
}

func parseDate(text string, zone *time.Location) (bson.RawValue, error) {
	for _, layout := range dateLayouts() {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return bsonkit.Date(t), nil
		}
	}
	return bson.RawValue{}, mongoerr.New(mongoerr.ConversionFailure, "Error parsing date string '%s'", text)
}

// buildDateFromString reads texts by a format, ISO 8601 without one.
func buildDateFromString(c *compiler, name string, argument bson.RawValue) (operand, error) {
	fields, err := c.documentArguments(name, argument, 40540, 40541, "dateString", "format", "timezone", "onError", "onNull")
	if err != nil {
		return operand{}, err
	}
	input, ok := fields["dateString"]
	if !ok {
		return operand{}, mongoerr.New(40542, "Missing 'dateString' parameter to $dateFromString")
	}
	return folded(operands(fields), func(s *scope) (bson.RawValue, error) {
		text, err := input.in(s)
		if err != nil {
			return text, err
		}
		if nullish(text) {
			if onNull, ok := fields["onNull"]; ok {
				return onNull.in(s)
			}
			return bsonkit.Null(), nil
		}
		date, err := dateFromString(s, text, fields)
		if onError, ok := fields["onError"]; ok && mongoerr.Is(err, mongoerr.ConversionFailure) {
			return onError.in(s)
		}
		return date, err
	}), nil
}

func dateFromString(s *scope, text bson.RawValue, fields map[string]operand) (bson.RawValue, error) {
	if text.Type != bson.TypeString {
		return text, mongoerr.New(mongoerr.ConversionFailure, "$dateFromString requires that 'dateString' be a string, found: %s", typeName(text))
	}
	var zone *time.Location
	if z, ok := fields["timezone"]; ok {
		v, err := z.in(s)
		if err != nil || nullish(v) {
			return bsonkit.Null(), err
		}
		if zone, err = location(v); err != nil {
			return v, err
		}
	}
	if f, ok := fields["format"]; ok {
		format, err := f.in(s)
		switch {
		case err != nil || nullish(format):
			return bsonkit.Null(), err
		case format.Type != bson.TypeString:
			return format, mongoerr.New(40684, "$dateFromString requires that 'format' be a string, found: %s", typeName(format))
		}
		if err := checkFormat(content(format)); err != nil {
			return format, err
		}
		return parseDateByFormat(content(text), content(format), zone)
	}
	if zone == nil {
		zone = utc
	}
	return parseDate(content(text), zone)
}

package expression

import (
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// dateParts are what a text says by a format, by the letters of its specifiers.
type dateParts struct {
	values map[byte]int
	// zone is that of the text, nil if it names none.
	zone *time.Location
}

// digitsOf are the most digits that a specifier takes, and the least and
// greatest number.
var digitsOf = map[byte]struct{ digits, low, high int }{
	'Y': {4, 0, 9999}, 'm': {2, 1, 12}, 'd': {2, 1, 31}, 'H': {2, 0, 24}, 'M': {2, 0, 59}, 'S': {2, 0, 60}, 'L': {3, 0, 999},
	'j': {3, 1, 366}, 'G': {4, 0, 9999}, 'V': {2, 1, 53}, 'u': {1, 1, 7},
}

// parseDateByFormat reads a text as a format says
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/dateFromString/#format-specifiers).
// The text may name a zone of its own only where zone is UTC.
func parseDateByFormat(text, format string, zone *time.Location) (bson.RawValue, error) {
	p, err := readDate(text, format)
	if err != nil {
		return bson.RawValue{}, err
	}
	switch {
	case p.zone != nil && zone != utc:
		return bson.RawValue{}, notDate(text, "you cannot pass in a date/time string with time zone information together with a timezone argument")
	case p.zone != nil:
		zone = p.zone
	}
	day, err := p.day(text, zone)
	if err != nil {
		return bson.RawValue{}, err
	}
	at := time.Date(day.Year(), day.Month(), day.Day(), p.values['H'], p.values['M'], p.values['S'],
		p.values['L']*int(time.Millisecond), zone)
	return bsonkit.Date(at), nil
}

func notDate(text, reason string) error {
	return mongoerr.New(mongoerr.ConversionFailure, "Error parsing date string '%s'; %s", text, reason)
}

func readDate(text, format string) (dateParts, error) {
	p := dateParts{values: map[byte]int{}}
	rest := text
	for i := 0; i < len(format); i++ {
		var ok bool
		if format[i] != '%' {
			rest, ok = strings.CutPrefix(rest, format[i:i+1])
		} else {
			i++ // the format was checked: there is a letter
			rest, ok = p.read(rest, format[i])
		}
		if !ok {
			return p, notDate(text, "it does not fit the format '"+format+"'")
		}
	}
	if rest != "" {
		return p, notDate(text, "there is more than the format '"+format+"' says")
	}
	return p, nil
}

// read takes what a specifier stands for from the beginning of a text.
func (p *dateParts) read(text string, letter byte) (rest string, ok bool) {
	switch letter {
	case '%':
		return strings.CutPrefix(text, "%")
	case 'z', 'Z':
		return p.readZone(text, letter)
	}
	return p.readNumber(text, letter)
}

func (p *dateParts) readNumber(text string, letter byte) (rest string, ok bool) {
	spec, known := digitsOf[letter]
	n := 0
	for n < len(text) && n < spec.digits && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	value, err := strconv.Atoi(text[:n])
	if !known || err != nil || value < spec.low || value > spec.high {
		return text, false
	}
	if letter == 'L' {
		for range 3 - n {
			value *= 10
		}
	}
	p.values[letter] = value
	return text[n:], true
}

// readZone reads an offset: +0200 or +02:00 by z, minutes by Z.
func (p *dateParts) readZone(text string, letter byte) (rest string, ok bool) {
	end := 0
	for end < len(text) && strings.IndexByte("+-:0123456789", text[end]) >= 0 {
		end++
	}
	if letter == 'Z' {
		minutes, err := strconv.Atoi(text[:end])
		p.zone = time.FixedZone("", minutes*60)
		return text[end:], err == nil && minutes > -24*60 && minutes < 24*60
	}
	if rest, found := strings.CutPrefix(text, "Z"); found {
		p.zone = utc
		return rest, true
	}
	zone, err := location(bsonkit.String(text[:end]))
	p.zone = zone
	return text[end:], err == nil
}

// day is the date, which has to be said whole, and in one of three ways.
func (p *dateParts) day(text string, zone *time.Location) (time.Time, error) {
	has := func(letters string) bool {
		for i := range len(letters) {
			if _, said := p.values[letters[i]]; !said {
				return false
			}
		}
		return true
	}
	natural, iso := has("Y") || has("m") || has("d") || has("j"), has("G") || has("V") || has("u")
	switch {
	case natural && iso:
		return time.Time{}, notDate(text, "mixing of ISO dates with natural dates is not allowed")
	case has("Yj"):
		return time.Date(p.values['Y'], 1, p.values['j'], 0, 0, 0, 0, zone), nil
	case has("Ymd"):
		return time.Date(p.values['Y'], time.Month(p.values['m']), p.values['d'], 0, 0, 0, 0, zone), nil
	case has("GV"):
		weekday := max(p.values['u'], 1)
		// The fourth of January is in the first week of its ISO year.
		fourth := time.Date(p.values['G'], 1, 4, 0, 0, 0, 0, zone)
		monday := fourth.AddDate(0, 0, -(int(fourth.Weekday())+6)%7)
		return monday.AddDate(0, 0, 7*(p.values['V']-1)+weekday-1), nil
	}
	return time.Time{}, notDate(text, "an incomplete date/time string has been found, with elements missing")
}

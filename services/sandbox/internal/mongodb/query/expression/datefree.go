package expression

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
)

// dateForms are the texts that become a date without a format, of those that the
// server's timelib reads: a day in one of these forms, then perhaps a time of day
// and a zone.
var dateForms = freeDates(
	`(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})`,
	`(?P<year>\d{4})/(?P<month>\d{1,2})/(?P<day>\d{1,2})`,
	`(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})`,
	`(?P<month>\d{1,2})/(?P<day>\d{1,2})/(?P<year>\d{4})`,
	`(?P<day>\d{1,2})[.\t-](?P<month>\d{1,2})[.-](?P<year>\d{4})`,
	`(?P<day>\d{1,2})(?:st|nd|rd|th)?[ \t.-]*(?P<name>[a-z]+)[ \t.-]*(?P<year>\d{4})`,
	`(?P<name>[a-z]+)[ \t.-]*(?P<day>\d{1,2})[,.stndrh\t ]+(?P<year>\d{4})`,
)

// maxDateText is far longer than a date is written.
const maxDateText = 200

func freeDates(days ...string) []*regexp.Regexp {
	const (
		weekday = `(?:(?P<weekday>[a-z]+),?\s+)?`
		clock   = `(?:(?:t|,?\s+)(?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:[.,](?P<fraction>\d{1,9})\d*)?)?(?:\s*(?P<half>[ap])\.?m\.?)?)?`
		zone    = `(?:\s*(?P<zone>(?:(?:gmt|utc)?[+-]\d{1,2}(?::?\d{2})?)|[a-z]+))?`
	)
	var forms []*regexp.Regexp
	for _, day := range days {
		forms = append(forms, regexp.MustCompile(`(?i)^\s*`+weekday+day+clock+zone+`\s*$`))
	}
	return forms
}

// parseDate reads a text that is in the zone, unless it names one of its own,
// which it may only where the zone is UTC.
func parseDate(text string, zone *time.Location) (bson.RawValue, error) {
	for _, form := range dateForms {
		if len(text) > maxDateText {
			break
		}
		found := form.FindStringSubmatch(text)
		if found == nil {
			continue
		}
		part := func(name string) string { return strings.ToLower(found[form.SubexpIndex(name)]) }
		named := ""
		if i := form.SubexpIndex("name"); i >= 0 {
			named = strings.ToLower(found[i])
		} else {
			named = part("month")
		}
		if own := part("zone"); own != "" {
			if zone != utc {
				return bson.RawValue{}, notDate(text, "you cannot pass in a date/time string with time zone information together with a timezone argument")
			}
			if zone = zoneOfText(own); zone == nil {
				break
			}
		}
		if at, ok := freeDate(part, named, zone); ok {
			return bsonkit.Date(at), nil
		}
		break
	}
	return bson.RawValue{}, notDate(text, "it is in none of the forms that are read")
}

// freeDate makes a date of its parts, as they stand in a text.
func freeDate(part func(name string) string, month string, zone *time.Location) (time.Time, bool) {
	number := func(name string) int {
		n, _ := strconv.Atoi(part(name)) // digits, or nothing: 0
		return n
	}
	year, m, day := number("year"), monthOf(month), number("day")
	midnight := time.Date(year, m, day, 0, 0, 0, 0, time.UTC)
	hour, minute, second := number("hour"), number("minute"), number("second")
	half := part("half")
	switch {
	case midnight.Month() != m || midnight.Day() != day:
		return time.Time{}, false
	case part("weekday") != "" && !isWeekday(part("weekday"), midnight.Weekday()):
		return time.Time{}, false
	case hour > 24 || minute > 59 || second > 60 || half != "" && (hour < 1 || hour > 12):
		return time.Time{}, false
	case half != "":
		hour %= 12
	}
	if half == "p" {
		hour += 12
	}
	nanoseconds, _ := strconv.Atoi((part("fraction") + "000000000")[:9])
	return time.Date(year, m, day, hour, minute, second, nanoseconds, zone), true
}

// monthOf reads a number or an English name, whole or its first three letters. It
// is 0 for what is none.
func monthOf(text string) time.Month {
	if n, err := strconv.Atoi(text); err == nil {
		return time.Month(n)
	}
	for m := time.January; m <= time.December; m++ {
		name := strings.ToLower(m.String())
		if text == name || text == name[:3] || text == "sept" && m == time.September {
			return m
		}
	}
	return 0
}

func isWeekday(text string, day time.Weekday) bool {
	name := strings.ToLower(day.String())
	return text == name || text == name[:3]
}

// hoursOfZones are the abbreviations of time zones that texts have most often.
var hoursOfZones = map[string]int{
	"z": 0, "utc": 0, "gmt": 0, "wet": 0, "west": 1, "bst": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3, "jst": 9,
	"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10,
}

// zoneOfText is an offset or an abbreviation, nil for what is neither: names of
// places are not for texts.
func zoneOfText(text string) *time.Location {
	if hours, ok := hoursOfZones[text]; ok {
		return time.FixedZone(text, hours*60*60)
	}
	i := strings.IndexAny(text, "+-")
	if i < 0 {
		return nil
	}
	sign, digits := 1, strings.ReplaceAll(text[i+1:], ":", "")
	if text[i] == '-' {
		sign = -1
	}
	if len(digits) < 3 {
		digits += "00"
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return nil
	}
	return time.FixedZone(text, sign*(n/100*60+n%100)*60)
}

package input

import "strconv"

// kind is what the values of a column are.
type kind int

const (
	unknown kind = iota // none was seen
	boolean
	whole
	fraction
	words
)

// kindOf is what all values of a column are that are there.
func (t *table) kindOf(column int) kind {
	all := unknown
	for _, row := range t.rows {
		if row[column] == "" {
			continue
		}
		one := kindOfValue(row[column])
		switch {
		case all == unknown || all == one:
			all = one
		case all == whole && one == fraction || all == fraction && one == whole:
			all = fraction
		default:
			return words
		}
	}
	return all
}

// kindOfValue takes for a number what a number would be written as: 007 and +1 are
// texts.
func kindOfValue(s string) kind {
	if s == "true" || s == "false" {
		return boolean
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(n, 10) == s {
		return whole
	}
	if decimal(s) {
		return fraction
	}
	return words
}

// decimal says whether s is digits, a point and digits, with a sign or none.
func decimal(s string) bool {
	if s != "" && s[0] == '-' {
		s = s[1:]
	}
	point := -1
	for i, c := range []byte(s) {
		switch {
		case c == '.' && point < 0:
			point = i
		case c < '0' || c > '9':
			return false
		}
	}
	leading := len(s) > 1 && s[0] == '0' && s[1] != '.'
	return point > 0 && point < len(s)-1 && !leading
}

func (k kind) value(s string) any {
	switch k {
	case boolean:
		return s == "true"
	case whole:
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	case fraction:
		f, _ := strconv.ParseFloat(s, 64)
		return f
	case unknown, words:
	}
	return s
}

package sqlfilter

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
)

// SystemProperties are the names that may follow "sys.".
var SystemProperties = []string{
	"ContentType", "CorrelationId", "Label", "MessageId", "ReplyTo", "ReplyToSessionId", "SessionId", "To",
	"PartitionKey", "ScheduledEnqueueTimeUtc",
}

// Message is what a filter looks at. Values are string, bool, integers, floats,
// time.Time, uuid.UUID; anything else compares with nothing. A nil is absent.
type Message interface {
	// System returns the property of one of the names in SystemProperties.
	System(name string) any
	// User returns the application property; names are not case sensitive.
	User(name string) any
}

// Match tells whether the message passes.
func (f *Filter) Match(m Message) bool { return f.root.test(m) == yes }

// truth is true, false or unknown.
type truth int8

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

type predicate interface{ test(Message) truth }

type expression interface{ value(Message) any }

type (
	or     struct{ left, right predicate }
	and    struct{ left, right predicate }
	not    struct{ inner predicate }
	isNull struct {
		of      expression
		negated bool
	}
	compare struct {
		op          string
		left, right expression
	}
	in struct {
		of   expression
		list []expression
	}
	like struct {
		of, pattern expression
		escape      rune // 0: none
	}
	constant   struct{ v any }
	user       string
	sys        string
	arithmetic struct {
		op          byte
		left, right expression
	}
)

func (p or) test(m Message) truth  { return max(p.left.test(m), p.right.test(m)) }
func (p and) test(m Message) truth { return min(p.left.test(m), p.right.test(m)) }
func (p not) test(m Message) truth { return yes - p.inner.test(m) }

func (p isNull) test(m Message) truth { return truthOf((p.of.value(m) == nil) != p.negated) }

func (p compare) test(m Message) truth {
	order, ok := order(p.left.value(m), p.right.value(m))
	if !ok {
		return unknown
	}
	switch p.op {
	case "=":
		return truthOf(order == 0)
	case "<>", "!=":
		return truthOf(order != 0)
	case "<":
		return truthOf(order < 0)
	case "<=":
		return truthOf(order <= 0)
	case ">":
		return truthOf(order > 0)
	default:
		return truthOf(order >= 0)
	}
}

func (p in) test(m Message) truth {
	found := no
	for _, e := range p.list {
		found = max(found, compare{"=", p.of, e}.test(m))
	}
	return found
}

func (c constant) value(Message) any { return c.v }
func (u user) value(m Message) any   { return m.User(string(u)) }
func (s sys) value(m Message) any    { return m.System(string(s)) }

// order compares two values; ok is false where they do not compare.
func order(a, b any) (result int, ok bool) {
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case bool:
		y, ok := b.(bool)
		return cmp.Compare(bit(x), bit(y)), ok
	case time.Time:
		y, ok := b.(time.Time)
		return x.Compare(y), ok
	case uuid.UUID:
		y, ok := b.(uuid.UUID)
		return cmp.Compare(x.String(), y.String()), ok
	}
	x, okX := numeric(a)
	y, okY := numeric(b)
	if !okX || !okY {
		return 0, false
	}
	if x.whole && y.whole {
		return cmp.Compare(x.i, y.i), true
	}
	return cmp.Compare(x.f, y.f), !math.IsNaN(x.f) && !math.IsNaN(y.f)
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// amount is a number: f always, i as well when it is whole.
type amount struct {
	whole bool
	i     int64
	f     float64
}

func numeric(v any) (amount, bool) {
	switch v := v.(type) {
	case int:
		return amount{true, int64(v), float64(v)}, true
	case int8:
		return amount{true, int64(v), float64(v)}, true
	case int16:
		return amount{true, int64(v), float64(v)}, true
	case int32:
		return amount{true, int64(v), float64(v)}, true
	case int64:
		return amount{true, v, float64(v)}, true
	case uint8:
		return amount{true, int64(v), float64(v)}, true
	case uint16:
		return amount{true, int64(v), float64(v)}, true
	case uint32:
		return amount{true, int64(v), float64(v)}, true
	case uint64:
		return amount{v <= math.MaxInt64, int64(v), float64(v)}, true
	case float32:
		return amount{false, 0, float64(v)}, true
	case float64:
		return amount{false, 0, v}, true
	}
	return amount{}, false
}

// value is nil, which is unknown, for operands that are no numbers, for a
// division by zero and for whole results that do not fit. A plus joins strings.
func (a arithmetic) value(m Message) any {
	left, right := a.left.value(m), a.right.value(m)
	if x, ok := left.(string); ok && a.op == '+' {
		if y, ok := right.(string); ok {
			return x + y
		}
		return nil
	}
	x, okX := numeric(left)
	y, okY := numeric(right)
	switch {
	case !okX || !okY:
		return nil
	case x.whole && y.whole:
		return a.integers(x.i, y.i)
	}
	switch a.op {
	case '+':
		return x.f + y.f
	case '-':
		return x.f - y.f
	case '*':
		return x.f * y.f
	case '/':
		return x.f / y.f
	default:
		return math.Mod(x.f, y.f)
	}
}

func (a arithmetic) integers(x, y int64) any {
	switch a.op {
	case '+':
		if sum := x + y; (sum > x) == (y > 0) {
			return sum
		}
	case '-':
		if difference := x - y; (difference < x) == (y > 0) {
			return difference
		}
	case '*':
		if x == 0 || y == 0 {
			return int64(0)
		}
		if product := x * y; product/y == x && (x != -1 || y != math.MinInt64) && (y != -1 || x != math.MinInt64) {
			return product
		}
	case '/':
		if y != 0 && (x != math.MinInt64 || y != -1) {
			return x / y
		}
	case '%':
		if y != 0 && y != -1 {
			return x % y
		}
		if y == -1 {
			return int64(0)
		}
	}
	return nil
}

func (p like) test(m Message) truth {
	value, okV := p.of.value(m).(string)
	pattern, okP := p.pattern.value(m).(string)
	if !okV || !okP {
		return unknown
	}
	return truthOf(matches([]rune(value), p.elements(pattern)))
}

// Elements of a pattern: a character, any one, or any number of any.
const (
	anyOne  rune = -1
	anyMany rune = -2
)

func (p like) elements(pattern string) []rune {
	elements := make([]rune, 0, len(pattern))
	escaped := false
	for _, c := range pattern {
		switch {
		case escaped:
			escaped = false
		case p.escape != 0 && c == p.escape:
			escaped = true
			continue
		case c == '_':
			c = anyOne
		case c == '%':
			c = anyMany
		}
		elements = append(elements, c)
	}
	return elements
}

// matches goes back at most to the last %, so its time is bounded by the
// product of the lengths.
func matches(value, pattern []rune) bool {
	v, p := 0, 0
	star, mark := -1, 0
	for v < len(value) {
		switch {
		case p < len(pattern) && pattern[p] == anyMany:
			star, mark = p, v
			p++
		case p < len(pattern) && (pattern[p] == anyOne || pattern[p] == value[v]):
			p++
			v++
		case star >= 0:
			mark++
			p, v = star+1, mark
		default:
			return false
		}
	}
	return !slices.ContainsFunc(pattern[p:], func(c rune) bool { return c != anyMany })
}

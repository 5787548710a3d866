package expression

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

var (
	errOverflow  = errors.New("integer overflow: the result does not fit in 64 bits")
	errNotFinite = errors.New("the result is infinite or not a number")
)

// wholeNumber is a whole number of any width.
func wholeNumber(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

func wholeNumbers(a, b any) (x, y int64, ok bool) {
	if x, ok = wholeNumber(a); ok {
		y, ok = wholeNumber(b)
	}
	return x, y, ok
}

func isNumber(v any) bool {
	_, ok := double(v)
	return ok
}

// double is a number as a double.
func double(v any) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	n, ok := wholeNumber(v)
	return float64(n), ok
}

func doubles(a, b any) (x, y float64, ok bool) {
	if x, ok = double(a); ok {
		y, ok = double(b)
	}
	return x, y, ok
}

// finite is a result that is a number, unless one that it was made of was none.
func finite(result float64, of ...float64) (any, error) {
	if !isFinite(result) {
		for _, f := range of {
			if !isFinite(f) {
				return result, nil
			}
		}
		return nil, errNotFinite
	}
	return result, nil
}

func isFinite(f float64) bool { return !math.IsInf(f, 0) && !math.IsNaN(f) }

func compareWhole(a, b int64) int { return cmp.Compare(a, b) }

// compareNumbers orders two numbers; false where one of them is not a number.
func compareNumbers(a, b any) (order int, ordered bool) {
	if x, y, ok := wholeNumbers(a, b); ok {
		return compareWhole(x, y), true
	}
	x, y, ok := doubles(a, b)
	return cmp.Compare(x, y), ok && !math.IsNaN(x) && !math.IsNaN(y)
}

func cannot(verb string, a, b any) error {
	return fmt.Errorf("cannot %s %s and %s", verb, kind(a), kind(b))
}

func (e *evaluation) add(a, b any) (any, error) {
	if s, ok := a.(string); ok {
		t, ok := b.(string)
		if !ok {
			return nil, cannot("add", a, b)
		}
		if err := e.text(len(s) + len(t)); err != nil {
			return nil, err
		}
		return s + t, nil
	}
	return addNumbers(a, b)
}

func addNumbers(a, b any) (any, error) {
	if x, y, ok := wholeNumbers(a, b); ok {
		sum, err := addWhole(x, y)
		return int(sum), err
	}
	if x, y, ok := doubles(a, b); ok {
		return finite(x+y, x, y)
	}
	if d, ok := b.(time.Duration); ok {
		return shift(a, d, b)
	}
	if d, ok := a.(time.Duration); ok {
		return shift(b, d, b)
	}
	return nil, cannot("add", a, b)
}

// shift adds a duration to a time or to another.
func shift(to any, d time.Duration, b any) (any, error) {
	switch to := to.(type) {
	case time.Time:
		return to.Add(d), nil
	case time.Duration:
		sum, err := addWhole(int64(to), int64(d))
		return time.Duration(sum), err
	}
	return nil, cannot("add", to, b)
}

func addWhole(a, b int64) (int64, error) {
	sum := a + b
	if b > 0 && sum < a || b < 0 && sum > a {
		return 0, errOverflow
	}
	return sum, nil
}

func subtractWhole(a, b int64) (int64, error) {
	difference := a - b
	if b > 0 && difference > a || b < 0 && difference < a {
		return 0, errOverflow
	}
	return difference, nil
}

func subtract(a, b any) (any, error) {
	if x, y, ok := wholeNumbers(a, b); ok {
		difference, err := subtractWhole(x, y)
		return int(difference), err
	}
	if x, y, ok := doubles(a, b); ok {
		return finite(x-y, x, y)
	}
	switch x := a.(type) {
	case time.Time:
		switch y := b.(type) {
		case time.Time:
			return between(x, y)
		case time.Duration:
			if y == math.MinInt64 {
				return nil, errOverflow
			}
			return x.Add(-y), nil
		}
	case time.Duration:
		if y, ok := b.(time.Duration); ok {
			difference, err := subtractWhole(int64(x), int64(y))
			return time.Duration(difference), err
		}
	}
	return nil, cannot("subtract", a, b)
}

// between is the time from b to a, which time.Time.Sub cuts where it does not fit.
func between(a, b time.Time) (any, error) {
	d := a.Sub(b)
	if !b.Add(d).Equal(a) {
		return nil, errOverflow
	}
	return d, nil
}

func multiply(a, b any) (any, error) {
	if x, y, ok := wholeNumbers(a, b); ok {
		product, err := multiplyWhole(x, y)
		return int(product), err
	}
	if x, y, ok := doubles(a, b); ok {
		return finite(x*y, x, y)
	}
	d, isDuration := a.(time.Duration)
	n, isWhole := wholeNumber(b)
	if !isDuration {
		d, isDuration = b.(time.Duration)
		n, isWhole = wholeNumber(a)
	}
	if isDuration && isWhole {
		product, err := multiplyWhole(int64(d), n)
		return time.Duration(product), err
	}
	return nil, cannot("multiply", a, b)
}

func multiplyWhole(a, b int64) (int64, error) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	limit := uint64(math.MaxInt64)
	if (a < 0) != (b < 0) {
		limit++
	}
	if high != 0 || low > limit {
		return 0, errOverflow
	}
	return a * b, nil
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func divide(a, b any) (any, error) {
	x, y, ok := doubles(a, b)
	if !ok {
		return nil, cannot("divide", a, b)
	}
	return finite(x/y, x, y)
}

func modulo(a, b any) (any, error) {
	x, y, ok := wholeNumbers(a, b)
	switch {
	case !ok:
		return nil, cannot("divide", a, b)
	case y == 0:
		return nil, errors.New("there is no remainder of a division by zero")
	}
	return int(x % y), nil
}

func power(a, b any) (any, error) {
	x, y, ok := doubles(a, b)
	if !ok {
		return nil, cannot("raise", a, b)
	}
	return finite(math.Pow(x, y), x, y)
}

func negate(v any) (any, error) {
	if n, ok := wholeNumber(v); ok {
		negative, err := subtractWhole(0, n)
		return int(negative), err
	}
	switch v := v.(type) {
	case float64:
		return -v, nil
	case time.Duration:
		negative, err := subtractWhole(0, int64(v))
		return time.Duration(negative), err
	}
	return nil, fmt.Errorf("%s has no negative", kind(v))
}

package expression

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

func absolute(_ *evaluation, args []any) (any, error) {
	if f, ok := args[0].(float64); ok {
		return math.Abs(f), nil
	}
	n, err := wholeOf(args, 0)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return negate(n)
	}
	return args[0], nil
}

func ceil(_ *evaluation, args []any) (any, error)  { return rounded(args, math.Ceil) }
func floor(_ *evaluation, args []any) (any, error) { return rounded(args, math.Floor) }
func round(_ *evaluation, args []any) (any, error) { return rounded(args, math.Round) }

func rounded(args []any, how func(float64) float64) (any, error) {
	f, ok := double(args[0])
	if !ok {
		return nil, fmt.Errorf("takes a number, not %s", kind(args[0]))
	}
	return how(f), nil
}

func toInt(_ *evaluation, args []any) (any, error) {
	switch v := args[0].(type) {
	case float64:
		if math.IsNaN(v) || v >= 1<<63 || v < -1<<63 {
			return nil, errOverflow
		}
		return int(v), nil
	case string:
		n, err := strconv.Atoi(v)
		if errors.Is(err, strconv.ErrRange) {
			return nil, errOverflow
		}
		if err != nil {
			return nil, errors.New("cannot make a whole number of a text that is none")
		}
		return n, nil
	case time.Duration:
		return int(v), nil
	case time.Month:
		return int(v), nil
	case time.Weekday:
		return int(v), nil
	}
	n, err := wholeOf(args, 0)
	return int(n), err
}

func toFloat(_ *evaluation, args []any) (any, error) {
	if text, ok := args[0].(string); ok {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !isFinite(f) {
			return nil, errors.New("cannot make a number of a text that is none, or is too large for one")
		}
		return f, nil
	}
	f, ok := double(args[0])
	if !ok {
		return nil, fmt.Errorf("cannot make a number of %s", kind(args[0]))
	}
	return f, nil
}

// numbers are all that arguments hold, also those in lists.
func (e *evaluation) numbers(args []any) ([]any, error) {
	all, err := e.flat(nil, args, 0)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if !isNumber(v) {
			return nil, fmt.Errorf("takes numbers, not %s", kind(v))
		}
	}
	return all, nil
}

func highest(e *evaluation, args []any) (any, error) { return e.extreme(args, 1) }
func lowest(e *evaluation, args []any) (any, error)  { return e.extreme(args, -1) }

func (e *evaluation) extreme(args []any, sign int) (any, error) {
	all, err := e.numbers(args)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nothing{}, nil
	}
	best := all[0]
	for _, v := range all[1:] {
		if order, ordered := compareNumbers(v, best); ordered && order*sign > 0 {
			best = v
		}
	}
	return best, nil
}

func mean(e *evaluation, args []any) (any, error) {
	all, err := e.doubles(args)
	if err != nil || len(all) == 0 {
		return 0.0, err
	}
	sum := 0.0
	for _, f := range all {
		sum += f
	}
	return finite(sum/float64(len(all)), all...)
}

func median(e *evaluation, args []any) (any, error) {
	all, err := e.doubles(args)
	n := len(all)
	if err != nil || n == 0 {
		return 0.0, err
	}
	if err := e.sorting(n); err != nil {
		return nil, err
	}
	slices.Sort(all)
	if n%2 == 1 {
		return all[n/2], nil
	}
	return finite(all[n/2-1]/2+all[n/2]/2, all...)
}

func (e *evaluation) doubles(args []any) ([]float64, error) {
	all, err := e.numbers(args)
	if err != nil {
		return nil, err
	}
	if err := e.list(len(all)); err != nil {
		return nil, err
	}
	doubles := make([]float64, len(all))
	for i, v := range all {
		doubles[i], _ = double(v)
	}
	return doubles, nil
}

func bitwise(of func(a, b int64) int64) func(*evaluation, []any) (any, error) {
	return func(_ *evaluation, args []any) (any, error) {
		a, err := wholeOf(args, 0)
		if err != nil {
			return nil, err
		}
		b, err := wholeOf(args, 1)
		return int(of(a, b)), err
	}
}

func bitNot(_ *evaluation, args []any) (any, error) {
	n, err := wholeOf(args, 0)
	return int(^n), err
}

// shiftBy is by how many bits to shift; 64 stands for more.
func shiftBy(args []any) (uint, error) {
	by, err := wholeOf(args, 1)
	if err == nil && by < 0 {
		err = errors.New("cannot shift by less than 0")
	}
	return uint(min(by, 64)), err
}

func shiftLeft(_ *evaluation, args []any) (any, error) {
	n, err := wholeOf(args, 0)
	if err != nil {
		return nil, err
	}
	by, err := shiftBy(args)
	if err != nil {
		return nil, err
	}
	if shifted := n << by; shifted>>min(by, 63) == n {
		return int(shifted), nil
	}
	return nil, errOverflow
}

func shiftRight(of func(a int64, by uint) int64) func(*evaluation, []any) (any, error) {
	return func(_ *evaluation, args []any) (any, error) {
		n, err := wholeOf(args, 0)
		if err != nil {
			return nil, err
		}
		by, err := shiftBy(args)
		return int(of(n, by)), err
	}
}

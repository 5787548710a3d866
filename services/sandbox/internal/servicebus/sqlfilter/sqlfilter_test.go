package sqlfilter_test

import (
	"strings"
	"testing"
	"time"

	"changerelay/services/sandbox/internal/servicebus/sqlfilter"
)

// message is a fixed one for the tables below.
type message struct{}

func (message) System(name string) any {
	switch name {
	case "Label":
		return "order"
	case "MessageId":
		return "m-1"
	case "ScheduledEnqueueTimeUtc":
		return time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	}
	return nil
}

func (message) User(name string) any {
	return map[string]any{
		"color": "red", "price": 12.5, "count": int32(7), "big": uint64(1) << 63, "vip": true, "odd name": "x",
		"it's": int8(-3), "bytes": []byte("x"), "percent": "100%",
	}[strings.ToLower(name)]
}

func TestSQLFilter_FilterMatches(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		"color = 'red'":                                  true,
		"COLOR='red' and Count>6":                        true,
		"color <> 'blue'":                                true,
		"color != 'red'":                                 false,
		"color = 'RED'":                                  false,
		"count >= 7 AND count <= 7":                      true,
		"count < 7 OR price > 12":                        true,
		"price = 12.5":                                   true,
		"count = 7.0":                                    true,
		"count = 7E0":                                    true,
		"big > 9000000000000000000":                      true,
		"NOT color = 'blue'":                             true,
		"NOT (color = 'red' OR count = 1)":               false,
		"NOT NOT color = 'red'":                          true,
		"((color = 'red'))":                              true,
		"(count + 1) * 2 = 16":                           true,
		"((count) + (1)) > (2 * 3)":                      true,
		"count % 4 = 3 AND count / 2 = 3 AND -count < 0": true,
		"color + '!' = 'red!'":                           true,
		"1=1":                                            true,
		"missing = 'x'":                                  false,
		"NOT missing = 'x'":                              false,
		"missing IS NULL":                                true,
		"color IS NOT NULL":                              true,
		"EXISTS(color) AND NOT EXISTS(missing)":          true,
		"missing = 'x' OR color = 'red'":                 true,
		"missing <> 'x' AND color = 'red'":               false,
		"color = NULL":                                   false,
		"color IN ('blue', 'red')":                       true,
		"color NOT IN ('blue')":                          true,
		"missing NOT IN ('blue')":                        false,
		"color LIKE 'r%'":                                true,
		"color LIKE '_e_'":                               true,
		"color LIKE '%e%d%'":                             true,
		"color LIKE 'r'":                                 false,
		"color NOT LIKE 'b%'":                            true,
		"percent LIKE '100!%' ESCAPE '!'":                true,
		"color LIKE '%!%' ESCAPE '!'":                    false,
		"count LIKE '7'":                                 false,
		"sys.Label = 'order' AND sys.messageid = 'm-1'":  true,
		"sys.SessionId IS NULL":                          true,
		"user.color = 'red'":                             true,
		"[odd name] = 'x' AND \"odd name\" = 'x'":        true,
		"[it's] = -3":                                    true,
		"color = 5":                                      false,
		"NOT color = 5":                                  false,
		"bytes = 'x'":                                    false,
		"vip = TRUE AND vip <> FALSE":                    true,
		"count / 0 = 1 OR count % 0 = 1":                 false,
		"9223372036854775807 + 1 > 0":                    false,
		"-9223372036854775807 - 2 < 0":                   false,
		"@p = 'red'":                                     true,
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			f, err := sqlfilter.Compile(expression, map[string]any{"@p": "red"})
			if err != nil {
				t.Fatalf("Compile: got error %v, want none", err)
			}
			if got := f.Match(message{}); got != want {
				t.Errorf("Match: got %t, want %t", got, want)
			}
		})
	}
}

func TestSQLFilter_CompileRefusesWithTheReason(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                         "ends where",
		"color":                    "a comparison",
		"color =":                  "ends where",
		"color = 'red":             "without its end",
		"color = 'red' AND":        "ends where",
		"color = 'red' 5":          "'5' at position 14",
		"(color = 'red'":           "')'",
		"color IN ()":              "a value or property",
		"color NOT = 'x'":          "IN or LIKE",
		"AND = 1":                  "a value or property",
		"sys.Nothing = 1":          "'Nothing'",
		"other.color = 1":          "'other'",
		"newid() = 'x'":            "newid()",
		"@missing = 1":             "@missing",
		"color = 1 = 2":            "'='",
		"(a = 1) + 2 = 3":          "'+'",
		"1 + (a = 1) = 2":          "does not begin a value",
		"a = 1 AND b":              "a comparison",
		"color LIKE 'x' ESCAPE":    "ESCAPE",
		"a = 99999999999999999999": "not a number in range",
		"a = #":                    "unexpected character",
		"[] = 1":                   "an empty name",
		strings.Repeat("a", 1025):  "longer than 1024",
	} {
		t.Run(expression, func(t *testing.T) {
			t.Parallel()
			_, err := sqlfilter.Compile(expression, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Compile: got error %v, want one with %q", err, want)
			}
		})
	}
}

func TestSQLFilter_DeepNestingIsReadInLinearTime(t *testing.T) {
	t.Parallel()
	depth := (sqlfilter.MaxLength - len("1=1")) / 2
	expression := strings.Repeat("(", depth) + "1=1" + strings.Repeat(")", depth)
	f, err := sqlfilter.Compile(expression, nil)
	if err != nil || !f.Match(message{}) {
		t.Fatalf("Compile of %d parentheses: got error %v, want a filter that matches", depth, err)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		"color = 'red' AND (count + 1) * 2 = 16", "a IS NOT NULL OR EXISTS([b c])", "x LIKE '%_!%' ESCAPE '!'",
		"NOT a IN (1, 2.5, -3E2, NULL)", "sys.Label <> @p", "((((", "-9223372036854775808 / -1 = 1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		filter, err := sqlfilter.Compile(expression, map[string]any{"@p": "x"})
		if err != nil {
			if filter != nil {
				t.Fatalf("Compile(%q): got a filter beside the error %v", expression, err)
			}
			return
		}
		if first := filter.Match(message{}); filter.Match(message{}) != first {
			t.Fatalf("Match of %q: got two answers for one message", expression)
		}
	})
}

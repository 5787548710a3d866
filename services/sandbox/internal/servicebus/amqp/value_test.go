package amqp_test

import (
	"bytes"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	goamqp "github.com/Azure/go-amqp"

	"changerelay/services/sandbox/internal/servicebus/amqp"
)

// values are one of each type, at the edges where the encoding changes form.
func values() map[string]any {
	long := strings.Repeat("ä", 200)
	return map[string]any{
		"null": nil, "true": true, "false": false,
		"ubyte": uint8(255), "ushort": uint16(65535), "uint 0": uint32(0), "small uint": uint32(255), "uint": uint32(256),
		"ulong 0": uint64(0), "small ulong": uint64(255), "ulong": uint64(1 << 63),
		"byte": int8(-1), "short": int16(-300), "small int": int32(-128), "int": int32(-129), "small long": int64(127), "long": int64(128),
		"float": float32(1.5), "double": -2.25, "char": amqp.Char('ä'),
		"decimal32": amqp.Decimal{1, 2, 3, 4}, "decimal64": amqp.Decimal("12345678"), "decimal128": amqp.Decimal("1234567890123456"),
		"timestamp": time.UnixMilli(1_700_000_000_123).UTC(), "early timestamp": time.UnixMilli(-1).UTC(),
		"uuid": amqp.UUID{1, 2, 3}, "binary": []byte{0, 1}, "long binary": bytes.Repeat([]byte{7}, 300),
		"string": "text", "long string": long, "empty string": "", "symbol": amqp.Symbol("s"), "long symbol": amqp.Symbol(long),
		"empty list": []any{}, "list": []any{"a", uint32(1), nil, []any{true}},
		"map":            amqp.Map{{Key: "b", Value: int64(1)}, {Key: amqp.Symbol("a"), Value: amqp.Map{}}},
		"described":      amqp.Described{Descriptor: uint64(0x137000000c), Value: "session"},
		"array":          amqp.Array{Code: 0x81, Items: []any{int64(1), int64(1 << 40)}},
		"empty array":    amqp.Array{Code: 0xb1, Items: []any{}},
		"list array":     amqp.Array{Code: 0xd0, Items: []any{[]any{}, []any{"x"}}},
		"bool array":     amqp.Array{Code: 0x56, Items: []any{true, false}},
		"described many": amqp.Array{Descriptor: uint64(5), Code: 0xb3, Items: []any{amqp.Symbol("x")}},
	}
}

func TestValue_EveryValueSurvivesARoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range values() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := amqp.AppendValue(nil, want)
			r := amqp.NewReader(b)
			got := r.Value()
			if r.Err() != nil || r.Len() != 0 {
				t.Fatalf("got error %v with %d bytes left of %x", r.Err(), r.Len(), b)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %#v, want %#v", got, want)
			}
			s := amqp.NewReader(b)
			s.Skip()
			if s.Err() != nil || s.Len() != 0 {
				t.Errorf("skipping: got error %v with %d bytes left", s.Err(), s.Len())
			}
		})
	}
}

func TestValue_ValuesShareNoMemoryWithTheirInput(t *testing.T) {
	t.Parallel()
	for name, want := range values() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := amqp.AppendValue(nil, want)
			got := amqp.NewReader(b).Value()
			clear(b)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got %#v after the input changed, want %#v", got, want)
			}
		})
	}
}

func TestValue_TheOfficialLibraryReadsWhatIsWritten(t *testing.T) {
	t.Parallel()
	want := map[string]any{
		"text": "ä", "number": int64(-5), "double": 1.5, "flag": true, "none": nil,
		"numbers": []int64{1, 1 << 40}, "names": []string{"a", "b"}, "ids": []amqp.UUID{{1}},
		"times": []time.Time{time.UnixMilli(5).UTC()}, "list": []any{"x", map[string]any{"k": uint32(7)}},
	}
	var m goamqp.Message
	if err := m.UnmarshalBinary(amqp.AppendBodyValue(nil, want)); err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
	got := m.Value.(map[string]any)
	want["ids"] = []goamqp.UUID{{1}}
	for key := range want {
		if !reflect.DeepEqual(got[key], want[key]) {
			t.Errorf("got %s %#v, want %#v", key, got[key], want[key])
		}
	}
}

func TestValue_BadValuesAreErrorsNotPanics(t *testing.T) {
	t.Parallel()
	deep := bytes.Repeat([]byte{0xc0, 0xff, 0x01}, 100)
	tests := map[string][]byte{
		"nothing":                             {},
		"an unknown constructor":              {0x3f},
		"a number cut short":                  {0x80, 1, 2},
		"a string longer than the input":      {0xb1, 0xff, 0xff, 0xff, 0xff, 'a'},
		"a list with more items than bytes":   {0xd0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40},
		"a list that ends within an item":     {0xc0, 2, 1, 0xa1, 5, 'a'},
		"a list shorter than its size":        {0xc0, 3, 1, 0x40, 0x40},
		"a map with a key alone":              {0xc1, 2, 1, 0x40},
		"an array of many nulls":              {0xf0, 0, 0, 0, 5, 0x7f, 0xff, 0xff, 0xff, 0x40},
		"a size smaller than its own count":   {0xd0, 0, 0, 0, 1, 0, 0, 0, 0},
		"lists nested beyond the limit":       deep,
		"arrays nested beyond the limit":      nestedArrays(100),
		"descriptors nested beyond the limit": bytes.Repeat([]byte{0}, 100),
	}
	for name, input := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := amqp.NewReader(input)
			r.Value()
			if r.Err() == nil {
				t.Error("got no error, want one")
			}
		})
	}
}

// nestedArrays is an array of one array of one array, and so on.
func nestedArrays(depth int) []byte {
	inner := []byte{0, 0, 0, 5, 0, 0, 0, 0, 0x40}
	for range depth {
		size := len(inner) + 5
		inner = append([]byte{0, 0, byte(size >> 8), byte(size), 0, 0, 0, 1, 0xf0}, inner...)
	}
	return append([]byte{0xf0}, inner...)
}

func TestValue_CountsAloneAllocateNothing(t *testing.T) {
	inputs := map[string][]byte{
		"a list":         {0xd0, 0, 0, 0, 6, 0, 0x7f, 0xff, 0xff, 0x40, 0x40},
		"a map":          {0xd1, 0, 0, 0, 6, 0, 0x7f, 0xff, 0xfe, 0x40, 0x40},
		"an array":       {0xf0, 0, 0, 0, 5, 0xff, 0xff, 0xff, 0xff, 0x40},
		"arrays of null": append([]byte{0xc0, 200, 50}, bytes.Repeat([]byte{0xe0, 2, 255, 0x40}, 50)...),
	}
	for name, input := range inputs {
		t.Run(name, func(t *testing.T) {
			const runs = 50
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				amqp.NewReader(input).Value()
			}
			runtime.ReadMemStats(&after)
			if got, limit := (after.TotalAlloc-before.TotalAlloc)/runs, uint64(64<<10); got > limit {
				t.Errorf("got %d bytes allocated for %d bytes of input, want at most %d", got, len(input), limit)
			}
		})
	}
}

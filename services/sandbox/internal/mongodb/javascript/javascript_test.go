package javascript

import (
	"context"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.uber.org/goleak"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/interrupt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func session(t testing.TB) *Session {
	t.Helper()
	_, work := interrupt.New(t.Context())
	t.Cleanup(work.End)
	return NewPool().Session(work)
}

// called is the value of an expression, as a script shows it.
func called(t *testing.T, s *Session, code string, args ...bson.RawValue) string {
	t.Helper()
	v, err := s.Call("function(...args) { return String(("+code+")) }", args...)
	if err != nil {
		return err.Error()
	}
	return v.StringValue()
}

// https://www.mongodb.com/docs/v4.4/reference/operator/query/where/#considerations
func TestSession_ScriptsFindTheServersTypesAndHelpers(t *testing.T) {
	t.Parallel()
	s := session(t)
	for code, want := range map[string]string{
		`ObjectId("0123456789abcdef01234567")`:                              `ObjectId("0123456789abcdef01234567")`,
		`ObjectId("0123456789abcdef01234567").str`:                          `0123456789abcdef01234567`,
		`new ObjectId("00000001ffffffffffffffff").getTimestamp().getTime()`: `1000`,
		`ObjectId().str.length`:                                             `24`,
		`NumberLong("9223372036854775807")`:                                 `NumberLong("9223372036854775807")`,
		`NumberLong(5) + 1`:                                                 `6`,
		`NumberLong(5).compare(NumberLong(7))`:                              `-1`,
		`NumberInt(5.7)`:                                                    `NumberInt(5)`,
		`NumberDecimal("1.50")`:                                             `NumberDecimal("1.50")`,
		`UUID("00112233-4455-6677-8899-aabbccddeeff").hex()`:                `00112233445566778899aabbccddeeff`,
		`BinData(0, "AQI=").length() + BinData(0, "AQI=").base64() + HexData(5, "ff").subtype()`: `2AQI=5`,
		`Timestamp(7, 8).t + "," + Timestamp(7, 8).i`:                                            `7,8`,
		`MinKey() + "," + new MaxKey()`:                                                          `MinKey,MaxKey`,
		`ISODate("2020-01-02").getTime()`:                                                        `1577923200000`,
		`tojson({a: [1, "x"], d: ISODate("2020-01-02T00:00:00Z")}, "", true)`:                    `{ "a" : [ 1, "x" ], "d" : ISODate("2020-01-02T00:00:00Z") }`,
		`tojson({a: {}})`: "{\n\t\"a\" : { }\n}",
		`isNumber(NumberLong(1)) && isString("") && isObject({})`:                       `true`,
		`Array.sum([1, 2, 3]) + "," + Array.avg([1, 3]) + "," + Array.contains([1], 1)`: `6,2,true`,
		`hex_md5("a")`:           `0cc175b9c0f1b6a831c399e269772661`,
		`typeof print("x")`:      `undefined`,
		`[1, [2, [3]]].flat()`:   `1,2,3`,
		`[3, 1, 2].sort()`:       `1,2,3`,
		`Array.from("abc")`:      `a,b,c`,
		`[...new Set([1, 1])]`:   `1`,
		`DBRef("c", 1).$ref`:     `c`,
		`emit(1, 2)`:             `JSInterpreterFailure: Error: emit can only be called from a map function`,
		`ObjectId("x")`:          `JSInterpreterFailure: Error: expected 24 hexadecimal digits`,
		`db.c`:                   `JSInterpreterFailure: ReferenceError: db is not defined`,
		`require("fs")`:          `JSInterpreterFailure: ReferenceError: require is not defined`,
		`typeof Atomics`:         `undefined`,
		`typeof std + typeof os`: `undefinedundefined`,
	} {
		if got := called(t, s, code); got != want {
			t.Errorf("%s: got %s, want %s", code, got, want)
		}
	}
}

// A script cannot break what others, and what Go makes of its value, rest on.
func TestSession_ForgedValuesAreRefused(t *testing.T) {
	t.Parallel()
	s := session(t)
	for _, value := range []string{
		`{"\0": "oid", v: "x"}`, `{"\0": "date", v: "x"}`, `{"\0": "unheard", v: 1}`, `{"a\0b": 1}`, `1n`, `Symbol()`, `new Date(NaN)`,
		`(() => { const a = []; a.push(a); return a })()`,
		`(() => { let o = {}; for (let i = 0; i < 1e5; i++) o = {o}; return o })()`,
		`{"\0": "regexp", t: "\0", v: "a"}`, `{get a() { throw 1 }}`,
	} {
		if v, err := s.Call("function() { return " + value + " }"); err == nil {
			t.Errorf("%s: got %v, want an error", value, v)
		}
	}
	if got := called(t, s, `(() => { JSON.parse = Array.prototype.join = Object.keys = null; globalThis.ObjectId = 1; return 2 })()`); got != "2" {
		t.Errorf("got %s, want 2", got)
	}
	v, err := s.Call("function(doc) { return doc }", bsonkit.Document(bsonkit.Empty))
	if err != nil || v.Type != bson.TypeEmbeddedDocument {
		t.Errorf("got %v and %v, want a document", v, err)
	}
}

func TestSession_GlobalsAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	s := session(t)
	scope, err := bson.Marshal(bson.D{{Key: "n", Value: 7}})
	if err != nil {
		t.Fatal(err)
	}
	s.SetGlobals(scope)
	for _, want := range []string{"7", "8"} {
		if got := called(t, s, "n++"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := called(t, session(t), "typeof n"); got != "undefined" {
		t.Errorf("got %s in another session, want undefined", got)
	}
}

// More sessions than there are engines take turns, and give them back.
func TestPool_EnginesAreGivenBack(t *testing.T) {
	t.Parallel()
	pool := NewPool()
	var clients sync.WaitGroup
	for range 3 * engines {
		clients.Go(func() {
			_, work := interrupt.New(context.Background())
			defer work.End()
			if v, err := pool.Session(work).Call("1 + 1"); err != nil || v.Double() != 2 {
				t.Errorf("got %v and %v, want 2", v, err)
			}
		})
	}
	clients.Wait()
	if len(pool.free) != 0 {
		t.Errorf("%d engines were not given back", len(pool.free))
	}
}

// Whatever a script forges, decoding it gives BSON that is sound, or an error.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,"x",null,true]}`, `{"\u0000":"oid","v":"0123456789abcdef01234567"}`, `{"\u0000":"code","v":"f","s":{"a":1}}`,
		`{"\u0000":"binary","t":300,"v":"AQI="}`, `{"\u0000":"regexp","t":"i","v":"a"}`, `[{"\u0000":"timestamp","t":-1,"v":1e300}]`,
		`{"\u0000":"decimal","v":"1E9999"}`, `{"\u0000":"pointer","t":"a.b","v":"0123456789abcdef01234567"}`, `{"\u0000":{}}`, `{`,
		strings.Repeat("[", 300),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := decode(text)
		if err != nil {
			return
		}
		b := bsonkit.NewBuilder(nil)
		b.Append("v", v)
		if err := bsonkit.Validate(b.Finish(), maxDepth+2); err != nil {
			t.Fatalf("%s: made BSON that is not sound: %v", text, err)
		}
	})
}

package projection

import (
	"bytes"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// FuzzPlainJSON compares with the driver: what is read without it is read alike.
func FuzzPlainJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"b":[true,false,null,"x",{"c":-5}],"d":{},"e":[]}`, ` [ 1 , 2147483648 , -2147483649 ] `, `"text"`, `0`, `-0`, `01`, `1.5`, `1e3`,
		`{"a":1,"a":2}`, `{"$oid":"5"}`, `{"a":{"$numberLong":"5"}}`, `{"$numberLong":"-9223372036854775808"}`, `{"$numberLong":"05"}`, `{"$numberLong":"5","a":1}`, `{"$numberLong":"5" }`, `{"$numberLong":"x"}`, `{"":1}`, `{"a":"\u0041"}`, "\"\xff\"", `"é"`, `999999999999999999`, `9223372036854775807`, `9999999999999999999`,
		`{"a":1}x`, `[1,]`, `[,1]`, `{"a"}`, `{"a":1,}`, `tru`, ``, `-`, `"`, `{"a":1`, strings.Repeat("[", 70) + strings.Repeat("]", 70),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, ok := plainJSON(data)
		if !ok {
			return
		}
		want, err := extendedJSON(data)
		if err != nil || got.Type != want.Type || !bytes.Equal(got.Value, want.Value) {
			t.Errorf("%q: got %v, the driver reads %v and %v", data, got, want, err)
		}
	})
}

func TestPlainJSON_PlainJSONIsReadWithoutTheDriver(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`{"n":5,"text":"xxx"}`, `[1, {"a": null}]`, ` true `, `"ü"`, `-7`, `{"n":{"$numberLong":"5"}}`} {
		if _, ok := plainJSON([]byte(data)); !ok {
			t.Errorf("%s: got left to the driver, want it read", data)
		}
	}
	for _, data := range []string{`{"at":{"$date":"2020-01-01T00:00:00Z"}}`, `1.5`, `"a\n"`, `{"a":01}`, `-0`, `{`, strings.Repeat("[", 70) + strings.Repeat("]", 70)} {
		if got, ok := plainJSON([]byte(data)); ok {
			t.Errorf("%s: got %v, want it left to the driver", data, got)
		}
	}
}

func BenchmarkReadJSON(b *testing.B) {
	data := []byte(`{"n":12345,"text":"` + strings.Repeat("x", 300) + `","lines":[{"sku":"a-1","price":1250},{"sku":"b-2","price":700}],"paid":true}`)
	for name, read := range map[string]func([]byte) (bson.RawValue, error){"plain": readJSON, "driver": extendedJSON} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package modify_test

import (
	"testing"

	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

func TestUpsert_Upserts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, filter, update, want string }{
		{"equality", `{"_id":1,"a":"x"}`, `{"$set":{"n":1}}`, `{"_id":1,"a":"x","n":1}`},
		{"$eq, $and, $or, $in and $all of one", `{"_id":{"$eq":2},"$and":[{"a":1}],"$or":[{"b":2}],"c":{"$in":[3]},"d":{"$all":[4]}}`, `{"$set":{"n":1}}`, `{"_id":2,"a":1,"b":2,"c":3,"d":4,"n":1}`},
		{"a choice gives nothing", `{"_id":5,"$or":[{"a":1},{"a":2}],"b":{"$in":[1,2]}}`, `{"$set":{"n":1}}`, `{"_id":5,"n":1}`},
		{"comparisons give nothing", `{"_id":8,"a":{"$gt":1},"b":{"$ne":2},"c":{"$exists":false}}`, `{"$set":{"n":1}}`, `{"_id":8,"n":1}`},
		{"dotted paths", `{"_id":6,"a.c":2,"a.b":1}`, `{"$set":{"n":1}}`, `{"_id":6,"a":{"b":1,"c":2},"n":1}`},
		{"operators work on the filter's values", `{"_id":10,"a":1,"l":[1]}`, `{"$inc":{"a":1},"$push":{"l":2}}`, `{"_id":10,"a":2,"l":[1,2]}`},
		{"setOnInsert", `{"k":1}`, `{"$setOnInsert":{"_id":14,"s":1},"$set":{"n":1}}`, `{"_id":14,"k":1,"n":1,"s":1}`},
		{"no _id", `{"k":1}`, `{"$set":{"n":1}}`, `{"k":1,"n":1}`},
		{"null is a value", `{"_id":1,"a":null}`, `{"$set":{"n":1}}`, `{"_id":1,"a":null,"n":1}`},
		{"a replacement takes the _id only", `{"_id":3,"k":"v"}`, `{"n":1}`, `{"_id":3,"n":1}`},
		{"a replacement with an _id", `{"k":"v"}`, `{"n":2,"_id":4}`, `{"_id":4,"n":2}`},
		{"a replacement without any", `{"k":"v"}`, `{"n":2}`, `{"n":2}`},
		{"a pipeline works on the filter's values", `{"_id":4,"k":2}`, `[{"$set":{"p":{"$add":[{"$ifNull":["$p",0]},"$k"]}}}]`, `{"_id":4,"k":2,"p":2}`},
		{"a pipeline that loses the _id keeps it", `{"_id":4}`, `[{"$replaceWith":{"x":1}}]`, `{"_id":4,"x":1}`},
		{"the guarded write of a read model", `{"_id":"k","_relay.sequence":{"$lt":"5"}}`, `{"$set":{"_relay.sequence":"5","v":"a"}}`, `{"_id":"k","_relay":{"sequence":"5"},"v":"a"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := update(t, c.update).Upsert(querytest.Filter(t, c.filter))
			if err != nil {
				t.Fatalf("upsert: %v", err)
			}
			if querytest.Relaxed(got) != c.want {
				t.Errorf("got %s, want %s", querytest.Relaxed(got), c.want)
			}
		})
	}
}

func TestUpsert_UpsertsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, filter, update string
		code                 mongoerr.Code
	}{
		{"another _id", `{"_id":12}`, `{"$set":{"_id":13}}`, mongoerr.ImmutableField},
		{"a replacement with another _id", `{"_id":12}`, `{"_id":13}`, mongoerr.ImmutableField},
		{"a pipeline that changes the _id", `{"_id":12}`, `[{"$set":{"_id":13}}]`, mongoerr.ImmutableField},
		{"two values for one path", `{"$and":[{"a":1},{"a":2}]}`, `{"$set":{"n":1}}`, mongoerr.NotSingleValueField},
		{"values for a path and below it", `{"a":{"x":1},"a.b":2}`, `{"$set":{"n":1}}`, mongoerr.NotSingleValueField},
		{"an array for an _id", `{"k":1}`, `{"$set":{"_id":[1]}}`, mongoerr.InvalidIDField},
		{"an array for an _id by replacement", `{"k":1}`, `{"_id":[1]}`, mongoerr.InvalidIDField},
		{"positional", `{"a":1}`, `{"$set":{"a.$":1}}`, mongoerr.BadValue},
		{"a type error", `{"a":"x"}`, `{"$inc":{"a":1}}`, mongoerr.TypeMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			u, err := compileUpdate(t, c.update)
			if err == nil {
				_, err = u.Upsert(querytest.Filter(t, c.filter))
			}
			querytest.CheckCode(t, err, c.code)
		})
	}
}

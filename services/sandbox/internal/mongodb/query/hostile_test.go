package query_test

import (
	"context"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"pgregory.net/rapid"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query"
	"changerelay/services/sandbox/internal/mongodb/query/match"
	"changerelay/services/sandbox/internal/mongodb/query/modify"
	"changerelay/services/sandbox/internal/mongodb/query/querytest"
)

// vocabulary has every operator's and stage's name, and what goes with them.
var vocabulary = []string{
	"a", "n", "s", "o.x", "a.0", "a.$", "a.$[]", "a.$[e]", "_id", "", "x.y", "$nosuch",
	"$eq", "$ne", "$gt", "$in", "$nin", "$and", "$or", "$nor", "$not", "$exists", "$type", "$regex", "$options", "$mod", "$all",
	"$elemMatch", "$size", "$expr", "$bitsAllSet", "$set", "$unset", "$inc", "$mul", "$min", "$max", "$rename", "$currentDate",
	"$setOnInsert", "$push", "$each", "$slice", "$sort", "$position", "$addToSet", "$pop", "$pull", "$pullAll", "$bit", "and",
	"$match", "$project", "$addFields", "$replaceRoot", "newRoot", "$replaceWith", "$redact", "$limit", "$skip", "$count", "$unwind",
	"path", "$group", "$sortByCount", "$bucket", "groupBy", "boundaries", "$lookup", "from", "as", "let", "pipeline", "localField",
	"foreignField", "$facet", "$sample", "size",
	"$add", "$subtract", "$multiply", "$divide", "$pow", "$round", "$abs", "$sqrt", "$cond", "if", "then", "else", "$ifNull", "$switch",
	"branches", "case", "default", "$let", "vars", "in", "$concat", "$toUpper", "$substrCP", "$substrBytes", "$split", "$indexOfCP",
	"$trim", "input", "chars", "$regexFind", "regex", "$map", "$filter", "cond", "$reduce", "initialValue", "$range", "$zip", "inputs",
	"$arrayElemAt", "$setUnion", "$setEquals", "$mergeObjects", "$objectToArray", "$arrayToObject", "$convert", "to", "onError", "$toInt",
	"$toString", "$toDate", "$year", "date", "timezone", "$dateToString", "format", "$dateFromParts", "year", "$dateFromString",
	"dateString", "$sum", "$avg", "$first", "$literal", "$cmp",
}

func anyContent(depth int) *rapid.Generator[bson.RawValue] {
	scalars := rapid.OneOf(
		rapid.Map(rapid.SampledFrom([]string{"$a", "$n", "$$ROOT", "$$this", "$$NOW", "$$x", "text", "", "$", "a", "(", "%Y", "int", "$$KEEP"}), bsonkit.String),
		rapid.Map(rapid.Int32Range(-2, 20), bsonkit.Int32),
		rapid.Map(rapid.SampledFrom([]int64{1 << 40, -1 << 63, 1<<63 - 1}), bsonkit.Int64),
		rapid.Map(rapid.Float64(), bsonkit.Double),
		rapid.Map(rapid.SampledFrom([]string{"0", "-0E+5", "1.5", "-7E+6000", "1E-6176", "NaN", "Infinity"}), func(s string) bson.RawValue {
			d, err := bson.ParseDecimal128(s)
			if err != nil {
				panic(err)
			}
			return bsonkit.Decimal(d)
		}),
		rapid.Map(rapid.Bool(), bsonkit.Boolean),
		rapid.Just(bsonkit.Null()),
		rapid.Just(bson.RawValue{Type: bson.TypeUndefined}),
		rapid.Just(bson.RawValue{Type: bson.TypeMaxKey}),
		rapid.Map(rapid.Int64(), bsonkit.DateMillis),
	)
	if depth == 0 {
		return scalars
	}
	inner := anyContent(depth - 1)
	return rapid.OneOf(
		scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 3), bsonkit.Array),
		rapid.Map(anySpecification(depth), bsonkit.Document),
	)
}

func anySpecification(depth int) *rapid.Generator[bson.Raw] {
	return rapid.Custom(func(t *rapid.T) bson.Raw {
		b := bsonkit.NewBuilder(nil)
		for range rapid.IntRange(0, 2).Draw(t, "fields") {
			b.Append(rapid.SampledFrom(vocabulary).Draw(t, "name"), anyContent(depth-1).Draw(t, "value"))
		}
		return b.Finish()
	})
}

// Whatever is sent as a specification, it is refused with a server's error or
// works on documents: nothing panics, and what is made is valid.
func TestHostile_NoSpecificationBreaksAnything(t *testing.T) {
	t.Parallel()
	docs := []bson.Raw{querytest.Document(t, querytest.Probe), querytest.Document(t, `{"_id":2}`), querytest.Document(t, `{"_id":3,"a":"x","n":[1,2],"o":[{"x":1}]}`)}
	rapid.Check(t, func(rt *rapid.T) {
		spec := anySpecification(4).Draw(rt, "specification")
		doc := rapid.SampledFrom(docs).Draw(rt, "document")
		f, err := match.Compile(spec, querytest.Env())
		servers(rt, err)
		if err == nil {
			_, err := f.Match(doc)
			servers(rt, err)
			f.Bounds("a", false).Ranges(true)
		}
		if p, err := query.CompileProjection(spec, querytest.Filter(t, `{"a":1}`), querytest.Env()); servers(rt, err) {
			made, err := p.Apply(doc)
			valid(rt, made, err)
		}
		if s, err := query.CompileSort(spec); servers(rt, err) {
			_, err := s.AppendKey(nil, doc)
			servers(rt, err)
		}
		tryUpdate(rt, bsonkit.Document(spec), doc, f)
		tryUpdate(rt, bsonkit.Array([]bson.RawValue{bsonkit.Document(spec)}), doc, f)
		p, err := query.CompilePipeline([]bson.Raw{spec}, query.PipelineEnv{Env: querytest.Env(), Collection: database{"a": docs}.collection})
		if servers(rt, err) {
			for made, err := range p.Run(context.Background(), stream(docs)) {
				valid(rt, made, err)
			}
		}
	})
}

func tryUpdate(t *rapid.T, spec bson.RawValue, doc bson.Raw, f *match.Filter) {
	u, err := modify.Compile(spec, modify.Options{Env: querytest.Env()})
	if !servers(t, err) {
		return
	}
	applied, err := u.Apply(doc, f)
	valid(t, applied.Doc, err)
	made, err := u.Upsert(f)
	valid(t, made, err)
}

// servers wants any error to be the server's, and reports whether there is none.
func servers(t *rapid.T, err error) bool {
	if err != nil && mongoerr.From(err).Code == mongoerr.InternalError {
		t.Fatalf("not a server's error: %v", err)
	}
	return err == nil
}

func valid(t *rapid.T, doc bson.Raw, err error) {
	if servers(t, err) {
		if err := bsonkit.Validate(doc, bsonkit.MaxDepth); err != nil {
			t.Fatalf("made an invalid document: %v: %x", err, []byte(doc))
		}
	}
}

package query

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// graphLookup follows references from document to document
// (https://www.mongodb.com/docs/v4.4/reference/operator/aggregation/graphLookup/).
type graphLookup struct {
	env              PipelineEnv
	from, to, source string
	as, depthField   []string
	start            *expression.Expr
	// most is the largest depth, -1 for none.
	most     int64
	restrict *match.Filter
}

func graphLookupStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(mongoerr.FailedToParse, "the $graphLookup stage specification must be an object, but found %s", bsonkit.TypeName(v.Type))
	}
	g := &graphLookup{env: env, most: -1}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := g.option(string(it.Key()), it.Value()); err != nil {
			return stage{}, err
		}
	}
	if g.from == "" || g.as == nil || g.start == nil || g.source == "" || g.to == "" {
		return stage{}, mongoerr.New(40105, "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.")
	}
	return stage{run: func(ctx context.Context, in documents) documents {
		return eachDocument(in, func(doc bson.Raw) (bson.Raw, bool, error) {
			made, err := g.document(ctx, doc)
			return made, err == nil, err
		})
	}}, nil
}

func (g *graphLookup) option(name string, v bson.RawValue) (err error) {
	switch name {
	case "startWith":
		g.start, err = expression.Compile(v, g.env.Env)
		return err
	case "maxDepth":
		whole, ok := bsonkit.WholeNumber(v)
		switch {
		case !bsonkit.IsNumber(v.Type):
			return mongoerr.New(40100, "maxDepth must be numeric, found type: %s", bsonkit.TypeName(v.Type))
		case whole < 0:
			return mongoerr.New(40101, "maxDepth requires a nonnegative argument, found: %d", whole)
		case !ok:
			return mongoerr.New(40102, "maxDepth could not be represented as a long long: %s", bsonkit.Describe(v))
		}
		g.most = whole
		return nil
	case "restrictSearchWithMatch":
		if v.Type != bson.TypeEmbeddedDocument {
			return mongoerr.New(40185, "restrictSearchWithMatch must be an object, found %s", bsonkit.TypeName(v.Type))
		}
		g.restrict, err = match.Compile(v.Value, g.env.Env)
		return err
	}
	text, ok := v.StringValueOK()
	if !ok && slices.Contains([]string{"from", "as", "connectFromField", "connectToField", "depthField"}, name) {
		return mongoerr.New(40103, "expected string as argument for %s, found: %s", name, bsonkit.Describe(v))
	}
	switch name {
	case "from":
		g.from = text
		return nil
	case "connectFromField":
		g.source = text
	case "connectToField":
		g.to = text
	case "as":
		g.as = strings.Split(text, ".")
	case "depthField":
		g.depthField = strings.Split(text, ".")
	default:
		return mongoerr.New(40104, "Unknown argument to $graphLookup: %s", name)
	}
	return fieldpath.Check(text)
}

// document adds to a document all that can be reached from it, nearest first.
func (g *graphLookup) document(ctx context.Context, doc bson.Raw) (bson.Raw, error) {
	start, err := g.start.Eval(doc)
	if err != nil {
		return nil, err
	}
	frontier := []bson.RawValue{start}
	if start.Type == bson.TypeArray {
		frontier = bsonkit.Values(start)
	}
	memory := newMemory("$graphLookup", mongoerr.ExceededMemoryLimit, expression.Env{})
	seen, asked := map[string]bool{}, map[string]bool{}
	var found []bson.RawValue
	for depth := int64(0); len(frontier) > 0 && (g.most < 0 || depth <= g.most); depth++ {
		values := g.newlyAsked(frontier, asked)
		frontier = nil
		if len(values) == 0 {
			break
		}
		for other, err := range g.env.Collection(ctx, g.from, g.filter(values)) {
			if err != nil {
				return nil, err
			}
			id, _ := bsonkit.Get(other, "_id")
			key := string(bsonkit.AppendKey(nil, g.env.Collation.Fold(id)))
			if seen[key] {
				continue
			}
			seen[key] = true
			if err := memory.Take(len(other) + len(key)); err != nil {
				return nil, err
			}
			found = append(found, bsonkit.Document(g.withDepth(other, depth)))
			bsonkit.ParsePath(g.source).Walk(other, func(f bsonkit.Found) bool {
				if !f.Whole && f.Value.Type != bsonkit.Missing {
					frontier = append(frontier, f.Value)
				}
				return true
			})
		}
	}
	root := bsonkit.NewNode(bsonkit.Document(doc))
	put(root, g.as, bsonkit.Array(found))
	return root.Bytes(), nil
}

// newlyAsked are the values that have not been looked for yet.
func (g *graphLookup) newlyAsked(frontier []bson.RawValue, asked map[string]bool) []bson.RawValue {
	var values []bson.RawValue
	for _, v := range frontier {
		if v.Type == bsonkit.Missing {
			continue
		}
		if key := string(bsonkit.AppendKey(nil, g.env.Collation.Fold(v))); !asked[key] {
			asked[key] = true
			values = append(values, v)
		}
	}
	return values
}

func (g *graphLookup) filter(values []bson.RawValue) *match.Filter {
	filters := []*match.Filter{match.In(g.to, values, g.env.Collation)}
	if g.restrict != nil {
		filters = append(filters, g.restrict)
	}
	return match.All(filters...)
}

func (g *graphLookup) withDepth(doc bson.Raw, depth int64) bson.Raw {
	if g.depthField == nil {
		return doc
	}
	root := bsonkit.NewNode(bsonkit.Document(doc))
	put(root, g.depthField, bsonkit.Int64(depth))
	return root.Bytes()
}

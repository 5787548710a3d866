package query

import (
	"context"
	"iter"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
	"changerelay/services/sandbox/internal/mongodb/query/fieldpath"
	"changerelay/services/sandbox/internal/mongodb/query/match"
)

// lookup joins documents of another collection: those whose field equals a
// local one, or those that a pipeline gives.
type lookup struct {
	env     PipelineEnv
	from    string
	as      []string
	local   string
	foreign string

	stages []bson.Raw
	names  []string
	values []*expression.Expr
}

func lookupStage(v bson.RawValue, env PipelineEnv) (stage, error) {
	if v.Type != bson.TypeEmbeddedDocument {
		return stage{}, mongoerr.New(mongoerr.FailedToParse, "the $lookup stage specification must be an object, but found %s", bsonkit.TypeName(v.Type))
	}
	l := &lookup{env: env}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := l.option(string(it.Key()), it.Value()); err != nil {
			return stage{}, err
		}
	}
	if err := l.check(); err != nil {
		return stage{}, err
	}
	return stage{run: l.run}, nil
}

func (l *lookup) option(name string, v bson.RawValue) error {
	switch name {
	case "pipeline":
		if v.Type != bson.TypeArray {
			return mongoerr.New(mongoerr.TypeMismatch, "'pipeline' option must be specified as an array")
		}
		l.stages = []bson.Raw{}
		for _, s := range bsonkit.Values(v) {
			if s.Type != bson.TypeEmbeddedDocument {
				return mongoerr.New(mongoerr.TypeMismatch, "Each element of the 'pipeline' array must be an object")
			}
			l.stages = append(l.stages, s.Value)
		}
		return notWritten(l.stages, 51047, "$lookup")
	case "let":
		return l.let(v)
	}
	text, ok := v.StringValueOK()
	if !ok {
		return mongoerr.New(mongoerr.FailedToParse, "$lookup argument '%s: %s' must be a string, is type %s", name, bsonkit.Describe(v), bsonkit.TypeName(v.Type))
	}
	switch name {
	case "from":
		l.from = text
		return nil
	case "localField":
		l.local = text
	case "foreignField":
		l.foreign = text
	case "as":
		l.as = strings.Split(text, ".")
	default:
		return mongoerr.New(mongoerr.FailedToParse, "unknown argument to $lookup: %s", name)
	}
	return fieldpath.Check(text)
}

// notWritten refuses stages that write, in the pipeline of another stage.
func notWritten(stages []bson.Raw, code mongoerr.Code, within string) error {
	for _, s := range stages {
		if name := stageName(s); name == "$out" || name == "$merge" {
			return mongoerr.New(code, "%s is not allowed within a %s's sub-pipeline", name, within)
		}
	}
	return nil
}

func (l *lookup) let(v bson.RawValue) error {
	if v.Type != bson.TypeEmbeddedDocument {
		return mongoerr.New(mongoerr.FailedToParse, "$lookup argument 'let: %s' must be an object, is type %s", bsonkit.Describe(v), bsonkit.TypeName(v.Type))
	}
	for it := bsonkit.Iterate(v.Value); it.Next(); {
		if err := expression.CheckVariable(string(it.Key())); err != nil {
			return err
		}
		e, err := expression.Compile(it.Value(), l.env.Env)
		if err != nil {
			return err
		}
		l.names, l.values = append(l.names, string(it.Key())), append(l.values, e)
	}
	return nil
}

// check looks at the options together, and reads the pipeline once to find its
// errors before there is a document.
func (l *lookup) check() error {
	byFields := l.local != "" || l.foreign != ""
	switch {
	case l.from == "":
		return mongoerr.New(mongoerr.FailedToParse, "missing 'from' option to $lookup stage specification")
	case l.as == nil:
		return mongoerr.New(mongoerr.FailedToParse, "must specify 'as' field for a $lookup")
	case l.stages != nil && byFields:
		return mongoerr.New(mongoerr.FailedToParse, "$lookup with 'pipeline' may not specify 'localField' or 'foreignField'")
	case l.stages == nil && (l.local == "" || l.foreign == ""):
		return mongoerr.New(mongoerr.FailedToParse, "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified")
	case l.stages == nil && l.names != nil:
		return mongoerr.New(mongoerr.FailedToParse, "$lookup with a 'let' argument must also specify 'pipeline'")
	case l.env.Collection == nil:
		return mongoerr.New(mongoerr.InvalidOptions, "$lookup is not allowed here")
	case l.stages == nil:
		return nil
	}
	_, err := l.pipelineFor(make([]bson.RawValue, len(l.names)))
	return err
}

func (l *lookup) run(ctx context.Context, in documents) documents {
	return eachDocument(in, func(doc bson.Raw) (bson.Raw, bool, error) {
		found, err := l.matches(ctx, doc)
		if err != nil {
			return nil, false, err
		}
		var joined []bson.RawValue
		size := 0
		for other, err := range found {
			if err != nil {
				return nil, false, err
			}
			if size += len(other) + 8; size > maxBetween {
				return nil, false, mongoerr.New(4568, "Total size of documents in %s matching pipeline's $lookup stage exceeds %d bytes", l.from, maxBetween)
			}
			joined = append(joined, bsonkit.Document(other))
		}
		root := bsonkit.NewNode(bsonkit.Document(doc))
		put(root, l.as, bsonkit.Array(joined))
		return root.Bytes(), true, nil
	})
}

func (l *lookup) matches(ctx context.Context, doc bson.Raw) (iter.Seq2[bson.Raw, error], error) {
	if l.stages == nil {
		return l.env.Collection(ctx, l.from, l.equalTo(doc)), nil
	}
	values, err := expression.EvalAll(l.values, doc)
	if err != nil {
		return nil, err
	}
	p, err := l.pipelineFor(values)
	if err != nil {
		return nil, err
	}
	f, rest := p.LeadingMatch()
	return rest.Run(ctx, l.env.Collection(ctx, l.from, f)), nil
}

// equalTo is the filter for the other side's field: any of the local field's
// values, or null where there is none.
func (l *lookup) equalTo(doc bson.Raw) *match.Filter {
	var values []bson.RawValue
	bsonkit.ParsePath(l.local).Walk(doc, func(f bsonkit.Found) bool {
		if !f.Whole && f.Value.Type != bsonkit.Missing {
			values = append(values, f.Value)
		}
		return true
	})
	if len(values) == 0 {
		values = []bson.RawValue{bsonkit.Null()}
	}
	return match.In(l.foreign, values, l.env.Collation)
}

// pipelineFor compiles the pipeline with these values of its variables.
func (l *lookup) pipelineFor(values []bson.RawValue) (*Pipeline, error) {
	env := l.env
	b := bsonkit.NewBuilder(nil)
	for i, name := range l.names {
		if values[i].Type == bsonkit.Missing {
			values[i].Type = bson.TypeUndefined
		}
		b.Append(name, values[i])
	}
	env.Patterns = &expression.Patterns{} // those of a document are not kept for the next
	// Outer variables stay in scope behind the new ones.
	env.Let = slices.Concat([]bson.Raw{b.Finish()}, l.env.Let)
	return CompilePipeline(l.stages, env)
}

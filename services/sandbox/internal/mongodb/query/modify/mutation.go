package modify

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/expression"
)

// makeMutation reads an operator's argument for one path.
type makeMutation func(path string, v bson.RawValue, env expression.Env) (mutation, error)

func mutationMaker(operator string) (makeMutation, bool) {
	switch operator {
	case "$set", "$setOnInsert":
		return newSetTo, true
	case "$unset":
		return newUnset, true
	case "$rename":
		return nil, true // read by renameChange
	case "$currentDate":
		return newCurrentDate, true
	case "$inc":
		return newIncrement, true
	case "$mul":
		return newMultiplication, true
	case "$min":
		return newMinimum, true
	case "$max":
		return newMaximum, true
	case "$bit":
		return newBitwise, true
	case "$push":
		return newPush, true
	case "$addToSet":
		return newAddToSet, true
	case "$pop":
		return newPop, true
	case "$pull":
		return newPull, true
	case "$pullAll":
		return newPullAll, true
	}
	return nil, false
}

// creates is embedded in mutations that make the fields on their path.
type creates struct{}

func (creates) demands() bool { return true }

// viable is embedded in mutations that make no fields, and yet refuse a path
// on which none could be made.
type viable struct{}

func (viable) demands() bool { return true }

// become is the outcome of replacing present by v.
func become(present, v bson.RawValue) outcome {
	if present.Type == v.Type && bytes.Equal(present.Value, v.Value) {
		return outcome{}
	}
	return outcome{kind: set, value: v}
}

// setTo is $set.
type setTo struct{ value bson.RawValue }

func newSetTo(_ string, v bson.RawValue, _ expression.Env) (mutation, error) { return setTo{v}, nil }

func (setTo) demands() bool { return true }

func (m setTo) apply(present bson.RawValue, _ place) (outcome, error) {
	return become(present, m.value), nil
}

// unset is $unset. It does nothing where its path does not lead.
type unset struct{}

func (unset) demands() bool { return false }

func newUnset(string, bson.RawValue, expression.Env) (mutation, error) { return unset{}, nil }

func (unset) apply(present bson.RawValue, _ place) (outcome, error) {
	if present.Type == bsonkit.Missing {
		return outcome{}, nil
	}
	return outcome{kind: removed}, nil
}

func newCurrentDate(path string, v bson.RawValue, env expression.Env) (mutation, error) {
	switch v.Type {
	case bson.TypeBoolean:
		return setTo{bsonkit.Date(env.Now)}, nil
	case bson.TypeEmbeddedDocument:
		return currentDateType(v.Value, env)
	}
	return nil, mongoerr.New(mongoerr.BadValue,
		"%s is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({$type: 'timestamp/date'}).",
		bsonkit.TypeName(v.Type))
}

func currentDateType(spec bson.Raw, env expression.Env) (mutation, error) {
	for it := bsonkit.Iterate(spec); it.Next(); {
		if string(it.Key()) != "$type" {
			return nil, mongoerr.New(mongoerr.BadValue, "Unrecognized $currentDate option: %s", it.Key())
		}
	}
	t, _ := bsonkit.Get(spec, "$type")
	switch name, _ := t.StringValueOK(); name {
	case "date":
		return setTo{bsonkit.Date(env.Now)}, nil
	case "timestamp":
		return setTo{bsonkit.Timestamp(env.ClusterTime)}, nil
	}
	return nil, mongoerr.New(mongoerr.BadValue,
		"The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}")
}

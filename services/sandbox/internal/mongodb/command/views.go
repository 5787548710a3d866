package command

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
	"changerelay/services/sandbox/internal/mongodb/query/collation"
)

// MaxViewDepth is how many views may stand on each other.
const MaxViewDepth = 20

// NotView refuses a view.
func (c *Call) NotView(ns oplog.Namespace) error {
	if c.Server.Engine.Options(ns).View != nil {
		return mongoerr.New(mongoerr.CommandNotSupportedOnView, "Namespace %s is a view, not a collection", ns)
	}
	return nil
}

// Resolve replaces a view by what it is made of: the collection below, and the
// stages that come before those given
// (https://www.mongodb.com/docs/v4.4/core/views/). isView is false if there was none.
func (c *Call) Resolve(ns oplog.Namespace, stages []bson.Raw) (_ oplog.Namespace, _ []bson.Raw, isView bool, err error) {
	for range MaxViewDepth {
		view := c.Server.Engine.Options(ns).View
		if view == nil {
			return ns, stages, isView, nil
		}
		isView = true
		stages = slices.Concat(view.Pipeline, stages)
		ns.Collection = view.On
	}
	return ns, nil, false, mongoerr.New(mongoerr.ViewDepthLimitExceeded, "View depth too deep or view cycle detected; maximum depth is %d", MaxViewDepth)
}

// CollationOfView is the collation of a view, which no command can change.
func (c *Call) CollationOfView(ns oplog.Namespace, given *collation.Collation) (*collation.Collation, error) {
	own := c.Server.Engine.Options(ns).Collation
	if own == nil {
		own = &collation.Collation{}
	}
	same := given == nil || given.IsSimple() && own.IsSimple() || bytes.Equal(given.Spec(), own.Spec())
	if !same {
		return nil, mongoerr.New(mongoerr.OptionNotSupportedOnView, "Cannot override a view's default collation: %s", ns)
	}
	return own, nil
}

// StageOf makes a stage with a document; nil for an empty one.
func StageOf(name string, argument bson.Raw) []bson.Raw {
	if len(argument) <= len(bsonkit.Empty) {
		return nil
	}
	return []bson.Raw{bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument(name, bsoncore.Document(argument)).Build())}
}

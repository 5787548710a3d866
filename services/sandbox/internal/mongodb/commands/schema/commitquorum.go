package schema

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"changerelay/services/sandbox/internal/mongodb/bsonkit"
	"changerelay/services/sandbox/internal/mongodb/command"
	"changerelay/services/sandbox/internal/mongodb/engine/oplog"
	"changerelay/services/sandbox/internal/mongodb/engine/storage"
	"changerelay/services/sandbox/internal/mongodb/mongoerr"
)

// commitQuorum is how many members must have built an index before it is there,
// as the reply repeats it: a number, or a mode
// (https://www.mongodb.com/docs/v4.4/reference/command/createIndexes/).
type commitQuorum struct{ value bson.RawValue }

// anyVoting is the quorum of a command that names none.
func anyVoting() commitQuorum { return commitQuorum{bsonkit.String("votingMembers")} }

// maxSetMembers is how many members a replica set may have.
const maxSetMembers = 50

func parseCommitQuorum(a *command.Arguments, v bson.RawValue) commitQuorum {
	switch {
	case bsonkit.IsNumber(v.Type):
		n := a.Integer("commitQuorum", v)
		if n < 0 || n > maxSetMembers {
			a.Fail(mongoerr.FailedToParse, "commitQuorum has to be a non-negative number and not greater than %d", maxSetMembers)
		}
		return commitQuorum{bsonkit.Int32(int32(n))}
	case v.Type != bson.TypeString:
		a.Fail(mongoerr.FailedToParse, "commitQuorum has to be a number or a string")
	case v.StringValue() == "":
		a.Fail(mongoerr.FailedToParse, "commitQuorum can't be an empty string")
	}
	return commitQuorum{v}
}

// satisfiable refuses a quorum that the one member of the set cannot make. Only
// the build of an index that is not there, on a collection that is, asks for it.
func (q commitQuorum) satisfiable(c *command.Call, ns oplog.Namespace, specs []storage.IndexSpec) error {
	info, there := c.Server.Engine.Collection(ns)
	present := func(spec storage.IndexSpec) bool {
		return slices.ContainsFunc(info.Indexes, func(s storage.IndexSpec) bool { return s.Name == spec.Name })
	}
	if !there || !slices.ContainsFunc(specs, func(spec storage.IndexSpec) bool { return !present(spec) }) {
		return nil
	}
	if n, isNumber := q.value.Int32OK(); isNumber {
		if n > 1 {
			return mongoerr.New(mongoerr.UnsatisfiableCommitQuorum, "Commit quorum cannot be satisfied with the current replica set configuration")
		}
		return nil
	}
	switch mode := q.value.StringValue(); mode {
	case "majority", "votingMembers":
		return nil
	default:
		return mongoerr.New(mongoerr.UnknownReplWriteConcern, "No write concern mode named '%s' found in replica set configuration", mode)
	}
}
